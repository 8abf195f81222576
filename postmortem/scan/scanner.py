"""One pass over a log: bytes in, in chunks of any size; events, bars, tracebacks and the config dump out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from postmortem.model import Event, Item, Notice, Place, ScanResult
from postmortem.scan.bars import without_bar
from postmortem.scan.boxes import BoxReader
from postmortem.scan.clock import stamp_of
from postmortem.scan.drawing import Bars
from postmortem.scan.dump import DumpReader, texts_of
from postmortem.scan.floods import WINDOW, Floods
from postmortem.scan.items import Items
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.recognise import Recogniser
from postmortem.scan.rest import Rest
from postmortem.scan.segments import BULK_FROM, MAX_TEXT, Cutter, Draw, Piece, Region, Text
from postmortem.scan.traceback import once
from postmortem.scan.unwrap import look_ahead
from postmortem.scan.writers import Tracebacks
from postmortem.text import LogText, seen, strip_escapes

BLOCK = 1 << 20
CODE_INDENT = "    "
"""How far Python indents a frame's code."""
PATIENCE, MAX_PATIENCE = 1024, 1 << 17
_OPENING = re.compile(rb'\{(?:\x1b\[[\d;]*[A-Za-z]|[^\S\r\n]|[^\n\r -~])*(?=[\r\n][^"{]{0,400}(?:"|\Z)|\Z)')
"""The end of a line that may open the config dump: its colour ends behind it, or what shows nothing; a key follows."""
_FRAMES = frozenset({"frame", "frame_boxed"})
_STARTS = frozenset({"job_count", "job_banner", "process_count"})


def scan(chunks: Iterable[bytes], lexicon: Lexicon, source: str = "", *, bulk_from: int | None = None) -> ScanResult:
    """Read one log (UTF-8 bytes, any chunking) and say what it says, in file order.

    From byte `bulk_from` on bars are read together; it changes the time that it takes, and nothing else.
    """
    return Scanner(lexicon, source, BULK_FROM if bulk_from is None else bulk_from).run(chunks)


