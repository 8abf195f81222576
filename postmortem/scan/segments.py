"""Cut a stream of bytes into segments (at CR and LF), with progress bars set apart from text.

A physical line of a captured run can be megabytes of carriage-return frames with an error message glued
to the last one. Bars are found by one expression over the raw bytes; what stands between them is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

MAX_TEXT = 16 * 1024
"""Longest text segment that is read, in bytes; the rest of a longer one is passed over."""

MAX_READ = 2 * MAX_TEXT
"""Longest segment that is searched for bars, in bytes."""

_CUT = re.compile(rb"[\r\n]+")
_BLANK = re.compile(rb"(?:\x1b\[[0-9;]*[A-Za-z]|[\s\x00])*\Z")


class Text(msgspec.Struct):
    """A piece of text between cuts and bars."""

    raw: bytes
    line: int
    offset: int


class Draw(msgspec.Struct):
    """One drawn bar: what stands before it on its segment, and its raw bytes."""

    description: bytes
    raw: bytes
    line: int
    offset: int


class Cutter:
    """Feeds on chunks of any size and yields the same segments however the input is cut."""

    def __init__(self, bar: re.Pattern[bytes]) -> None:
        self._bar = bar
        self._rest = bytearray()
        self._line = 1
        self._offset = 0
        self._lost = 0
        self.bytes = 0
        self.cut_long = 0
        self._ended_with_newline = True

    @property
    def lines(self) -> int:
        """Physical lines so far; a last line without a line feed counts."""
        return self._line - (1 if self._ended_with_newline else 0)

    def feed(self, chunk: bytes) -> Iterator[Text | Draw]:
        """The segments that `chunk` completes."""
        self.bytes += len(chunk)
        if not chunk:
            return
        self._ended_with_newline = chunk.endswith(b"\n")
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
        if not end:
            self._keep(chunk)
            return
        block = bytes(self._rest) + chunk[:end] if self._rest else chunk[:end]
        self._rest = bytearray()
        yield from self._cut(block)
        self._keep(chunk[end:])

    def finish(self) -> Iterator[Text | Draw]:
        """The last segment, which no line feed closed."""
        if self._rest:
            block = bytes(self._rest)
            self._rest = bytearray()
            yield from self._cut(block)

    def _keep(self, piece: bytes) -> None:
        """Hold an unfinished segment, but only as much of it as will ever be read."""
        room = MAX_READ - len(self._rest)
        self._lost += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _cut(self, block: bytes) -> Iterator[Text | Draw]:
        at = 0
        line = self._line
        base = self._offset
        for found in _CUT.finditer(block):
            if found.start() > at:
                yield from self._segment(block, at, found.start(), line, base)
            line += found.group().count(b"\n")
            at = found.end()
            base += self._lost
            self._lost = 0
        if at < len(block):
            yield from self._segment(block, at, len(block), line, base)
        self._line = line
        self._offset = base + len(block) + self._lost
        self._lost = 0

    def _segment(self, block: bytes, start: int, end: int, line: int, base: int) -> Iterator[Text | Draw]:
        if end - start > MAX_READ or self._lost:
            self.cut_long += 1
        end = min(end, start + MAX_READ)
        if block.find(b"%", start, end) == -1:
            yield Text(block[start : min(end, start + MAX_TEXT)], line, base + start)
            return
        at = start
        for found in self._bar.finditer(block, start, end):
            yield Draw(block[at : found.start()], found.group(), line, base + found.start())
            at = found.end()
        if at < end and not _BLANK.match(block, at, end):
            yield Text(block[at : min(end, at + MAX_TEXT)], line, base + at)
