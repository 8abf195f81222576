"""One pass over a log: bytes in, in chunks of any size; events, bars, tracebacks and the config dump out."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from postmortem.model import BarSpan, Event, Item, Notice, Place, ScanResult, Stamp, Traceback
from postmortem.scan.bars import Fold, without_bar
from postmortem.scan.boxes import BoxReader
from postmortem.scan.clock import stamp_of
from postmortem.scan.dump import DumpReader
from postmortem.scan.lexicon import Compiled, Lexicon, hits
from postmortem.scan.recognise import Recogniser
from postmortem.scan.segments import Cutter, Draw, Text
from postmortem.scan.traceback import TracebackReader, once
from postmortem.scan.unwrap import look_ahead
from postmortem.scan.wrapped import Unfinished, Wrapped
from postmortem.text import LogText, strip_escapes

BLOCK = 1 << 20
CODE_INDENT = "    "
"""How far Python indents a frame's code."""
ECHO = "echo"
"""The event of lines that quote another line: a bar in one is no bar."""
MAX_WRITERS = 64
MAX_ITEMS = 60_000
"""Events kept of one log; beyond it the oldest attempts go first."""
MAX_ALIKE = 3_000
MAX_SKIPS = 20_000
"""Events of one pattern kept of one attempt; what a flood adds after that is counted, not kept."""
MAX_STARTS = 1_500
_OPENING = re.compile(rb"\{(?:\x1b\[[\d;]*[A-Za-z]|\s)*\Z")
"""The end of a line that may open the config dump; its colour ends behind it."""
_STARTS = frozenset({"job_count", "job_banner", "process_count"})


def scan(chunks: Iterable[bytes], lexicon: Lexicon, source: str = "") -> ScanResult:
    """Read one log (UTF-8 bytes, any chunking) and say what it says, in file order."""
    return Scanner(lexicon, source).run(chunks)


