"""Cut a stream of bytes into progress bars and the text between them, with as little work as each deserves.

A physical line of a captured run can be megabytes of carriage-return frames with an error message glued
to the last one. Segments end at CR and LF; one expression over the raw bytes finds a bar in one. Bars that follow each
other with only their digits changed are taken together (`scan/runs.py`), and text is handed on in whole regions: only
where a literal stands in it is it looked at line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from postmortem.scan.unwrap import Breaks, logical_lines

if TYPE_CHECKING:
    from postmortem.scan.runs import Run
    from postmortem.scan.tables import Tables

MAX_TEXT = 16 * 1024
"""Longest text segment that is read, in bytes; the rest of a longer one is passed over."""
MAX_READ = 2 * MAX_TEXT
"""Longest segment that is searched for bars, in bytes."""
BULK_FROM = 3 << 19
"""Bytes of a log from which on bars are taken together: what does that takes as long to load as this does to read."""

FEED, RETURN = 10, 13
_CUT = re.compile(rb"[\r\n]")


class Text(msgspec.Struct, frozen=True):
    """One segment of text; `offset` and `end` are its bytes in the whole (`end` is 0 where not known)."""

    raw: bytes
    line: int
    offset: int
    end: int


class Region(msgspec.Struct, frozen=True):
    """Text between bars, any number of segments: its bytes, the physical line and the byte that it starts at.

    `end` is given for a single segment that a console had broken: there it is not `offset` plus the length.
    """

    raw: bytes
    line: int
    offset: int
    end: int | None = None

    def start_of(self, at: int, lowest: int = 0) -> int:
        """Where the segment starts that byte `at` of the region belongs to; not before `lowest`."""
        cut = max(self.raw.rfind(b"\n", lowest, at), self.raw.rfind(b"\r", lowest, at))
        return lowest if cut == -1 else cut + 1

    def end_of(self, at: int) -> int:
        """Where that segment ends."""
        cut = _CUT.search(self.raw, at)
        return cut.start() if cut else len(self.raw)

    def lines(self) -> Callable[[int], int]:
        """A function that says which physical line byte `at` of the region is in, of ever later bytes."""
        line, counted = self.line, 0

        def line_of(at: int) -> int:
            nonlocal line, counted
            line += self.raw.count(b"\n", counted, at)
            counted = at
            return line

        return line_of

    def segment(self, at: int, stop: int, line_of: Callable[[int], int]) -> Text | None:
        """The segment from `at` to `stop` as far as it is read; None if nothing stands in that."""
        part = self.raw[at : min(stop, at + MAX_TEXT)]
        if not part or part.isspace():
            return None
        start = self.offset + at
        return Text(part, line_of(at), start, start + len(part) if self.end is None else self.end)

    def segments(self) -> Iterator[Text]:
        """All segments that have something in them."""
        at = 0
        line_of = self.lines()
        while at < len(self.raw):
            stop = self.end_of(at)
            text = self.segment(at, stop, line_of)
            if text is not None:
                yield text
            at = stop + 1

    def last(self) -> Text | None:
        """The last of them."""
        stop = len(self.raw.rstrip())
        while stop:
            start = self.start_of(stop)
            text = self.segment(start, stop, self.lines())
            if text is not None:
                return text
            stop = len(self.raw[:start].rstrip())
        return None


Draw = tuple[bytes, bytes, bytes, bytes, bytes, int, int, int]
"""One drawn bar: description (with the carriage return that redrew it), n, total, elapsed, postfix, line, offset, end.

