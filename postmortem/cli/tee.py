"""`--tee`: a run that is piped in is passed on to the terminal as it comes, while it is analysed.

It goes to stderr, since stdout carries the report and nothing else. The bytes are the user's own run, which he would
see without us, and stay as they are; the report is another matter, and safe as ever.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import types
from collections.abc import Iterator
from typing import BinaryIO, cast

from postmortem.cli.errors import USAGE, Failure

_STDERR = 2
_RESET = b"\x1b\\\x1b[0m\x1b[?25h"
"""Ends a title or link that the run left open, its colours, and a hidden cursor."""
_AGAIN = b"\npostmortem: reading on to the end of the run; Ctrl-C again ends at once, without a report\n"


class Tee:
    """Standard input, read so that each byte is passed on before the next one is waited for."""

    def __init__(self, source: int, target: int | None) -> None:
        self._source = source
        self._target = target
        self._last = b""
        self._escaped = False
        self._started = False

    def read(self, size: int = -1) -> bytes:
        """`size` bytes, fewer only at the end of the run, as of a buffered stream."""
        pieces: list[bytes] = []
        left = size if size >= 0 else sys.maxsize
        while left > 0 and (piece := self._piece(min(left, 1 << 16))):
            self._pass(piece)
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)

    def drain(self) -> None:
        """Pass on what is left: a run must not end of a broken pipe because we could not read its log."""
        with contextlib.suppress(OSError):
            while piece := self._piece(1 << 16):
                self._pass(piece)

    def finish(self) -> None:
        """Leave the terminal as the report needs it: at the start of a line, with nothing switched on."""
        if self._target is None or not self._last or not _shared_with_report(self._target):
            return
        if self._escaped and os.isatty(self._target):
            self._write(_RESET)
        self._write(b"\n" if self._last.endswith(b"\n") else b"\n\n")

    def _piece(self, size: int) -> bytes:
        while True:
            try:
                return os.read(self._source, size)
            except BlockingIOError:
                select.select([self._source], [], [])

    def _pass(self, piece: bytes) -> None:
        if not self._started:
            from postmortem.intake import packed

            self._started = True
            if packed.is_archive(piece):
                self._target = None  # what is packed is no sight for a terminal, and may do anything there
        self._last = piece[-1:]
        self._escaped = self._escaped or b"\x1b" in piece or b"\x9b" in piece
        self._write(piece)

    def _write(self, data: bytes) -> None:
        """All of `data`, at once; where nobody can read any more, the analysis goes on all the same."""
        view = memoryview(data)
        while view and self._target is not None:
            try:
                view = view[os.write(self._target, view) :]
            except BlockingIOError:
                select.select([], [self._target], [])
            except OSError:
                self._target = None


def check(path: str) -> None:
    """Raises Failure where there is no pipe to pass on."""
    if path != "-":
        raise Failure("--tee goes with a pipe, not with a PATH: python run.py CONFIG 2>&1 | postmortem --tee", USAGE)
    if sys.stdin is not None and sys.stdin.isatty():
        raise Failure("--tee: nothing is piped in: python run.py CONFIG 2>&1 | postmortem --tee", USAGE)


@contextlib.contextmanager
def standard_input() -> Iterator[BinaryIO]:
    """Standard input as a `Tee`, for as long as it is read.

    Ctrl-C reaches the run as well as us: the run ends of it, and we read to its end and report. A second one ends us.
    Whatever goes wrong here, the run is passed on to its end first.
    """
    if sys.stdin is None:
        raise Failure("standard input is closed; give a log or a run folder")
    tee = Tee(sys.stdin.fileno(), _STDERR if sys.stderr is not None else None)
    before = signal.getsignal(signal.SIGINT)

    def first(number: int, frame: types.FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tee._write(_AGAIN)

    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, first)
    try:
        yield cast(BinaryIO, tee)  # of a pipe nobody asks more than `read`
        tee.drain()
    except Exception:
        tee.drain()
        raise
    finally:
        tee.finish()
        if signal.getsignal(signal.SIGINT) is first:
            signal.signal(signal.SIGINT, before)


def _shared_with_report(descriptor: int) -> bool:
    """Whether the report may come out behind what was passed on: on a terminal, or in the same file as stdout."""
    try:
        return os.isatty(descriptor) or os.path.sameopenfile(descriptor, 1)
    except OSError:
        return False
