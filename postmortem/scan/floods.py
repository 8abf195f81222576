"""Pass over the lines of a flood: lines alike but for their digits, of which only how many, and the last, is kept.

A log that repeats an error a million times would cost a million readings. Which entries claim a line does not depend on
which digits stand in it, as long as no expression or anchor that has a say in it names one; so lines are counted by
their form (all digits 0), each form is read once, and of each pattern the last line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate, count

import msgspec

from postmortem.knowledge.expressions import ignores_digits, with_any_digits
from postmortem.model import Event, Place
from postmortem.scan.clock import stamp_of
from postmortem.scan.items import Items
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.recognise import Recogniser
from postmortem.scan.segments import Region, Text
from postmortem.text import seen

WINDOW = 64 * 1024
"""Bytes that are counted at a time."""
MAX_FORMS = 256
"""Forms in a window; more are no flood."""
MAX_FORM = 512
"""Longest line that is part of a flood, in bytes."""
MAX_KNOWN = 2048
_FORM = bytes.maketrans(b"0123456789\r", b"0000000000\n")
_OPENS = frozenset(
    {"traceback", "chained", "traceback_boxed", "frame", "frame_boxed", "frame_unnumbered", "code_boxed"}
)
_STARTS = frozenset({"job_count", "job_banner", "process_count"})

Trainers = Mapping[str, tuple[int, Place]]


class Form(msgspec.Struct, frozen=True):
    """What lines of one form mean: the patterns of their events, whether one is an exception, trainers with weights."""

    patterns: tuple[str, ...] = ()
    raises: bool = False
    trainers: tuple[tuple[str, int], ...] = ()


class Floods:
    """Knows the forms of one log's lines."""

    def __init__(self, lexicon: Lexicon, source: str, recognise: Recogniser, items: Items, trainers: Trainers) -> None:
        self._lexicon = lexicon
        self._source = source
        self._recognise = recognise
        self._items = items
        self._trainers = trainers
        self._forms: dict[bytes, Form | None] = {b"": Form()}
        self._traceback = False

    def swallow(self, region: Region, at: int, before: Callable[[], None], *, traceback: bool) -> int:
        """Count the lines from byte `at` of `region` on that add nothing else; the byte at which reading must go on.

        It must be the start of a segment, and nothing may wait for the next line but, where `traceback` says so, a
        traceback for its exception. `before` is called before an event is counted.
        """
        self._traceback = traceback
        raw = region.raw
        while at < len(raw):
            end = raw.find(b"\n", at + WINDOW) + 1 or len(raw)
            reached = self._count(region, at, end, before)
            if reached < end:
                return reached
            at = end
        return at

    def _count(self, region: Region, at: int, end: int, before: Callable[[], None]) -> int:
        lines = region.raw[at:end].translate(_FORM).split(b"\n")
        if end < len(region.raw):
            lines.pop()  # what follows the last line feed belongs to the next window
        latest = dict(zip(lines, count()))
        if len(latest) > MAX_FORMS:
            return at
        ends = [size + index for index, size in enumerate(accumulate(map(len, lines)))]
        new = [form for form in latest if form not in self._forms]
        if len(self._forms) + len(new) > MAX_KNOWN:
            self._forms = {b"": Form()}
            new = list(latest)
        for form in new:
            stop = at + ends[latest[form]]
            self._forms[form] = self._read(form, region.raw[stop - len(form) : stop])
        first = min((lines.index(form) for form in latest if not self._only_counts(form)), default=len(lines))
        if first < len(lines):
            latest = dict(zip(lines[:first], count()))
        self._drop(region, at, ends, latest, Counter(lines[:first]), before)
        return min(end, at + (ends[first - 1] + 1 if first else 0))

    def _only_counts(self, form: bytes) -> bool:
        known = self._forms[form]
        return (
            known is not None
            and not (known.raises and self._traceback)
            and all(map(self._items.full, known.patterns))
            and all(self._trainers.get(name, (0,))[0] >= weight for name, weight in known.trainers)
        )

    def _drop(
        self,
        region: Region,
        at: int,
        ends: list[int],
        latest: Mapping[bytes, int],
        counts: Counter[bytes],
        before: Callable[[], None],
    ) -> None:
        """Count the events of the lines, and keep the last of each pattern."""
        numbers: Counter[str] = Counter()
        last: dict[str, int] = {}
        for form, index in latest.items():
            for pattern in self._patterns(form):
                numbers[pattern] += counts[form]
                last[pattern] = max(index, last.get(pattern, -1))
        if last:
            before()
        for pattern, index in last.items():
            start = at + (ends[index - 1] + 1 if index else 0)
            piece = region.segment(start, at + ends[index], region.lines())
            events = self._events(piece) if piece is not None else []
            self._items.drop([event for event in events if event.pattern == pattern][-1], numbers[pattern])

    def _patterns(self, form: bytes) -> tuple[str, ...]:
        known = self._forms[form]
        return known.patterns if known is not None else ()

    def _read(self, form: bytes, raw: bytes) -> Form | None:
        """What a line means if all of its form mean the same; None if they may not, or if it changes the state."""
        if raw.isspace():
            return Form()
        if len(raw) > MAX_FORM or b"%" in raw or b": : " in raw or any(word in form for word in self._numbered):
            return None
        text = seen(raw.decode("utf-8", "replace"))
        if text.rstrip().endswith("{"):
            return None
        entries = self._entries(raw)
        if entries is None:
            return Form()
        if b"0" in form and not all(_blind(item, text) for item in (*self._peeled, *entries)):
            return None
        failed = self._lexicon.broken.times
        events = self._events(Text(raw, 1, 0, 0))
        if self._lexicon.broken.times > failed or any(
            event.event in _OPENS or event.event in _STARTS for event in events
        ):
            return None
        return Form(
            tuple(event.pattern for event in events if event.role != "trainer"),
            any(event.exception is not None for event in events),
            tuple((event.event or "", int(event.reason or 0)) for event in events if event.role == "trainer"),
        )

    def _events(self, piece: Text) -> list[Event]:
        text = seen(piece.raw.decode("utf-8", "replace"))
        place = Place(piece.line, piece.offset, self._source, stamp_of(text, self._lexicon), piece.end)
        return list(self._recognise(text, place, self._entries(piece.raw) or ()))

    def _entries(self, raw: bytes) -> set[Compiled] | None:
        found = self._lexicon.found(raw)
        return {item for _, items in found for item in items} if found else None

    @cached_property
    def _numbered(self) -> tuple[bytes, ...]:
        """The forms of anchors that name a digit."""
        return tuple(word.translate(_FORM) for word in self._lexicon.words if word.translate(_FORM) != word)

    @property
    def _peeled(self) -> list[Compiled]:
        return [*self._lexicon.prefixes, *self._lexicon.carriers]


def _blind(item: Compiled, text: str) -> bool:
    """Whether an entry says the same of all lines that differ from `text` in their digits only."""
    if ignores_digits(item.pattern.regex):
        return True
    wider = with_any_digits(item.pattern.regex)
    return wider is not None and wider.search(text) is None
