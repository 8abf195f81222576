"""Pass over a flood: lines alike but for their digits, of which only how many, and the last, is kept.

A log that repeats an error a million times would cost a million readings. Which entries claim a line does not depend on
which digits stand in it, as long as no expression or anchor that has a say in it names one; so lines are counted by
their form (all digits 0). Lines that belong together, as those of a traceback do, are one unit: each sort is read once
to know it by the forms of its lines (units.py), and once more for the last of each kind of item.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, count

from postmortem.model import Item
from postmortem.scan.items import Items, kind_of
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.lines import WINDOW, Lines, State
from postmortem.scan.recognise import Recogniser
from postmortem.scan.segments import Region
from postmortem.scan.units import FORM, FULL, MAX_FORM, Unit, Units

MAX_FORMS = 256
"""Forms in a window; more are no flood."""
MAX_NEW = 1024
"""Lines that are read to know a window's units; more are no flood."""

_Tally = dict[Unit, list[int]]
"""How many there are of each unit, by their first ones, and the bytes at which the last starts and stops."""


class _Window:
    """Some lines of a region: their forms, and where they stand."""

    def __init__(self, region: Region, at: int) -> None:
        self._raw = region.raw
        self.end = region.raw.find(b"\n", at + WINDOW) + 1 or len(region.raw)
        self.forms = region.raw[at : self.end].translate(FORM).split(b"\n")
        if self.end < len(region.raw):
            self.forms.pop()  # what follows the last line feed belongs to the next window
        self._at = at
        self.latest = dict(zip(self.forms, count()))
        """The last line of each form."""

    @cached_property
    def starts(self) -> list[int]:
        """The byte at which each line starts, and one behind the last."""
        return list(accumulate(map(len, self.forms), lambda start, size: start + size + 1, initial=self._at))

    def line(self, index: int) -> bytes:
        """A line as it is."""
        return self._raw[self.starts[index] : self.starts[index + 1] - 1]


