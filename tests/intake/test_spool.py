"""A stream that is read twice."""

from __future__ import annotations

import io
from collections.abc import Iterator

from postmortem.intake import open_stream
from postmortem.intake.spool import IN_MEMORY, Spool


def test_gives_the_same_bytes_again() -> None:
    spool = Spool(lambda: iter([b"one\n", b"two\n"]))
    assert b"".join(spool.chunks()) == b"one\ntwo\n"
    assert b"".join(spool.chunks()) == b"one\ntwo\n"


def test_reads_the_stream_once() -> None:
    begun: list[int] = []

    def first() -> Iterator[bytes]:
        begun.append(1)
        yield b"x" * (IN_MEMORY // 2)
        yield b"y" * IN_MEMORY

    spool = Spool(first)
    next(spool.chunks())
    for _ in range(2):
        whole = b"".join(spool.chunks())
        assert whole == b"x" * (IN_MEMORY // 2) + b"y" * IN_MEMORY
    assert begun == [1]


def test_a_pipe_can_be_read_again() -> None:
    log = open_stream(io.BytesIO(b"torch.OutOfMemoryError: CUDA\n" * 3), again=True).logs[0]
    assert b"".join(log.chunks()) == b"".join(log.chunks()) == b"torch.OutOfMemoryError: CUDA\n" * 3
