"""What a scan has found so far, bounded: a flood of one kind is counted, and never hides how the run ended."""

from __future__ import annotations

import msgspec

from postmortem.model import BarSpan, Event, Item, Traceback
from postmortem.scan.bars import MAX_RANGES, MAX_SAMPLES

MAX_ITEMS = 30_000
"""Events kept of one log; beyond it the oldest attempts go first."""
MAX_ALIKE = 3_000
"""Events of one pattern kept of one attempt; what a flood adds after that is counted, not kept."""
MAX_SKIPS = 20_000
"""The same for what drops a batch: each may be a step of its own."""
MAX_SPANS = 6_000
"""Spans of bars kept apart; after that, those of one bar that follow each other become one."""
MAX_STARTS = 1_500


class Items:
    """The items in file order. `skips` are the patterns that tell of a dropped batch."""

    def __init__(self, skips: frozenset[str]) -> None:
        self._skips = skips
        self._items: list[Item] = []
        self._alike: dict[str, int] = {}
        self._latest: dict[str, tuple[int, Item]] = {}
        self._starts: list[int] = []
        self.dropped = 0

    @property
    def last(self) -> Item | None:
        """The newest item."""
        return self._items[-1] if self._items else None

    @property
    def newest(self) -> int:
        """The position of the newest item."""
        return len(self._items) - 1

    def replace(self, at: int, item: Event) -> None:
        """Put what an event became in its place."""
        self._items[at] = item

    def replace_exception(self, at: int, before: Event, item: Event) -> None:
        """The same for an exception, which may close the traceback behind it."""
        self._items[at] = item
        after = self._items[at + 1] if at + 1 < len(self._items) else None
        if isinstance(after, Traceback) and after.exception is before:
            self._items[at + 1] = msgspec.structs.replace(after, exception=item)

    def start(self) -> None:
        """A job starts: floods are counted anew."""
        self.put_back()
        self._alike = {}
        self._starts.append(len(self._items))

    def append(self, item: Item) -> bool:
        """Keep an item, or count it. True when older items had to go, and so all positions changed."""
        kind = item.pattern if isinstance(item, Event) else type(item).__name__
        alike = self._alike[kind] = self._alike.get(kind, 0) + 1
        if isinstance(item, BarSpan) and alike > MAX_SPANS:
            joined = _joined(self._items[-1], item)
            if joined is not None:
                self._items[-1] = joined
                return False
        if alike > (MAX_SKIPS if isinstance(item, BarSpan) or kind in self._skips else MAX_ALIKE):
            self._latest[kind] = (len(self._items), item)
            self.dropped += 1
            return False
        self._items.append(item)
        if len(self._items) <= MAX_ITEMS and len(self._starts) <= MAX_STARTS:
            return False
        self._forget()
        return True

    def full(self, pattern: str) -> bool:
        """Whether what comes of this pattern is only counted."""
        return self._alike.get(pattern, 0) >= (MAX_SKIPS if pattern in self._skips else MAX_ALIKE)

    def drop(self, last: Event, count: int) -> None:
        """Count events of a pattern that is full; `last` is the last of them."""
        self._latest[last.pattern] = (len(self._items), last)
        self.dropped += count

    def put_back(self) -> None:
        """Of what a flood added, the last of each pattern counts: it may be what ended the run."""
        self.dropped -= len(self._latest)
        for at, item in sorted(self._latest.values(), key=lambda kept: kept[0], reverse=True):
            self._items.insert(at, item)
        self._latest = {}

    def all(self) -> tuple[Item, ...]:
        """Everything that was kept."""
        return tuple(self._items)

    def _forget(self) -> None:
        """Drop the older half, as far as possible at the start of an attempt."""
        half = len(self._items) // 2
        if len(self._starts) > MAX_STARTS:
            half = self._starts[len(self._starts) // 2]
        at = next((start for start in self._starts if start >= half), half)
        self.put_back()
        self.dropped += at
        del self._items[:at]
        self._starts = [start - at for start in self._starts if start >= at]


def _joined(before: Item, span: BarSpan) -> BarSpan | None:
    """Two spans of one bar as one; None where they are not of one."""
    if not isinstance(before, BarSpan) or before.description != span.description or before.total != span.total:
        return None
    if before.start_n != span.start_n or span.first_n < before.last_n:
        return None
    samples = before.samples + span.samples
    walls = before.walls + span.walls if before.walls and span.walls else ()
    step = 2 if len(samples) > 2 * MAX_SAMPLES else 1
    return msgspec.structs.replace(
        span,
        place=before.place,
        first_n=before.first_n,
        draws=before.draws + span.draws,
        unproven=(before.unproven + span.unproven)[:MAX_RANGES],
        samples=(*samples[:-1:step], samples[-1]),
        walls=(*walls[:-1:step], walls[-1]) if walls else (),
    )