A plain tuple: there are millions.
"""
Piece: TypeAlias = "Region | Draw | Run"


BarSyntax: TypeAlias = "tuple[re.Pattern[bytes], tuple[tuple[str, ...], ...], bytes]"
"""How a drawn bar is told: one expression for all of tqdm's ways, its group names for each, and the bytes that one ends
with, the same in all of them (none where they differ)."""


class Block(msgspec.Struct, frozen=True):
    """Whole segments of a log: their bytes, and the byte that they start at.

    `lost` is how many bytes are missing behind its first segment, which is longer than is ever read. `bulk` says
    whether its bars are taken together.
    """

    raw: bytes
    offset: int
    lost: int
    bulk: bool


class Cutter:
    """Feeds on chunks of any size and yields the same draws and texts however the input is cut.

    `stamped` says how many bytes of a description are a prefix whose digits change with the time; `bulk_from` is the
    byte from which on bars are taken together. `line` and `cut_long` go with what was `cut`, all else with what came.
    """

    def __init__(
        self,
        bars: BarSyntax,
        stamped: Callable[[bytes], int] = lambda name: 0,
        bulk_from: int = BULK_FROM,
    ) -> None:
        self._bar, (self._usual, *self._others), self._closing = bars
        self._stamped = stamped
        self._bulk_from = bulk_from
        self._tables: Tables | None = None
        self._rest = bytearray()
        self.line = 1
        """The physical line that the next block starts in."""
        self._offset = 0
        self._lost = 0
        self.bytes = 0
        self.cut_long = 0
        self._ended_with_newline = True

    @property
    def lines(self) -> int:
        """Physical lines so far; a last line without a line feed counts."""
        return self.line - (1 if self._ended_with_newline else 0)

    def feed(self, chunk: bytes) -> list[Piece]:
        """The segments that `chunk` completes."""
        block = self.take(chunk)
        return self.cut(block) if block is not None else []

    def take(self, chunk: bytes) -> Block | None:
        """The segments that `chunk` completes, still to be `cut`: in order, here or by a copy of this."""
        self.bytes += len(chunk)
        if not chunk:
            return None
        self._ended_with_newline = chunk.endswith(b"\n")
        # a carriage return belongs to what it introduces: whether a bar was redrawn must not depend on the cut
        returned = chunk.rfind(b"\r")
        end = max(chunk.rfind(b"\n") + 1, returned)
        if end == 0 and not (returned == 0 and self._rest):
            self._keep(chunk)
            return None
        block = self._block(b"".join((self._rest, memoryview(chunk)[:end])) if self._rest else chunk[:end])
        self._keep(chunk[end:])
        return block

    def finish(self) -> list[Piece]:
        """The last segment, which no line feed closed."""
        return self.cut(self._block(bytes(self._rest))) if self._rest else []

    def broken(self, data: bytes, breaks: Breaks) -> Iterator[Piece]:
        """The segments of a whole text that a console broke; lines are those of the text as it is."""
        self.bytes += len(data)
        self._ended_with_newline = data.endswith(b"\n")
        for logical in logical_lines(data, breaks):
            for piece in self._pieces(logical.joined, 0, logical.line, 0, bulk=False):
                if isinstance(piece, Region):
                    for text in piece.segments():
                        start, end = logical.span(text.offset, text.end)
                        yield Region(text.raw, text.line, start, end)
                elif isinstance(piece, tuple):
                    yield (*piece[:6], *logical.span(*piece[6:]))
        self.line = 1 + data.count(b"\n")

    def _keep(self, piece: bytes) -> None:
        """Hold an unfinished segment, but only as much of it as will ever be read."""
        room = MAX_READ - len(self._rest)
        self._lost += max(0, len(piece) - room)
        self._rest += piece[:room]

    def _block(self, raw: bytes) -> Block:
        """What was held back and what completes it; nothing is held any more."""
        block = Block(raw, self._offset, self._lost, self.bytes >= self._bulk_from)
        self._offset += self._lost + len(raw)
        self._lost = 0
        self._rest = bytearray()
        return block

    def cut(self, block: Block) -> list[Piece]:
        """The segments of a block."""
        at, raw, offset = 0, block.raw, block.offset
        pieces: list[Piece] = []
        if block.lost:
            # the first segment was longer than is ever read: its tail is gone, and counted in the offsets
            found = _CUT.search(raw, 1)
            at = found.start() if found else len(raw)
            counted = self.cut_long + 1
            pieces += self._pieces(raw[:at], 0, self.line, offset, bulk=False)
            self.cut_long = counted
            offset += block.lost
        pieces += self._pieces(raw, at, self.line, offset, bulk=block.bulk)
        return pieces

    def _pieces(self, block: bytes, at: int, line: int, base: int, *, bulk: bool) -> Iterator[Piece]:
        """The bars and texts from byte `at` of `block` on; the block is byte `base` of the whole, `at` is in `line`.

        In the end `self.line` is the line behind it: all but the text was counted on the way.
        """
        text = at
        while (percent := block.find(b"%", at)) != -1:
            start = max(block.rfind(b"\n", at, percent), block.rfind(b"\r", at, percent)) + 1 or at
            cut = _CUT.search(block, percent)
            stop = cut.start() if cut else len(block)
            if block.rfind(self._closing, percent, stop) == -1:  # torn: to search it would cost as much as ten bars
                at = stop
                continue
            returned = start > 0 and block[start - 1] == RETURN
            at = start
            while (found := self._bar.search(block, at, stop)) is not None and found.end() - start <= MAX_READ:
                first, last = found.span()
                if at == start and start - text > 1:
                    yield from self._region(block, text, start, line, base)
                    line += block.count(b"\n", text, start)
                elif at == start > text:
                    line += block[text] == FEED
                names = self._usual
                if found[names[0]] is None:
                    names = next(names for names in self._others if found[names[0]] is not None)
                name = block[start - 1 : first] if returned and at == start else block[at:first]
                n, total, elapsed, postfix = found.group(*names[:4])
                yield name, n, total, elapsed, postfix, line, base + at, base + last
                text = last
                if bulk and at == start:
                    run = self._after(block, start - returned, stop, found, names, line, base + start)
                    if run is not None:
                        yield run
                        line += (run.rows + 1) * run.feeds
                        text = stop = run.stop
                        break
                at = last
            at = stop
        yield from self._region(block, text, len(block), line, base)
        self.line = line + block.count(b"\n", text)

    def _after(self, *row: Any) -> Run | None:
        """The draws behind one that differ from it in their digits only, where they are many; see `Tables.after`."""
        if self._tables is None:
            from postmortem.scan.tables import Tables

            self._tables = Tables(self._stamped)
        return self._tables.after(*row)

    def _region(self, block: bytes, start: int, stop: int, line: int, base: int) -> Iterator[Region]:
        if stop - start > MAX_TEXT:
            self.cut_long += _longer(block, start, stop)
        raw = block[start:stop]
        if raw and not raw.isspace():
            yield Region(raw, line, base + start)


Cutting: TypeAlias = Callable[[Cutter, Iterable[bytes]], Iterator[list[Piece]]]
"""A way to have a log cut: the segments that each of its chunks completes, all in their order."""


def in_place(cutter: Cutter, chunks: Iterable[bytes]) -> Iterator[list[Piece]]:
    """One chunk after the other, here and now."""
    return map(cutter.feed, chunks)


def _longer(block: bytes, at: int, stop: int) -> int:
    """How many segments are longer than is read."""
    count = 0
    while stop - at > MAX_TEXT:
        end = at + MAX_TEXT + 1
        cut = max(block.rfind(b"\n", at, end), block.rfind(b"\r", at, end))
        if cut == -1:
            count += 1
            found = _CUT.search(block, end, stop)
            cut = found.start() if found else stop
        at = cut + 1
    return count
