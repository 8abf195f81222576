"""What lines mean, by their forms (all digits 0): one that stands for itself, or several that belong together.

A unit is what is read between two moments at which nothing is open; a traceback without its exception ends where the
next one begins. Behind a traceback that is full, each line is a unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from postmortem.knowledge.expressions import ignores_digits, with_any_digits
from postmortem.model import Event, Item, Traceback
from postmortem.scan.items import STARTS, Items, kind_of
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.lines import MAX_UNIT, Lines, State
from postmortem.scan.recognise import Recogniser
from postmortem.scan.segments import Region, Text
from postmortem.text import seen

FORM = bytes.maketrans(b"0123456789\r", b"0000000000\n")
"""Makes a line its form, and all that cuts lines alike."""
MAX_FORM = 512
"""Longest line that is known by its form, in bytes."""
MAX_KNOWN = 2048
FULL: frozenset[State] = frozenset({"full", "full, code next"})
"""What is open where frames are only passed over."""


class Unit:
    """What lines of certain forms in a row mean."""

    __slots__ = ("begins", "following", "kinds", "left_out", "raises", "state", "trainers")

    def __init__(self, state: State = "clean") -> None:
        self.state = state
        """What they leave open."""
        self.kinds: tuple[str, ...] = ()
        """Of their items, in order; with the traceback that the next one closes."""
        self.raises = False
        """Whether one is an exception."""
        self.begins = False
        """Whether the first line is the head of a traceback."""
        self.trainers: tuple[tuple[str, int], ...] = ()
        """Those that they tell of, with the weight of that."""
        self.left_out = 0
        """Frames that are passed over."""
        self.following: dict[bytes, Unit | None] = {}
        """The same with one line more, by its form; None if that does not tell what it means."""

    @property
    def alone(self) -> bool:
        """Whether it leaves nothing open."""
        return self.state == "clean"


class _Taken(Items):
    """Items as they come, as if enough of each kind were kept."""

    def __init__(self) -> None:
        super().__init__(frozenset())
        self.items: list[Item] = []

    def append(self, item: Item) -> None:
        self.items.append(item)


class Units:
    """The units of one log, whose lines `lines` reads."""

    def __init__(self, lexicon: Lexicon, source: str, recognise: Recogniser, lines: Lines) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = recognise
        self._lines = lines
        self._chosen: tuple[str, ...] = ()
        self._forget()
        self.read = 0
        """Lines that were read to know them."""

    def _forget(self) -> None:
        self._starts: dict[bytes, Unit | None] = {b"": Unit()}
        self._full: dict[State, dict[bytes, Unit | None]] = {state: {} for state in FULL}
        self._size = 0
        self._numbered = (
            *_numbered(self._lexicon.words),
            *_numbered(tuple(text.encode() for text in self._chosen)),
        )

    def renew(self) -> bool:
        """Forget what is no longer so, or too much; whether that was done."""
        old = self._size > MAX_KNOWN or self._chosen != self._recognise.named
        if old:
            self._chosen = self._recognise.named
            self._forget()
        return old

    def at_start(self, form: bytes, raw: bytes) -> Unit | None:
        """What the line `raw` means where nothing is open; None if its form does not tell."""
        if form not in self._starts:
            self._size += 1
            self._starts[form] = self._alone(form, raw)
        return self._starts[form]

    def behind_full(self, state: State, form: bytes, raw: bytes) -> Unit | None:
        """The same where a traceback is open that is full: of a line that adds no item, or stands for itself."""
        known = self._full[state]
        if form not in known:
            self._size += 1
            alone = self.at_start(form, raw) if state == "full" else None
            known[form] = alone if alone is not None and alone.alone else self._passed(state, form, raw)
        return known[form]

    def whole(self, forms: Sequence[bytes], line: Callable[[int], bytes], first: int) -> tuple[Unit | None, int]:
        """The unit whose first line is one of some with these forms, and the line behind it; `line` gives one as it is.

        None if their forms do not tell what it means; if the lines end before it does, with the number of all.
        """
        unit = self.at_start(forms[first], line(first))
        if unit is not None and unit.alone:
            return unit, first + 1
        for index in range(first + 1, min(first + MAX_UNIT, len(forms))):
            form = forms[index]
            if unit is None:
                return None, first
            if unit.state == "begun":
                other = self.at_start(form, line(index))
                if other is not None and other.begins:
                    return unit, index
            if form not in unit.following:
                last = min(first + MAX_UNIT, len(forms))
                self._learn(forms[first:last], map(line, range(first, last)))
            unit = unit.following.get(form)
            if unit is not None and unit.alone:
                return unit, index + 1
        return None, len(forms) if len(forms) < first + MAX_UNIT else first

    def again(self, region: Region, start: int, stop: int) -> list[Item]:
        """The items of a unit, with the places of the one that starts and stops at these bytes of `region`."""
        trial, taken = self._trial()
        part = Region(region.raw[start:stop], region.lines()(start), region.offset + start)
        for text in part.segments():
            self._offer(trial, text)
        trial.end_traceback()
        return taken.items

    def _alone(self, form: bytes, raw: bytes) -> Unit | None:
        if not raw or raw.isspace():
            return Unit()
        if not self._may_tell(form, raw):
            return None
        if self._entries(raw) is None:
            return Unit()
        return self._read(*self._trial(), form, raw)

    def _learn(self, forms: Sequence[bytes], lines: Iterable[bytes]) -> None:
        """Read a unit, the first line of which is known, and know what its lines mean in a row from now on."""
        trial, taken = self._trial()
        known, before = self._starts, None
        for form, raw in zip(forms, lines, strict=False):
            head = self._starts.get(form)
            if before is not None and before.state == "begun" and head is not None and head.begins:
                return
            if form in known:
                self._offer(trial, Text(raw, 1, 0, 0))
            else:
                self._size += 1
                known[form] = self._read(trial, taken, form, raw)
            unit = known[form]
            if unit is None or unit.alone:
                return
            unit.begins = unit.begins if before is None else before.begins
            known, before = unit.following, unit

    def _passed(self, state: State, form: bytes, raw: bytes) -> Unit | None:
        trial, taken = self._trial()
        trial.tracebacks = self._lines.tracebacks.copy()
        trial.tracebacks.pass_over(0, expect_code=state != "full")
        before = trial.tracebacks.left_out
        unit = self._read(trial, taken, form, raw)
        if unit is None or unit.state not in FULL or unit.kinds or unit.trainers:
            return None
        unit.left_out = trial.tracebacks.left_out - before
        return unit

    def _trial(self) -> tuple[Lines, _Taken]:
        """A reader that nothing else knows of, and what it has found."""
        taken = _Taken()
        return Lines(self._lexicon, self._source, self._recognise, taken, taken.append, lambda: None), taken

    def _read(self, trial: Lines, taken: _Taken, form: bytes, raw: bytes) -> Unit | None:
        """What is known with one line more; None if not all of its form mean the same."""
        if raw and not raw.isspace() and not (self._may_tell(form, raw) and self._tells(form, raw)):
            return None
        failed = self._lexicon.broken.times
        first = trial.tracebacks.state == "clean"
        self._offer(trial, Text(raw, 1, 0, 0))
        self.read += 1
        events = [item for item in taken.items if isinstance(item, Event)]
        if (
            self._lexicon.broken.times > failed
            or trial.tracebacks.state == "woven"
            or any(event.event in STARTS for event in events)
        ):
            return None
        unit = Unit(trial.state)
        unit.kinds = tuple(map(kind_of, taken.items))
        if unit.state == "begun" and trial.tracebacks.open:
            unit.kinds += (Traceback.__name__,)
        unit.raises = any(event.exception is not None for event in events)
        unit.begins = first and trial.tracebacks.state == "begun" and not trial.tracebacks.open
        unit.trainers = tuple((name, weight) for name, (weight, _) in trial.trainers.items())
        return unit

    def _offer(self, trial: Lines, text: Text) -> None:
        """Let a line be read as a scan does: only where it matters."""
        entries = self._entries(text.raw)
        if text.raw and not text.raw.isspace() and (entries is not None or trial.watching):
            trial.read(text, entries)

    def _entries(self, raw: bytes) -> frozenset[Compiled] | None:
        found = self._lexicon.found(raw)
        return frozenset().union(*(items for _, items in found)) if found else None

    def _may_tell(self, form: bytes, raw: bytes) -> bool:
        """Whether which literals stand in a line shows in its form, and whether it opens no dump and is no bar."""
        if len(raw) > MAX_FORM or b"%" in raw or b": : " in raw:
            return False
        shown = seen(raw.decode("utf-8", "replace"))
        other = shown.encode().translate(FORM)
        return not (shown.rstrip().endswith("{") or any(word in form or word in other for word in self._numbered))

    def _tells(self, form: bytes, raw: bytes) -> bool:
        """Whether what the entries say of a line shows in its form."""
        if b"0" not in form:
            return True
        text = seen(raw.decode("utf-8", "replace"))
        entries = self._entries(raw) or ()
        return all(_blind(item, text) for item in (*self._lexicon.prefixes, *self._lexicon.carriers, *entries))


@lru_cache(maxsize=8)
def _numbered(words: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The forms of words that name a digit."""
    return tuple(form for word in words if (form := word.translate(FORM)) != word)


def _blind(item: Compiled, text: str) -> bool:
    """Whether an entry says the same of all lines that differ from `text` in their digits only."""
    if ignores_digits(item.pattern.regex):
        return True
    wider = with_any_digits(item.pattern.regex)
    return wider is not None and wider.search(text) is None
