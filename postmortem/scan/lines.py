"""Read the lines of a log's text one by one: what each says goes on at once, what waits for the next line is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from postmortem.model import Event, Item, Place
from postmortem.scan.bars import without_bar
from postmortem.scan.boxes import BoxReader
from postmortem.scan.clock import stamp_of
from postmortem.scan.dump import DumpReader, texts_of
from postmortem.scan.items import Items
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.recognise import Recogniser
from postmortem.scan.rest import Rest
from postmortem.scan.segments import Text
from postmortem.scan.traceback import once
from postmortem.scan.writers import Tracebacks
from postmortem.text import seen, strip_escapes

CODE_INDENT = "    "
"""How far Python indents a frame's code."""
MAX_UNIT = 64
"""Most lines of what is counted as one in a flood: no traceback of so many is full."""
WINDOW = 64 * 1024
"""Bytes of a flood that are counted at a time."""
_FRAMES = frozenset({"frame", "frame_boxed"})

State = Literal["clean", "begun", "full", "full, code next", "woven", "busy"]


class Lines:
    """What the lines so far leave open, and what the next one says in its light.

    Each item goes to `add`. `names` gives the descriptions of the bars that may be torn, None before any.
    """

    def __init__(
        self,
        lexicon: Lexicon,
        source: str,
        recognise: Recogniser,
        items: Items,
        add: Callable[[Item], None],
        names: Callable[[], tuple[str, ...] | None],
    ) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = recognise
        self._add = add
        self._names = names
        self.dump = DumpReader(lexicon, source)
        self.tracebacks = Tracebacks(lexicon, source)
        self._box = BoxReader(lexicon)
        self._broken = Rest(lexicon, recognise, items)
        self.trainers: dict[str, tuple[int, Place]] = {}
        """The line that tells of each trainer with most weight, and that weight."""
        self._chosen: object = None
        self.cut_off = -1
        """Where the text starts that the log's end cut off."""

    @property
    def watching(self) -> bool:
        """Whether the next line matters whatever it says."""
        return self.dump.open or self.waiting

    @property
    def waiting(self) -> bool:
        """The same but for a dump."""
        return self.tracebacks.want_code or self._box.open or self._broken.open

    @property
    def state(self) -> State:
        """What is open: nothing, a traceback that names no process, one that is full, several, or more than that."""
        if self.dump.open or self._box.open or self._broken.open:
            return "busy"
        begun = self.tracebacks.state
        if not self.tracebacks.want_code:
            return begun
        return "full, code next" if begun == "full" else "busy"

    def read(self, piece: Text, entries: frozenset[Compiled] | None, *, opens: bool = False) -> None:
        """One line and the entries of which a literal stands in it (None: of none); it may only open a dump if it
        `opens` one."""
        text = piece.raw.decode("utf-8", "replace")
        inside = self.dump.open
        text = strip_escapes(text) if inside else seen(text)  # a config is data: there nothing is left out
        stamp = stamp_of(text, self._lexicon) if entries is not None else None
        place = Place(piece.line, piece.offset, self._source, stamp, piece.end)
        if self.dump.offer(text, place, opens=opens):
            self.take_dump()
            return
        if self._box.open:
            row = self._box.offer(text, place)
            if row is not None:
                if row.frame is not None:
                    self.tracebacks.latest.frame(row.frame)
                if row.code is not None:
                    self.tracebacks.latest.code(CODE_INDENT + row.code)
                self._see_trainers(text, place, entries)
                return
        text = seen(text) if inside else text
        traceback = self.tracebacks.of(text)
        if traceback.want_code and text.strip():
            self.tracebacks.expect_code(False)
            if traceback.code(self._lexicon.peel_prefix(text)):
                return
        text = once(text)
        cut = piece.offset == self.cut_off
        names = self._names() if entries is not None and (cut or "%" in text) else None
        if names is not None:
            text = without_bar(text, self._lexicon.peel_prefix(text), names, cut=cut)
        if traceback.full and entries is not None and self._passes_frame(entries, text):
            return
        events = list(self._recognise(text, place, entries)) if entries is not None else []
        claimed = any(event.role != "trainer" for event in events)
        self._broken.follow(text, claimed=claimed)
        for event in events:
            if event.role == "trainer":
                self._see_trainer(event)
            elif event.event in ("traceback", "chained", "traceback_boxed"):
                unfinished = traceback.begin(place)
                if unfinished is not None:
                    self._add(unfinished)
                if event.event == "traceback_boxed":
                    self._box.begin()
            elif event.event in ("frame", "frame_boxed", "frame_unnumbered"):
                traceback.frame(event, flat=not self._lexicon.peel_prefix(text)[:1].isspace())
                self.tracebacks.expect_code(event.event == "frame")
            elif event.event == "code_boxed":
                number = event.groups["line"].reveal() if "line" in event.groups else ""
                traceback.code(CODE_INDENT + event.groups["code"].reveal().strip(" │┃|"), number)
            else:
                closes = event.exception is not None and traceback.open
                self._add(event)
                self._broken.watch(event)
                if closes:
                    self._add(traceback.close(event))
        self.tracebacks.keep()

    def _passes_frame(self, entries: frozenset[Compiled], text: str) -> bool:
        """A traceback that has as many frames as are kept: one more is not read, nor is the code that comes next."""
        if not all(item.pattern.sets.event in _FRAMES for item in entries):
            return False
        entry = self._recognise.claimant(text, entries)
        if entry is None or entry.pattern.sets.event != "frame":
            return False
        self._broken.follow(text, claimed=True)
        self.tracebacks.latest.left_out += 1
        self.tracebacks.expect_code(True)
        return True

    def _see_trainers(self, text: str, place: Place, entries: frozenset[Compiled] | None) -> None:
        if entries is None or not any(item.pattern.role == "trainer" for item in entries):
            return
        for event in self._recognise(text, place, entries):
            if event.role == "trainer":
                self._see_trainer(event)

    def _see_trainer(self, event: Event) -> None:
        kept = self.trainers.get(event.event or "")
        weight = int(event.reason or 0)
        if kept is None or weight > kept[0]:
            self.trainers[event.event or ""] = (weight, event.place)

    def end_traceback(self) -> None:
        """The traceback that has begun, if any, ends as where the next one begins."""
        unfinished = self.tracebacks.end_unnamed()
        if unfinished is not None:
            self._add(unfinished)

    def start(self) -> None:
        """A job starts: a config that is still open never closes, and belongs to what comes before."""
        self.end_dump()
        self.dump.endless = 0

    def end_dump(self) -> None:
        """A dump that is still open never closes."""
        if self.dump.open:
            self.dump.abandon()
            self.take_dump()

    def take_dump(self) -> None:
        """A dump that is finished is an item."""
        if self.dump.ready is not None:
            dump = self.dump.take()
            if dump.value is not self._chosen:  # the same as that of the job before
                self._chosen = dump.value
                self._recognise.chosen(list(texts_of(dump.value)))
            self._add(dump)
