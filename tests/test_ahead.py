"""A log that a second process cuts gives the same pieces, whatever becomes of that process."""

from __future__ import annotations

import io
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from postmortem import ahead as beside
from postmortem.ahead import ahead
from postmortem.intake import open_path, open_stream
from postmortem.model import ScanResult
from postmortem.reading import pace_of
from postmortem.scan import Lexicon, scan
from postmortem.scan.segments import MAX_READ, Cutter
from tests.scan.test_runs import log_of
from tests.simulate import bar

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is a second process on Linux only"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
ALONE = beside.alone
SEEDS = range(12)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process from the start, in blocks of which small logs have many; two cores for it, whatever threads
    other tests have left."""
    monkeypatch.setattr("postmortem.scan.scanner.BLOCK", 4000)
    monkeypatch.setattr(beside, "LARGE", 0)
    monkeypatch.setattr(beside, "cores", lambda: 2)
    monkeypatch.setattr(beside, "alone", lambda: True)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[beside.Second]:
    """The second process at each block that it is sent."""
    every: list[beside.Second] = []
    send = beside.Second.send

    def noted(self: beside.Second, *args: object) -> None:
        every.append(self)
        send(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(beside.Second, "send", noted)
    return every


def long_lines() -> bytes:
    """Bars, text and segments longer than is ever read, so that some of a block is missing."""
    rows = "".join(bar("mugs", n, 9000, n, ", lr: 1.0e-04") for n in range(300)).encode()
    return b"".join(rows + b"\n" + b"x" * (size * MAX_READ) + b"\nSaving at step 7\n" for size in (1, 3, 2)) + rows


def both(data: bytes, lexicon: Lexicon) -> tuple[ScanResult, ScanResult]:
    """What is said of `data` that is cut in place, and of the same cut ahead."""
    return scan([data], lexicon, bulk_from=0), scan([data], lexicon, bulk_from=0, cutting=ahead)


@pytest.mark.parametrize(("size", "beside_it"), [(100, False), (9 << 20, True), (None, True)])
def test_only_a_large_log_asks_for_it(tmp_path: Path, size: int | None, beside_it: bool) -> None:
    (tmp_path / "log.txt").write_bytes(b"one\n" * (size or 100))
    opened = open_stream(io.BytesIO(b"one\n")) if size is None else open_path(tmp_path / "log.txt")
    assert (pace_of(opened).cutting is ahead) is beside_it


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_process_cuts_the_same(lexicon: Lexicon, sent: list[beside.Second], seed: int) -> None:
    data = log_of(seed).encode()
    in_place, cut_ahead = both(data, lexicon)
    assert cut_ahead == in_place
    assert len(sent) >= len(data) // 8000  # else nothing was shown


def test_what_does_not_fit_is_cut_here(
    lexicon: Lexicon, sent: list[beside.Second], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "ROOM", 9000)
    in_place, cut_ahead = both(long_lines(), lexicon)
    assert cut_ahead == in_place and cut_ahead.warnings
    assert sent


@pytest.mark.parametrize("at", [0, 1, 4])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_second_process_that_dies_is_done_without(
    lexicon: Lexicon, sent: list[beside.Second], monkeypatch: pytest.MonkeyPatch, at: int, number: int
) -> None:
    noted = beside.Second.send

    def killed(self: beside.Second, *args: object) -> None:
        if len(sent) == at:
            os.kill(self._process.pid or 0, number)
        noted(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(beside.Second, "send", killed)
    in_place, cut_ahead = both(log_of(3).encode() * 6, lexicon)
    assert cut_ahead == in_place
    assert len(sent) > at and not sent[0]._lives


def test_a_second_process_that_was_stopped_is_not_waited_for(
    lexicon: Lexicon, sent: list[beside.Second], monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = beside.Second.send

    def stopped(self: beside.Second, *args: object) -> None:
        if not sent:
            os.kill(self._process.pid or 0, signal.SIGSTOP)
        noted(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(beside, "PATIENCE_S", 0.2)
    monkeypatch.setattr(beside.Second, "send", stopped)
    in_place, cut_ahead = both(log_of(3).encode() * 6, lexicon)
    assert cut_ahead == in_place
    assert sent and not sent[0]._lives
    assert not multiprocessing.active_children()


def test_what_fails_in_it_fails_here_too(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault is told by the process that has a report to put it in, not by the one that nobody hears."""
    cutter = Cutter(lexicon.bars)
    monkeypatch.setattr(cutter, "cut", lambda block: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        list(ahead(cutter, [b"one\n", b"two\n"]))
    assert not multiprocessing.active_children()


def test_ctrl_c_is_not_its_to_answer(lexicon: Lexicon, sent: list[beside.Second]) -> None:
    pieces = ahead(Cutter(lexicon.bars), [b"one\n", b"two\n", b"three\n", b"four\n"])
    next(pieces)
    os.kill(sent[0]._process.pid or 0, signal.SIGINT)
    assert len(list(pieces)) == 3
    assert sent[0]._lives


def test_it_ends_with_what_it_works_for(lexicon: Lexicon, sent: list[beside.Second]) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"one more\n"

    pieces = ahead(Cutter(lexicon.bars), endless())
    next(pieces)
    assert multiprocessing.active_children()
    pieces.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_where_none_can_be_started_there_is_none(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError("Resource temporarily unavailable")

    cutter = Cutter(lexicon.bars)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", refused)
        assert beside.start(cutter) is None
        in_place, cut_ahead = both(log_of(5).encode(), lexicon)
        assert cut_ahead == in_place
    with monkeypatch.context() as patch:
        patch.setattr(beside, "cores", lambda: 1)
        assert beside.start(cutter) is None
    waits = threading.Event()
    other = threading.Thread(target=waits.wait)
    other.start()
    try:
        assert not ALONE()
        monkeypatch.setattr(beside, "alone", ALONE)
        assert beside.start(cutter) is None
        monkeypatch.setattr(beside, "alone", lambda: True)
    finally:
        waits.set()
        other.join()
    second = beside.start(cutter)
    assert second is not None
    second.close()
