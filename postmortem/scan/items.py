"""What a scan has found so far, bounded: a flood of one kind is counted, and never hides how the run ended."""

from __future__ import annotations

import msgspec

from postmortem.model import BarSpan, Event, Item, Traceback
from postmortem.scan.spans import Main, thinned

MAX_ITEMS = 25_000
"""Events kept of one log; beyond it the oldest attempts go first."""
MAX_ALIKE = 3_000
"""Events of one pattern kept of one attempt; what a flood adds after that is counted, not kept."""
MAX_SKIPS = 20_000
"""The same for what drops a batch: each may be a step of its own; and for spans of bars that are left."""
MAX_SPANS = 1_500
"""Spans of bars that an attempt may add before those of its middle become fewer."""
KEPT = 400
"""Items of an attempt's start, and its newest ones, that stay as they are."""
BACK = 16
"""Spans that were thinned with which new ones may be joined."""
MAX_STARTS = 1_500
HEAD = 64
"""Items between the first lines of one attempt, at most."""


STARTS = frozenset({"job_count", "job_banner", "process_count"})
"""Events at which a job starts."""


def kind_of(item: Item) -> str:
    """What an item is counted as: an event as one of its pattern."""
    return item.pattern if isinstance(item, Event) else type(item).__name__


class Items:
    """The items in file order. `skips` are the patterns that tell of a dropped batch."""

    def __init__(self, skips: frozenset[str]) -> None:
        self._skips = skips
        self._items: list[Item] = []
        self._alike: dict[str, int] = {}
        self._latest: dict[str, tuple[int, Item]] = {}
        self._starts: list[int] = []
        self._main = Main("")
        self._spans = 0
        """Spans since the middle was thinned last."""
        self._kept_spans = 0
        """Spans that are left of what was thinned."""
        self._seen = self._thinned = 0
        """Up to where spans were asked for the training bar, and up to where they were thinned."""
        self.dropped = 0
        self.jobs = 0
        """Jobs that have started."""

    @property
    def last(self) -> Item | None:
        """The newest item."""
        return self._items[-1] if self._items else None

    def replace(self, before: Event, item: Event) -> None:
        """Put what an event of late became in its place; in that of the traceback behind it that it closed, too."""
        for at in range(len(self._items) - 1, max(-1, len(self._items) - 1 - KEPT), -1):
            if self._items[at] is before:
                self._items[at] = item
                after = self._items[at + 1] if at + 1 < len(self._items) else None
                if isinstance(after, Traceback) and after.exception is before:
                    self._items[at + 1] = msgspec.structs.replace(after, exception=item)
                return

    def start(self, job: str | None = None) -> None:
        """A job starts: floods are counted anew. `job` is its name, None where this does not say it."""
        self.put_back()
        self._alike = {}
        self.jobs += 1
        self._starts.append(len(self._items))
        self._main = Main(self._main.job if job is None else job)
        self._spans = self._kept_spans = 0
        self._seen = self._thinned = len(self._items)

    def append(self, item: Item) -> None:
        """Keep an item, or count it."""
        if isinstance(item, BarSpan):
            self._spans += 1
            if self._spans > MAX_SPANS:
                self._thin()
        else:
            kind = kind_of(item)
            alike = self._alike[kind] = self._alike.get(kind, 0) + 1
            if alike > (MAX_SKIPS if kind in self._skips else MAX_ALIKE):
                self._latest[kind] = (len(self._items), item)
                self.dropped += 1
                return
        self._items.append(item)
        if len(self._items) > MAX_ITEMS or len(self._starts) > MAX_STARTS:
            self._forget()

    def full(self, kind: str) -> bool:
        """Whether what comes of this kind is only counted."""
        return self._alike.get(kind, 0) >= (MAX_SKIPS if kind in self._skips else MAX_ALIKE)

    def drop(self, last: Item, count: int) -> None:
        """Count items of a kind that is full; `last` is the last of them."""
        self._latest[kind_of(last)] = (len(self._items), last)
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

    def _thin(self) -> None:
        """Make the spans fewer that are neither of the attempt's start nor of late."""
        self.put_back()
        self._main.see(self._items[self._seen :])
        first = max(self._thinned, (self._starts[-1] if self._starts else 0) + KEPT)
        end = len(self._items) - KEPT
        self._spans = 0
        if end <= first:
            self._seen = len(self._items)
            return
        kept, dropped = thinned(self._items[first:end], self._main.name, self._kept_spans)
        spans = sum(isinstance(item, BarSpan) for item in kept)
        if self._kept_spans + spans > MAX_SKIPS:
            kept = [item for item in kept if not isinstance(item, BarSpan)]
            dropped += spans
            spans = 0
        self._kept_spans += spans
        self._items[first:end] = kept
        self.dropped += dropped
        self._thinned = first + len(kept)
        lowest = max(first, self._thinned - BACK)
        while self._thinned > lowest and isinstance(self._items[self._thinned - 1], BarSpan):
            self._thinned -= 1  # what comes may go on with these
            self._kept_spans -= 1
        self._seen = len(self._items)

    def _forget(self) -> None:
        """Drop the older half, as far as possible at the start of an attempt; else the middle of a long one."""
        half = len(self._items) // 2
        if len(self._starts) > MAX_STARTS:
            half = self._starts[len(self._starts) // 2]
        at = next((start for start in self._starts if start >= half), half)
        self.put_back()
        head = self._head(at)
        self.dropped += at - len(head)
        self._items[:at] = head
        moved = at - len(head)
        self._starts = [start - moved for start in self._starts if start >= at] or ([0] if head else [])
        self._seen = max(0, self._seen - moved)
        self._thinned = max(0, self._thinned - moved)
        self._kept_spans = sum(isinstance(item, BarSpan) for item in self._items[: self._thinned])

    def _head(self, at: int) -> list[Item]:
        """The first items of the attempt that goes on at item `at`; nothing where one starts there."""
        if not self._starts or self._starts[-1] >= at:
            return []
        first = self._starts[-1]
        for start in reversed(self._starts):
            if start < first - HEAD:
                break
            first = start
        return self._items[first : min(at, first + KEPT)]
