"""A stream that can be read more than once: kept in memory while it is small, in a temporary file beyond that."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator

IN_MEMORY = 8 << 20
"""Bytes kept in memory."""
CHUNK = 1 << 20


class Spool:
    """Reads `first` once, and gives the same bytes as often as `chunks` is called."""

    def __init__(self, first: Callable[[], Iterator[bytes]]) -> None:
        self._first: Iterator[bytes] | None = None
        self._begin = first
        self._kept = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  lives as long as this does
        weakref.finalize(self, self._kept.close)

    def chunks(self) -> Iterator[bytes]:
        """The bytes from the start. What an earlier reader left unread is read from the stream."""
        at = 0
        while True:
            self._kept.seek(at)
            piece = self._kept.read(CHUNK)
            if not piece:
                if self._first is None:
                    self._first = self._begin()
                piece = next(self._first, b"")
                if not piece:
                    return
                self._kept.seek(0, 2)
                self._kept.write(piece)
            at += len(piece)
            yield piece