class Scanner:
    """The state of one scan."""

    def __init__(self, lexicon: Lexicon, source: str, bulk_from: int = BULK_FROM) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = Recogniser(lexicon, source)
        self._dump = DumpReader(lexicon, source)
        self._tracebacks = Tracebacks(lexicon, source)
        self._box = BoxReader(lexicon)
        skips = (item.pattern.id for item in lexicon.statements if item.pattern.role in ("skip", "abort"))
        self._items = Items(frozenset(skips))
        self._bars = Bars(lexicon, source, self._append)
        self._cutter = Cutter(lexicon.bars, self._bars.stamped, bulk_from)
        self._cut_off = -1
        """Where the text starts that the log's end cut off."""
        self._job = ""
        self._trainers: dict[str, tuple[int, Place]] = {}
        self._floods = Floods(lexicon, source, self._recognise, self._items, self._trainers)
        self._patience = PATIENCE
        """Lines of a region to read before looking whether they are a flood."""
        self._flooded = False
        self._last: Region | None = None
        self._broken = Rest(lexicon, self._recognise, self._items)

    def run(self, chunks: Iterable[bytes]) -> ScanResult:
        """Scan everything and return the result."""
        cutter = self._cutter
        breaks, whole, rest = look_ahead(chunks)
        if breaks is not None:
            self._block(list(cutter.broken(whole, breaks)))
        for block in _blocks(rest):
            self._block(cutter.feed(block))
        unfinished = cutter.finish()
        if unfinished and isinstance(unfinished[-1], Region):
            end = unfinished[-1].last()
            self._cut_off = end.offset if end is not None else -1
        self._block(unfinished)
        self._finish()
        end = self._last.last() if self._last is not None else None
        last = seen(end.raw.decode("utf-8", "replace")) if end is not None else ""
        warnings = []
        if breaks is not None:
            warnings.append(Notice("unwrapped", None, {"width": breaks.width}))
        if self._items.dropped:
            warnings.append(Notice("too_many_events", None, {"count": self._items.dropped}))
        if self._tracebacks.left_out:
            warnings.append(Notice("frames_left_out", None, {"count": self._tracebacks.left_out}))
        if cutter.cut_long:
            warnings.append(Notice("long_lines_cut", None, {"count": cutter.cut_long}))
        return ScanResult(
            source=self._source,
            items=self._items.all(),
            bytes=cutter.bytes,
            lines=cutter.lines,
            trainers=dict(self._trainers),
            warnings=tuple(warnings),
            last_text=LogText(last),
            last_stamp=stamp_of(last, self._lexicon),
        )

    def _block(self, pieces: list[Piece]) -> None:
        """Read the pieces of one block: literals are searched in all its text at once."""
        if self._flooded and len(pieces) == 1 and isinstance(pieces[0], Region):
            pieces = self._rest(pieces[0])
        joined = b"\n".join(piece.raw for piece in pieces if isinstance(piece, Region)).replace(b"\r", b"\n")
        found = self._lexicon.found(joined) if joined else []
        at = taken = 0
        for piece in pieces:
            if isinstance(piece, tuple):
                if not self._bars.draw(piece):
                    self._echo(piece)
            elif isinstance(piece, Region):
                self._last = piece
                end = at + len(piece.raw)
                first = taken
                while taken < len(found) and found[taken][0] < end:
                    taken += 1
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
        at = index = 0
        size = len(region.raw)
        count = len(found)
        read = 0
        lines = region.lines()
        while at < size:
            if self._dump.open:
                at = self._dump.read(region, at, lines)
                self._take_dump()
                while index < count and found[index][0] < at:
                    index += 1
                if at == size:
                    return
            if not self._watching():
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
                self._text(piece, entries, opens=opens)
                read += 1
                if read >= self._patience:
                    at = self._pass_flood(region, at)
                    read = 0
                    while index < count and found[index][0] < at:
                        index += 1

    def _rest(self, region: Region) -> list[Piece]:
        """What is to read of a region once the flood goes on that the last one ended in."""
        at = self._pass_flood(region, 0)
        if at >= len(region.raw):
            self._last = region
            return []
        return [Region(region.raw[at:], region.lines()(at), region.offset + at)] if at else [region]

    def _pass_flood(self, region: Region, at: int) -> int:
        """The byte of a region at which reading must go on: lines from `at` on that are a flood are only counted."""
        self._flooded = False
        if self._watching() or self._cut_off >= 0 or region.end is not None or at >= len(region.raw):
            return at
        traceback = self._tracebacks.open
        reached = self._floods.swallow(region, at, self._bars.end, traceback=traceback)
        self._flooded = reached >= len(region.raw)
        worth = self._flooded or reached - at > WINDOW
        self._patience = PATIENCE if worth else min(2 * self._patience, MAX_PATIENCE)
        return reached

    def _watching(self) -> bool:
        """Whether the next line matters whatever it says."""
        return bool(self._dump.open or self._tracebacks.want_code or self._box.open or self._broken.open)

    def _echo(self, draw: Draw) -> None:
        self._text(Text(draw[0].strip(), draw[5], draw[6], 0), frozenset(self._lexicon.echoes))

    def _text(self, piece: Text, entries: frozenset[Compiled] | None, *, opens: bool = False) -> None:
        text = piece.raw.decode("utf-8", "replace")
        inside = self._dump.open
        text = strip_escapes(text) if inside else seen(text)  # a config is data: there nothing is left out
        stamp = stamp_of(text, self._lexicon) if entries is not None else None
        place = Place(piece.line, piece.offset, self._source, stamp, piece.end)
        if self._dump.offer(text, place, opens=opens):
            self._take_dump()
            return
        if self._box.open:
            row = self._box.offer(text, place)
            if row is not None:
                if row.frame is not None:
                    self._tracebacks.latest.frame(row.frame)
                if row.code is not None:
                    self._tracebacks.latest.code(CODE_INDENT + row.code)
                self._see_trainers(text, place, entries)
                return
        text = seen(text) if inside else text
        traceback = self._tracebacks.of(text)
        if traceback.want_code and text.strip():
            self._tracebacks.expect_code(False)
            if traceback.code(self._lexicon.peel_prefix(text)):
                return
        text = once(text)
        names = self._bars.descriptions if entries is not None else None
        if names is not None:
            cut = piece.offset == self._cut_off
            text = without_bar(text, self._lexicon.peel_prefix(text), (*names, self._job), cut=cut)
        if traceback.full and entries is not None and self._passes_frame(entries, text):
            return
        events = list(self._recognise(text, place, entries)) if entries is not None else []
        claimed = any(event.role != "trainer" for event in events)
        self._broken.follow(text, claimed=claimed)
        for event in events:
            if event.role == "trainer":
                self._see_trainer(event)
            elif event.event in ("traceback", "chained", "traceback_boxed"):
                self._flush_traceback(traceback.begin(place))
                if event.event == "traceback_boxed":
                    self._box.begin()
            elif event.event in ("frame", "frame_boxed", "frame_unnumbered"):
                traceback.frame(event, flat=not self._lexicon.peel_prefix(text)[:1].isspace())
                self._tracebacks.expect_code(event.event == "frame")
            elif event.event == "code_boxed":
                number = event.groups["line"].reveal() if "line" in event.groups else ""
                traceback.code(CODE_INDENT + event.groups["code"].reveal().strip(" │┃|"), number)
            else:
                closes = event.exception is not None and traceback.open
                self._add(event)
                self._broken.watch(event)
                if closes:
                    self._flush_traceback(traceback.close(event))
        self._tracebacks.keep()

    def _passes_frame(self, entries: frozenset[Compiled], text: str) -> bool:
        """A traceback that has as many frames as are kept: one more is not read, nor is the code that comes next."""
        if not all(item.pattern.sets.event in _FRAMES for item in entries):
            return False
        entry = self._recognise.claimant(text, entries)
        if entry is None or entry.pattern.sets.event != "frame":
            return False
        self._broken.follow(text, claimed=True)
        self._tracebacks.latest.left_out += 1
        self._tracebacks.expect_code(True)
        return True

    def _see_trainers(self, text: str, place: Place, entries: frozenset[Compiled] | None) -> None:
        for event in self._recognise(text, place, entries or ()):
            if event.role == "trainer":
                self._see_trainer(event)

    def _see_trainer(self, event: Event) -> None:
        kept = self._trainers.get(event.event or "")
        weight = int(event.reason or 0)
        if kept is None or weight > kept[0]:
            self._trainers[event.event or ""] = (weight, event.place)

    def _flush_traceback(self, done: Item | None) -> None:
        if done is not None:
            self._add(done)

    def _add(self, item: Item) -> None:
        self._bars.end()
        self._append(item)

    def _append(self, item: Item) -> None:
        if isinstance(item, Event) and item.event in _STARTS:
            # a config that is still open never closes: it belongs to what comes before this
            self._end_dump()
            job = item.groups["name"].reveal() if "name" in item.groups else None
            self._job = self._job if job is None else job
            self._items.start(job)
            self._bars.start(self._job)
            self._recognise.chosen([self._job])
        self._items.append(item)

    def _end_dump(self) -> None:
        if self._dump.open:
            self._dump.abandon()
            self._take_dump()

    def _take_dump(self) -> None:
        if self._dump.ready is not None:
            dump = self._dump.take()
            self._recognise.chosen(list(texts_of(dump.value)))
            self._add(dump)

    def _finish(self) -> None:
        for unfinished in self._tracebacks.end():
            self._add(unfinished)
        self._end_dump()
        self._bars.end()
        self._items.put_back()
        # these hold the scanner by its methods: in a circle, all that was read would stay until garbage is searched for
        del self._bars, self._cutter


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
