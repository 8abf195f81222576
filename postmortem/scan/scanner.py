"""One pass over a log: bytes in, in chunks of any size; events, bars, tracebacks and the config dump out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from postmortem.model import Event, Item, Notice, ScanResult
from postmortem.scan.clock import stamp_of
from postmortem.scan.drawing import Bars
from postmortem.scan.items import STARTS, Items, kind_of
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.lines import MAX_UNIT, WINDOW, Lines
from postmortem.scan.recognise import MAX_EVENT_TEXT, Recogniser
from postmortem.scan.segments import BULK_FROM, MAX_TEXT, Cutter, Cutting, Draw, Piece, Region, Text, in_place
from postmortem.scan.unwrap import look_ahead
from postmortem.scan.writers import MAX_WRITERS
from postmortem.text import LogText, seen

if TYPE_CHECKING:
    from postmortem.scan.floods import Floods

BLOCK = 3 << 17
PATIENCE, MAX_PATIENCE = 1024, 1 << 17
_OPENING = re.compile(rb'\{(?:\x1b\[[\d;]*[A-Za-z]|[^\S\r\n]|[^\n\r -~])*(?=[\r\n][^"{]{0,400}(?:"|\Z)|\Z)')
"""The end of a line that may open the config dump: its colour ends behind it, or what shows nothing; a key follows."""


def scan(
    chunks: Iterable[bytes],
    lexicon: Lexicon,
    source: str = "",
    *,
    bulk_from: int | None = None,
    cutting: Cutting = in_place,
) -> ScanResult:
    """Read one log (UTF-8 bytes, any chunking) and say what it says, in file order.

    From byte `bulk_from` on bars are read together, and `cutting` has the log cut; they change the time that it takes,
    and nothing else.
    """
    return Scanner(lexicon, source, BULK_FROM if bulk_from is None else bulk_from).run(chunks, cutting)


class Scanner:
    """The state of one scan."""

    def __init__(self, lexicon: Lexicon, source: str, bulk_from: int = BULK_FROM) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = Recogniser(lexicon, source)
        skips = (item.pattern.id for item in lexicon.statements if item.pattern.role in ("skip", "abort"))
        self._items = Items(frozenset(skips))
        self._bars = Bars(lexicon, source, self._append, self._count)
        self._cutter = Cutter(lexicon.bars, self._bars.stamped, bulk_from)
        self._job = ""
        self._lines = Lines(lexicon, source, self._recognise, self._items, self._add, self._names)
        self._floods: Floods | None = None
        self._patience = PATIENCE
        """Lines to read before looking whether they are a flood."""
        self._read = 0
        """Lines of a text without bars that were read since."""
        self._flooded = False
        self._last: Region | None = None

    def run(self, chunks: Iterable[bytes], cutting: Cutting = in_place) -> ScanResult:
        """Scan everything and return the result."""
        cutter, lines = self._cutter, self._lines
        breaks, whole, rest = look_ahead(chunks)
        if breaks is not None:
            self._block(list(cutter.broken(whole, breaks)))
        for pieces in cutting(cutter, _blocks(rest)):
            self._block(pieces)
        unfinished = cutter.finish()
        if unfinished and isinstance(unfinished[-1], Region):
            end = unfinished[-1].last()
            self._lines.cut_off = end.offset if end is not None else -1
        self._block(unfinished)
        self._finish()
        end = self._last.last() if self._last is not None else None
        last = seen(end.raw.decode("utf-8", "replace")) if end is not None else ""
        warnings = []
        if breaks is not None:
            warnings.append(Notice("unwrapped", None, {"width": breaks.width}))
        if self._items.dropped:
            warnings.append(Notice("too_many_events", None, {"count": self._items.dropped}))
        if lines.tracebacks.left_out:
            warnings.append(Notice("frames_left_out", None, {"count": lines.tracebacks.left_out}))
        if lines.tracebacks.mixed:
            warnings.append(Notice("writers_left_out", None, {"read": MAX_WRITERS}))
        if self._recognise.cut:
            warnings.append(Notice("events_cut", None, {"count": self._recognise.cut, "read": MAX_EVENT_TEXT}))
        if cutter.cut_long:
            warnings.append(Notice("long_lines_cut", None, {"count": cutter.cut_long}))
        return ScanResult(
            source=self._source,
            items=self._items.all(),
            bytes=cutter.bytes,
            lines=cutter.lines,
            trainers=dict(lines.trainers),
            warnings=tuple(warnings),
            last_text=LogText(last),
            last_stamp=stamp_of(last, self._lexicon),
        )

    def _block(self, pieces: list[Piece]) -> None:
        """Read the pieces of one block: literals are searched in all its text at once."""
        if self._flooded and len(pieces) == 1 and isinstance(pieces[0], Region):
            pieces = self._flood(pieces[0])
        joined = b"\n".join(piece.raw for piece in pieces if isinstance(piece, Region)).replace(b"\r", b"\n")
        found = self._lexicon.found(joined) if joined else []
        at = taken = 0
        for piece in pieces:
            if isinstance(piece, tuple):
                if not self._bars.draw(piece):
                    self._echo(piece)
            elif isinstance(piece, Region):
                self._last = piece
                self._read = self._read if len(pieces) == 1 else 0  # a block that is all text may go on with a flood
                end = at + len(piece.raw)
                first = taken
                while taken < len(found) and found[taken][0] < end:
                    taken += 1
                if not self._bars.flooded or not self._count_line(piece):
                    self._region(piece, [(where - at, entries) for where, entries in found[first:taken]])
                at = end + 1
            elif self._bars.echoed(piece.name(0)):
                for row in range(piece.rows):
                    self._echo(piece.draw(row))
            else:
                self._bars.run(piece)

    def _region(self, region: Region, found: list[tuple[int, frozenset[Compiled] | None]]) -> None:
        """Look at the segments in which a literal stands, and at those that what came before them asks for."""
        if b"{" in region.raw:
            found += ((opening.start(), None) for opening in _OPENING.finditer(region.raw))
            found.sort(key=_where)
        if not found and not self._lines.watching:
            return
        at = index = literal = 0
        size = len(region.raw)
        count = len(found)
        lines = region.lines()
        while at < size:
            if self._lines.dump.open:
                while literal < count and (found[literal][0] < at or found[literal][1] is None):
                    literal += 1
                quiet = found[literal][0] if literal < count else size
                at = self._lines.dump.read(region, at, lines, 0 if self._lines.waiting else quiet)
                self._lines.take_dump()
                while index < count and found[index][0] < at:
                    index += 1
                if at == size:
                    return
            if not self._lines.watching:
                while index < count and found[index][1] is None and not self._lines.dump.opens:
                    index += 1
                if index == count:
                    return
                at = region.start_of(found[index][0], at)
            stop = region.end_of(at)
            entries: frozenset[Compiled] | None = None
            opens = False
            while index < count and found[index][0] <= stop:
                named = found[index][1]
                opens = opens or named is None
                if named is not None and found[index][0] < at + MAX_TEXT:
                    entries = entries | named if entries is not None else named
                index += 1
            piece = region.segment(at, stop, lines)
            at = stop + 1
            if piece is not None:
                self._lines.read(piece, entries, opens=opens)
                self._read += 1
                if self._read >= self._patience:
                    reached = self._pass_flood(region, at)
                    if reached is not None or self._read >= self._patience + MAX_UNIT:
                        self._read = 0
                    while reached is not None and index < count and found[index][0] < reached:
                        index += 1
                    at = at if reached is None else reached

    def _flood(self, region: Region) -> list[Piece]:
        """What is to read of a region once the flood has gone on that the last one ended in."""
        self._last = region
        at = read = 0
        size = len(region.raw)
        line = region.lines()
        while at < size:
            reached = self._pass_flood(region, at)
            if reached is not None and reached > at:
                at, read = reached, 0
            elif read > 2 * MAX_UNIT or region.end is not None:
                self._flooded = False
                return [Region(region.raw[at:], line(at), region.offset + at, region.end)]
            else:  # a line of a unit that is not all here, or one between them
                stop = min(region.end_of(at) + 1, size)
                one = Region(region.raw[at:stop], line(at), region.offset + at)
                self._region(one, [*self._lexicon.found(one.raw.replace(b"\r", b"\n"))])
                at, read = stop, read + 1
        self._flooded = True
        return []

    def _pass_flood(self, region: Region, at: int) -> int | None:
        """The byte of a region at which reading must go on: lines from `at` on that are a flood are only counted.

        None: the lines from `at` on belong to what is open.
        """
        if self._lines.cut_off >= 0 or region.end is not None or at >= len(region.raw):
            return at
        floods = self._counting()
        learnt = floods.learnt
        reached = floods.swallow(region, at, self._bars.count)
        if reached is not None:
            worth = self._flooded = reached >= len(region.raw) or reached - at > WINDOW
            if worth:
                self._patience = PATIENCE
            elif floods.learnt > learnt:
                self._patience = min(2 * self._patience, MAX_PATIENCE)
        return reached

    def _count_line(self, region: Region) -> bool:
        """Whether a region between two draws of a flood is a line that is only counted."""
        if self._lines.cut_off >= 0 or region.end is not None or self._lines.state != "clean":
            return False
        kinds = self._counting().counted(region.raw)
        for kind in kinds or ():
            self._bars.count(kind, region, 1)
        return kinds is not None

    def _count(self, kind: str, last: Item | Region, number: int) -> None:
        """So many items of a kind that is full, of which this is the last or stands there."""
        self._items.drop(self._counting().item(kind, last) if isinstance(last, Region) else last, number)

    def _counting(self) -> Floods:
        if self._floods is None:  # few logs are long enough
            from postmortem.scan.floods import Floods

            self._floods = Floods(self._lexicon, self._source, self._recognise, self._items, self._lines)
        return self._floods

    def _echo(self, draw: Draw) -> None:
        self._lines.read(Text(draw[0].strip(), draw[5], draw[6], 0), frozenset(self._lexicon.echoes))

    def _names(self) -> tuple[str, ...] | None:
        """The descriptions of the bars that may be torn: those that were drawn, and the job's."""
        names = self._bars.descriptions
        return None if names is None else (*names, self._job)

    def _add(self, item: Item) -> None:
        kind = kind_of(item)
        if self._items.full(kind) and not (isinstance(item, Event) and item.event in STARTS):
            self._bars.count(kind, item, 1)
        else:
            self._bars.end()
            self._append(item)

    def _append(self, item: Item) -> None:
        if isinstance(item, Event) and item.event in STARTS:
            self._lines.start()
            job = item.groups["name"].reveal() if "name" in item.groups else None
            self._job = self._job if job is None else job
            self._items.start(job)
            self._bars.start(self._job)
            self._recognise.chosen([self._job])
        self._items.append(item)

    def _finish(self) -> None:
        for unfinished in self._lines.tracebacks.end():
            self._add(unfinished)
        self._lines.end_dump()
        self._bars.end()
        self._items.put_back()
        self._items.dropped += self._bars.passed
        # these hold the scanner by its methods: in a circle, all that was read would stay until garbage is searched for
        del self._bars, self._cutter, self._lines, self._floods


def _where(hit: tuple[int, object]) -> int:
    return hit[0]


def _blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of at least a block, but for the last, and of no more than two."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK):
            piece = chunk[start : start + BLOCK]
            held.append(piece)
            size += len(piece)
            if size >= BLOCK:
                yield held[0] if len(held) == 1 else b"".join(held)
                held, size = [], 0
    if held:
        yield b"".join(held)