class Scanner:
    """The state of one scan."""

    def __init__(self, lexicon: Lexicon, source: str) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = Recogniser(lexicon, source)
        self._dump = DumpReader(lexicon, source)
        self._tracebacks = {"": TracebackReader(source)}
        self._traceback = self._tracebacks[""]
        self._writer = lexicon.by_id.get("prefix.rank")
        self._box = BoxReader(lexicon)
        self._items: list[Item] = []
        self._dropped = 0
        self._alike: dict[str, int] = {}
        self._latest: dict[str, tuple[int, Item]] = {}
        self._starts: list[int] = []
        self._skips = {item.pattern.id for item in lexicon.statements if item.pattern.role in ("skip", "abort")}
        self._fold: Fold | None = None
        self._single = False
        self._cut_off: Text | None = None
        self._job = ""
        self._names: dict[bytes, tuple[str, str | None, str | None]] = {}
        self._trainers: dict[str, tuple[int, Place]] = {}
        self._last_text = b""
        self._wrapped: Wrapped | None = None
        self._unfinished: Unfinished | None = None

    def run(self, chunks: Iterable[bytes]) -> ScanResult:
        """Scan everything and return the result."""
        cutter = Cutter(self._lexicon.bars)
        breaks, whole, rest = look_ahead(chunks)
        if breaks is not None:
            self._block(list(cutter.broken(whole, breaks)))
        held: list[Text | Draw] = []
        size = 0
        for chunk in rest:
            for start in range(0, len(chunk), BLOCK):
                piece = chunk[start : start + BLOCK]
                held.extend(cutter.feed(piece))
                size += len(piece)
                if size >= BLOCK:
                    self._block(held)
                    held = []
                    size = 0
        unfinished = list(cutter.finish())
        self._cut_off = unfinished[-1] if unfinished and isinstance(unfinished[-1], Text) else None
        held.extend(unfinished)
        self._block(held)
        self._finish()
        last = strip_escapes(self._last_text.decode("utf-8", "replace"))
        warnings = []
        if breaks is not None:
            warnings.append(Notice("unwrapped", None, {"width": breaks.width}))
        if self._dropped:
            warnings.append(Notice("too_many_events", None, {"count": self._dropped}))
        if cutter.cut_long:
            warnings.append(Notice("long_lines_cut", None, {"count": cutter.cut_long}))
        return ScanResult(
            source=self._source,
            items=tuple(self._items),
            bytes=cutter.bytes,
            lines=cutter.lines,
            trainers=dict(self._trainers),
            warnings=tuple(warnings),
            last_text=LogText(last),
            last_stamp=stamp_of(last, self._lexicon),
        )

    def _block(self, pieces: list[Text | Draw]) -> None:
        texts: list[bytes] = []
        starts: list[int] = []
        at = 0
        for piece in pieces:
            if isinstance(piece, Text):
                texts.append(piece.raw)
                starts.append(at)
                at += len(piece.raw) + 1
        candidates = hits(self._lexicon, b"\n".join(texts), starts) if texts else {}
        index = -1
        for piece in pieces:
            if isinstance(piece, tuple):
                self._draw(piece)
                continue
            index += 1
            entries = candidates.get(index)
            raw = piece.raw
            if raw.strip():
                self._last_text = raw
            watched = self._dump.open or self._want_code > 0 or self._box.open or self._wrapped or self._unfinished
            if entries is None and not watched and not _OPENING.search(raw):
                continue
            self._text(piece, entries)

    def _text(self, piece: Text, entries: set[Compiled] | None) -> None:
        text = strip_escapes(piece.raw.decode("utf-8", "replace"))
        stamp = stamp_of(text, self._lexicon) if entries is not None else None
        place = Place(piece.line, piece.offset, self._source, stamp, piece.end)
        if self._dump.offer(text, place):
            if self._dump.ready is not None:
                self._add(self._dump.take())
            return
        if self._box.open:
            row = self._box.offer(text, place)
            if row is not None:
                if row.frame is not None:
                    self._traceback.frame(row.frame)
                if row.code is not None:
                    self._traceback.code(CODE_INDENT + row.code)
                self._see_trainers(text, place, entries)
                return
        self._traceback = self._of_writer(text)
        if self._traceback.want_code and text.strip():
            self._expect_code(False)
            if self._traceback.code(self._lexicon.peel_prefix(text)):
                return
        text = once(text)
        if entries is not None and self._fold is not None:
            names = (self._fold.description, self._kept.description if self._kept else "", self._job)
            text = without_bar(text, self._lexicon.peel_prefix(text), names, cut=piece is self._cut_off)
        events = list(self._recognise(text, place, entries)) if entries is not None else []
        claimed = any(event.role != "trainer" for event in events)
        self._follow_wrapped(text, claimed=claimed)
        self._follow_unfinished(text, claimed=claimed)
        for event in events:
            if event.role == "trainer":
                self._see_trainer(event)
            elif event.event in ("traceback", "chained", "traceback_boxed"):
                self._flush_traceback(self._traceback.begin(place))
                if event.event == "traceback_boxed":
                    self._box.begin()
            elif event.event in ("frame", "frame_boxed"):
                self._traceback.frame(event)
                self._expect_code(event.event == "frame")
            elif event.event == "code_boxed":
                self._traceback.code(CODE_INDENT + event.groups["code"].reveal().strip(" │┃|"))
            else:
                closes = event.exception is not None and self._traceback.open
                self._add(event)
                self._watch(event)
                if closes:
                    self._flush_traceback(self._traceback.close(event))

    def _of_writer(self, text: str) -> TracebackReader:
        """The traceback that a line may belong to: processes that write at once name themselves in front."""
        found = self._writer.match(text) if self._writer is not None and text.startswith("[") else None
        name = found[0].strip() if found else ""
        if name not in self._tracebacks and len(self._tracebacks) < MAX_WRITERS:
            self._tracebacks[name] = TracebackReader(self._source)
        return self._tracebacks.get(name, self._tracebacks[""])

    def _expect_code(self, wanted: bool) -> None:
        self._want_code += wanted - self._traceback.want_code
        self._traceback.want_code = wanted

    def _see_trainers(self, text: str, place: Place, entries: set[Compiled] | None) -> None:
        for event in self._recognise(text, place, entries or ()):
            if event.role == "trainer":
                self._see_trainer(event)

    def _see_trainer(self, event: Event) -> None:
        kept = self._trainers.get(event.event or "")
        weight = int(event.reason or 0)
        if kept is None or weight > kept[0]:
            self._trainers[event.event or ""] = (weight, event.place)

    def _watch(self, event: Event) -> None:
        """Look for the rest of an allocator's message that breaks off at the end of its line."""
        entry = self._lexicon.by_id.get(event.pattern)
        if entry is not None and self._items and self._items[-1] is event and Wrapped.wanted(event, entry):
            self._wrapped = Wrapped(event, entry, len(self._items) - 1)
        elif self._items and self._items[-1] is event and Unfinished.wanted(event):
            self._unfinished = Unfinished(event, len(self._items) - 1)

    def _follow_unfinished(self, text: str, *, claimed: bool) -> None:
        """An exception's message that its line breaks off: known with the next line, it is that statement."""
        held = self._unfinished
        if held is None:
            return
        before = held.event
        more = not claimed and held.extend(self._lexicon.peel_prefix(text), self._as_one)
        if held.event is not before:
            self._items[held.at] = held.event
            after = self._items[held.at + 1] if held.at + 1 < len(self._items) else None
            if isinstance(after, Traceback) and after.exception is before:
                self._items[held.at + 1] = msgspec.structs.replace(after, exception=held.event)
            entry = self._lexicon.by_id.get(held.event.pattern)
            if entry is not None and Wrapped.wanted(held.event, entry):
                self._wrapped = Wrapped(held.event, entry, held.at)
        if not more:
            self._unfinished = None

    def _as_one(self, text: str, place: Place) -> Iterable[Event]:
        raw = text.encode()
        entries = {item for anchor, found in self._lexicon.anchored.items() if anchor in raw for item in found}
        return self._recognise(text, place, entries)

    def _follow_wrapped(self, text: str, *, claimed: bool) -> None:
        if self._wrapped is None:
            return
        more = not claimed and self._wrapped.extend(self._lexicon.peel_prefix(text))
        self._items[self._wrapped.at] = self._wrapped.event
        if not more:
            self._wrapped = None

    def _flush_traceback(self, done: Item | None) -> None:
        if done is not None:
            self._add(done)

    def _draw(self, piece: Draw) -> None:
        raw_name, raw_n, raw_total, elapsed, postfix, line, offset, end = piece
        name, event, phase = self._names.get(raw_name) or self._name(raw_name)
        if event == ECHO:
            self._text(Text(raw_name.strip(), line, offset, 0), set(self._lexicon.echoes))
            return
        total = int(raw_total)
        n = int(raw_n)
        fold = self._fold
        if fold is None or fold.description != name or fold.total != total or (fold.n is not None and n < fold.n):
            if fold is not None:
                self._end_bar()
                self._single = self._single or fold.single
            place = Place(line, offset, self._source)
            fold = self._fold = self._resume_fold(name, total, n, place, event, phase)
        if raw_name[:1] == b"\r":
            fold.redrawn = True
        fold.raw = raw_name
        fold.draw(n, elapsed, postfix, line, offset, end)

    def _resume_fold(self, name: str, total: int, n: int, place: Place, event: str | None, phase: str | None) -> Fold:
        """The main bar goes on after a preview's bar came between: its state must too."""
        kept = self._kept
        if kept is not None and kept.description == name and kept.total == total and (kept.n or 0) <= n:
            kept.paused = True
            return kept
        return Fold(name, total, place, event=event, phase=phase, single=self._single)

    _kept: Fold | None = None
    _want_code = 0
    """Writers whose last line was a frame."""

    def _name(self, raw: bytes) -> tuple[str, str | None, str | None]:
        text = strip_escapes(raw[-400:].decode("utf-8", "replace")).strip()
        text = self._lexicon.peel_prefix(text + " ").strip().removesuffix(":").strip()
        event = phase = None
        if any(item.match(text) for item in self._lexicon.echoes):
            event = ECHO
        for item in () if event else self._lexicon.bar_names:
            if item.match(text):
                event, phase = item.pattern.sets.event or "bar_other", item.pattern.sets.phase
                break
        if len(self._names) < 4096:
            self._names[raw] = (text, event, phase)
        return text, event, phase

    def _end_bar(self) -> None:
        if self._fold is not None:
            span = self._fold.take(self._stamp)
            if span is not None:
                self._append(span)
            if self._fold.event is None and self._fold.description:
                self._kept = self._fold

    def _stamp(self, raw: bytes) -> Stamp | None:
        """The time in front of a bar's description."""
        return stamp_of(strip_escapes(raw[-400:].decode("utf-8", "replace")).lstrip("\r"), self._lexicon)

    def _add(self, item: Item) -> None:
        self._end_bar()
        self._append(item)

    def _append(self, item: Item) -> None:
        if isinstance(item, Event) and item.event in _STARTS:
            self._put_back()
            self._single = False
            self._alike = {}
            self._starts.append(len(self._items))
            self._job = item.groups["name"].reveal() if "name" in item.groups else self._job
        kind = item.pattern if isinstance(item, Event) else type(item).__name__
        alike = self._alike[kind] = self._alike.get(kind, 0) + 1
        if alike > (MAX_SKIPS if isinstance(item, BarSpan) or kind in self._skips else MAX_ALIKE):
            last = self._items[-1]
            if isinstance(item, BarSpan) and isinstance(last, BarSpan) and last.description == item.description:
                self._items[-1] = item
            else:
                self._latest[kind] = (len(self._items), item)
            self._dropped += 1
            return
        self._items.append(item)
        if len(self._items) > MAX_ITEMS or len(self._starts) > MAX_STARTS:
            self._forget()

    def _put_back(self) -> None:
        """Of what a flood added, the last of each pattern counts: it may be what ended the run."""
        self._dropped -= len(self._latest)
        for at, item in sorted(self._latest.values(), key=lambda kept: kept[0], reverse=True):
            self._items.insert(at, item)
        self._latest = {}

    def _forget(self) -> None:
        """Drop the older half, as far as possible at the start of an attempt."""
        half = len(self._items) // 2
        if len(self._starts) > MAX_STARTS:
            half = self._starts[len(self._starts) // 2]
        at = next((start for start in self._starts if start >= half), half)
        self._wrapped = self._unfinished = None
        self._put_back()
        self._dropped += at
        del self._items[:at]
        self._starts = [start - at for start in self._starts if start >= at]

    def _finish(self) -> None:
        for reader in self._tracebacks.values():
            self._flush_traceback(reader.end())
        if self._dump.open:
            self._dump.abandon()
            if self._dump.ready is not None:
                self._add(self._dump.take())
        self._end_bar()
        self._put_back()
