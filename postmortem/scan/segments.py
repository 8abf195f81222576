"""Cut a stream of bytes into segments (at CR and LF), with progress bars set apart from text.

A physical line of a captured run can be megabytes of carriage-return frames with an error message glued
to the last one. One expression over the raw bytes finds bars and what stands between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from postmortem.scan.unwrap import Breaks, logical_lines

MAX_TEXT = 16 * 1024
"""Longest text segment that is read, in bytes; the rest of a longer one is passed over."""
MAX_READ = 2 * MAX_TEXT
"""Longest segment that is searched for bars, in bytes."""

_CUT = re.compile(rb"[\r\n]+")


class Text(msgspec.Struct, frozen=True):
    """A piece of text between cuts and bars; `offset` and `end` are its bytes in the whole (0 where not known)."""

    raw: bytes
    line: int
    offset: int
    end: int


Draw = tuple[bytes, bytes, bytes, bytes, bytes, int, int, int]
"""One drawn bar: description (with the carriage return that redrew it), n, total, elapsed, postfix, line, offset, end.

A plain tuple: there are millions.
"""


class Cutter:
    """Feeds on chunks of any size and yields the same segments however the input is cut."""

    def __init__(self, bars: tuple[re.Pattern[bytes], tuple[tuple[str, ...], ...]]) -> None:
        self._bar, (self._usual, *self._others) = bars
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
        # a carriage return belongs to what it introduces: whether a bar was redrawn must not depend on the cut
        returned = chunk.rfind(b"\r")
        end = max(chunk.rfind(b"\n") + 1, returned)
        if end == 0 and not (returned == 0 and self._rest):
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

    def broken(self, data: bytes, breaks: Breaks) -> Iterator[Text | Draw]:
        """The segments of a whole text that a console broke; lines are those of the text as it is."""
        self.bytes += len(data)
        self._line += data.count(b"\n")
        self._ended_with_newline = data.endswith(b"\n")
        for logical in logical_lines(data, breaks):
            for piece in self._pieces(logical.joined, 0, len(logical.joined), logical.line, 0):
                start, end = (
                    logical.span(piece.offset, piece.end) if isinstance(piece, Text) else logical.span(*piece[6:])
                )
                if isinstance(piece, Text):
                    yield Text(piece.raw, piece.line, start, end)
                else:
                    yield (*piece[:6], start, end)

    def _keep(self, piece: bytes) -> None:
        """Hold an unfinished segment, but only as much of it as will ever be read."""
        room = MAX_READ - len(self._rest)
        self._lost += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _cut(self, block: bytes) -> Iterator[Text | Draw]:
        at = 0
        if self._lost:
            # the first segment was longer than is ever read: its tail is gone, and counted in the offsets
            found = _CUT.search(block, 1)
            at = found.start() if found else len(block)
            counted = self.cut_long + 1
            yield from self._pieces(block, 0, at, self._line, self._offset)
            self.cut_long = counted
            self._offset += self._lost
            self._lost = 0
        line = self._line
        base = self._offset
        size = len(block)
        while at < size:
            newline = block.find(b"\n", at)
            end = size if newline == -1 else newline
            if end > at:
                yield from self._pieces(block, at, end, line, base)
            at = end + 1
            line += newline != -1
        self._line = line
        self._offset = base + size

    def _pieces(self, block: bytes, start: int, end: int, line: int, base: int) -> Iterator[Text | Draw]:
        """The bars and texts of one physical line."""
        at = segment = start
        if block.find(b"%", start, end) != -1:
            for found in self._bar.finditer(block, start, end):
                first, last = found.span()
                name = block[at:first]
                begin = at
                if name[:1] == b"\r" and name.find(b"\r", 1) == -1:
                    begin = segment = at + 1
                elif b"\r" in name:
                    begin = segment = at + name.rfind(b"\r") + 1
                    yield from self._texts(block, at, segment, line, base)
                    name = block[segment - 1 : first]
                if last - segment > MAX_READ:
                    at = max(at, segment)
                    continue
                n, total, elapsed, postfix = found.group(*self._usual)
                if n is None:
                    names = next(names for names in self._others if found[names[0]] is not None)
                    n, total, elapsed, postfix = found.group(*names)
                yield name, n, total, elapsed, postfix, line, base + begin, base + last
                at = last
        if at < end:
            yield from self._texts(block, at, end, line, base)

    def _texts(self, block: bytes, start: int, end: int, line: int, base: int) -> Iterator[Text]:
        """What stands between bars: the segments with something in them, each only as far as it is read."""
        if block.find(b"\r", start, end) == -1:
            if end - start > MAX_READ:
                self.cut_long += 1
            part = block[start : min(end, start + MAX_TEXT)]
            if part.strip():
                yield Text(part, line, base + start, base + start + len(part))
            return
        while start < end:
            cut = block.find(b"\r", start, end)
            stop = end if cut == -1 else cut
            if stop > start:
                yield from self._texts(block, start, stop, line, base)
            start = stop + 1