class Floods:
    """Counts what floods one log, whose `lines` are read into `items`."""

    def __init__(self, lexicon: Lexicon, source: str, recognise: Recogniser, items: Items, lines: Lines) -> None:
        self._items = items
        self._lines = lines
        self._units = Units(lexicon, source, recognise, lines)
        self._sure: dict[bytes, tuple[str, ...]] = {}
        """The kinds of what lines of a form add, which in this job are only counted from now on."""
        self._jobs = 0

    @property
    def learnt(self) -> int:
        """Lines that were read to know them by their forms."""
        return self._units.read

    def swallow(self, region: Region, at: int, add: Callable[[str, Item, int], None]) -> int | None:
        """Count the lines from byte `at` of `region` on that add nothing else; the byte at which reading must go on.

        It must be the start of a segment. None: what is open has to end first. `add` is told of each kind of item that
        was counted the last one and how many there were.
        """
        state = self._lines.state
        if state == "busy":
            return None
        self._units.renew()
        if state == "begun" and not self._counts_within(region, at):
            return None
        tally: _Tally = {}
        goes_on = True
        while goes_on and at < len(region.raw):
            window = _Window(region, at)
            if len(window.latest) > MAX_FORMS:
                break
            state, line, goes_on = self._count(window, state, tally)
            goes_on = goes_on and line > 0
            at = min(window.end, window.starts[line])
        self._drop(region, tally, add)
        if state in FULL:
            frames = sum(unit.left_out * number for unit, (number, _, _) in tally.items())
            self._lines.tracebacks.pass_over(frames, expect_code=state != "full")
        return at

    def counted(self, raw: bytes) -> tuple[str, ...] | None:
        """The kinds of the items that a few lines add where nothing is open, if they are only counted; else None."""
        if self._units.renew() or self._items.jobs != self._jobs or len(self._sure) >= MAX_FORMS:
            self._sure.clear()
            self._jobs = self._items.jobs
        whole = raw.translate(FORM)
        kinds = self._sure.get(whole)
        if kinds is not None or len(raw) > MAX_FORM:
            return kinds
        kinds = ()
        at = 0
        for form in whole.split(b"\n"):
            unit = self._units.at_start(form, raw[at : at + len(form)])
            if unit is None or not unit.alone or not self._only_counts(unit):
                return None
            kinds += unit.kinds
            at += len(form) + 1
        self._sure[whole] = kinds
        return kinds

    def item(self, kind: str, region: Region) -> Item:
        """The last item of a kind in a region that was `counted`."""
        return _last(self._units.again(region, 0, len(region.raw)), kind)

    def _counts_within(self, region: Region, at: int) -> bool:
        """Whether the line at byte `at` is no part of the traceback that has begun."""
        raw = region.raw[at : region.end_of(at)]
        unit = self._units.at_start(raw.translate(FORM), raw)
        return unit is not None and (unit.begins or (unit.alone and not self._closes(unit)))

    def _count(self, window: _Window, state: State, tally: _Tally) -> tuple[State, int, bool]:
        """What is open behind the lines that were counted, how many they are, and whether more may follow."""
        if state not in FULL:
            units = {form: self._units.at_start(form, window.line(index)) for form, index in window.latest.items()}
            if all(unit is None or unit.alone for unit in units.values()):
                count = self._count_lines(window, units, tally)
                return state, count, count == len(window.forms)
        return self._walk(window, state, tally)

    def _count_lines(self, window: _Window, units: Mapping[bytes, Unit | None], tally: _Tally) -> int:
        """Lines that each stand for themselves."""
        forms, latest, starts = window.forms, window.latest, window.starts
        others = [form for form, unit in units.items() if unit is None or not self._only_counts(unit)]
        first = min(map(forms.index, others), default=len(forms))
        if first < len(forms):
            latest = dict(zip(forms[:first], count()))
        numbers = Counter(forms[:first])
        for form, index in latest.items():
            unit = units[form]
            assert unit is not None
            _add(tally, unit, numbers[form], starts[index], starts[index + 1])
        return first

    def _walk(self, window: _Window, state: State, tally: _Tally) -> tuple[State, int, bool]:
        """Unit by unit, in a window in which some are of several lines, or behind a traceback that is full."""
        forms, starts, units = window.forms, window.starts, self._units
        counting: set[Unit] = set()
        most = units.read + MAX_NEW
        line = 0
        while line < len(forms) and units.read < most:
            if state in FULL:
                unit, stop = units.behind_full(state, forms[line], window.line(line)), line + 1
            else:
                unit, stop = units.whole(forms, window.line, line)
            if unit is None:
                return state, line, stop == len(forms)
            if unit not in counting and not self._only_counts(unit):
                return state, line, False
            counting.add(unit)
            if not unit.alone and state in FULL:
                state = unit.state
            elif not unit.alone and state != "clean":
                if state == "woven" or not unit.begins or any(counted.kinds for counted in tally):
                    return state, line, False
                self._lines.end_traceback()
                state = "clean"
            _add(tally, unit, 1, starts[line], starts[stop])
            line = stop
        return state, line, line == len(forms)

    def _closes(self, unit: Unit) -> bool:
        """Whether it ends a traceback that began before it."""
        return unit.raises and unit.alone and self._lines.tracebacks.open

    def _only_counts(self, unit: Unit) -> bool:
        return (
            all(map(self._items.full, unit.kinds))
            and not self._closes(unit)
            and all(self._lines.trainers.get(name, (0,))[0] >= weight for name, weight in unit.trainers)
        )

    def _drop(self, region: Region, tally: _Tally, add: Callable[[str, Item, int], None]) -> None:
        """Count the items of what was counted, and keep the last of each kind."""
        numbers: Counter[str] = Counter()
        last: dict[str, tuple[int, int]] = {}
        for unit, (number, start, stop) in tally.items():
            for kind in unit.kinds:
                numbers[kind] += number
                last[kind] = max((start, stop), last.get(kind, (-1, -1)))
        read = {part: self._units.again(region, *part) for part in set(last.values())}
        for kind, part in last.items():
            add(kind, _last(read[part], kind), numbers[kind])


def _last(items: Sequence[Item], kind: str) -> Item:
    """The last of some items that is of a kind."""
    return next(item for item in reversed(items) if kind_of(item) == kind)


def _add(tally: _Tally, unit: Unit, number: int, start: int, stop: int) -> None:
    """So many more of a unit; the last of them starts and stops at these bytes."""
    known = tally.get(unit)
    if known is None:
        tally[unit] = [number, start, stop]
    else:
        known[0] += number
        known[1:] = start, stop
