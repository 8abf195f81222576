"""Which steps were skipped, and at which step a run died: from the bar, not from where a banner stands.

Piped, Python's stdout is block-buffered while tqdm's stderr is not: the banners of several skips come out
in one lump, many bars late. The bar tells the truth in every capture mode (see scan/bars.py). Where the bar
was thinned out (a pasted log), banners are placed by what stands before them, and where even that says
nothing, the step stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.model import BarSpan, Event, Item

MAX_UNPROVEN = 20_000
DENSE = 1.5
"""Draws a step of a bar that nobody thinned out: a finished step is drawn twice."""


class Placement(msgspec.Struct, frozen=True):
    """The steps of the banners, in order, and how they were found."""

    steps: tuple[int | None, ...]
    extra: tuple[int, ...]
    last_bar: int | None
    death_step: int | None
    confirmed: bool
    buffered: bool
    excerpt: bool
    counts_completed: bool


def main_description(items: Sequence[Item], job_name: str | None) -> str | None:
    """The description of the training bar: the job's name, else the bar that no other pattern knows."""
    best: tuple[int, int, int] | None = None
    found: str | None = None
    for item in items:
        if isinstance(item, BarSpan) and item.event in (None, "bar_main") and item.description:
            name = item.description.reveal()
            if job_name is not None and name == job_name:
                return name
            key = (int(item.event == "bar_main"), int(bool(item.postfix)), item.total)
            if best is None or key > best:
                best, found = key, name
    return found


def is_main(item: Item, name: str | None) -> bool:
    """Whether `item` is a span of the training bar called `name`."""
    return (
        isinstance(item, BarSpan)
        and name is not None
        and item.event in (None, "bar_main")
        and item.description.reveal() == name
    )


def place(
    items: Sequence[Item], name: str | None, start_step: int, *, died: bool, silent: bool, done: Sequence[int] = ()
) -> Placement:
    """Find the step of every skip banner among `items` (one attempt) and the step at death.

    `done` are steps in which a save was announced: they had been trained. `silent`: the log just ends, so
    banners may have died in a buffer; then what the bar alone shows as skipped is given as `extra`.
    """
    spans = [item for item in items if isinstance(item, BarSpan) and is_main(item, name)]
    banners = [item for item in items if isinstance(item, Event) and item.role == "skip"]
    if not spans:
        return Placement((None,) * len(banners), (), None, None, False, False, False, True)
    last = spans[-1]
    draws = sum(span.draws for span in spans)
    excerpt = spans[0].first_n > start_step or draws < last.last_n - spans[0].first_n + 1
    counts_completed = not (not excerpt and spans[-1].start_proofs > 1)
    offset = 0 if counts_completed else 1
    unproven = _expand(spans, last.total)
    proven_last = last.last_proven
    death = last.last_n + offset + (1 if proven_last and not excerpt and counts_completed else 0)
    if done and not excerpt:
        death = max(death, max(done) + 1)
    steps: tuple[int | None, ...] | None = None
    if silent and not excerpt and unproven and draws >= DENSE * (last.last_n - spans[0].first_n):
        counts = tuple(count + offset for count in unproven)
        shown = counts[: len(banners)]
        if (
            len(counts) > len(banners)
            and len(counts) <= (last.last_n - spans[0].first_n) // 2
            and _counters_fit(banners, shown)
        ):
            return Placement(shown, counts[len(banners) :], last.last_n, death, True, True, excerpt, counts_completed)
    if banners and not excerpt:
        candidates = [count + offset for count in unproven]
        if died and len(candidates) + 1 == len(banners) and not proven_last:
            candidates.append(last.last_n + offset)
        if len(candidates) == len(banners) and _counters_fit(banners, candidates):
            steps = tuple(candidates)
    if steps is not None:
        late = _late(items, name, steps)
        return Placement(steps, (), last.last_n, death, True, late, excerpt, counts_completed)
    placed, stalled = _by_position(items, name, offset)
    if died and stalled is not None:
        death = stalled
    return Placement(placed, (), last.last_n, death, False, _lumped(items, name), excerpt, counts_completed)


def _expand(spans: Sequence[BarSpan], total: int) -> list[int]:
    counts: list[int] = []
    for span in spans:
        for start, end in span.unproven:
            counts.extend(range(start, min(end, total, start + MAX_UNPROVEN)))
            if len(counts) > MAX_UNPROVEN:
                return counts[:MAX_UNPROVEN]
    return counts


def _counters_fit(banners: Sequence[Event], steps: Sequence[int]) -> bool:
    """A banner that says 2/3 follows its predecessor by exactly one step."""
    for index in range(1, len(banners)):
        count = _counter(banners[index])
        if count is not None and count > 1 and steps[index] != steps[index - 1] + 1:
            return False
    return True


def _counter(banner: Event) -> int | None:
    text = banner.groups.get("count")
    return int(text.reveal()[:3]) if text else None


def _late(items: Sequence[Item], name: str | None, steps: Sequence[int | None]) -> bool:
    """Whether banners came out behind the bar: the bar had moved two counts on before one was printed."""
    index = 0
    count = 0
    for item in items:
        if isinstance(item, BarSpan) and is_main(item, name):
            count = item.last_n
        elif isinstance(item, Event) and item.role == "skip":
            step = steps[index]
            index += 1
            if step is not None and count > step + 1:
                return True
    return False


def _lumped(items: Sequence[Item], name: str | None) -> bool:
    """Two banners that both start a new count, with no bar between: they were held back in a buffer."""
    fresh = 0
    for item in items:
        if is_main(item, name):
            fresh = 0
        elif isinstance(item, Event) and item.role == "skip":
            if _counter(item) == 1:
                fresh += 1
            if fresh > 1:
                return True
    return False


def _by_position(items: Sequence[Item], name: str | None, offset: int) -> tuple[tuple[int | None, ...], int | None]:
    """Steps by the bar that stands before each banner; also the bar's count if a final lump has no bar in it."""
    steps: list[int | None] = []
    count: int | None = None
    lump: list[int] = []
    for item in items:
        if isinstance(item, BarSpan) and is_main(item, name):
            count = item.last_n + offset
            lump = []
        elif isinstance(item, Event) and item.role == "skip":
            base = count
            if base is not None and lump:
                previous = steps[-1]
                counter = _counter(item)
                base = previous + 1 if previous is not None and counter is not None and counter > 1 else None
            lump.append(len(steps))
            steps.append(base)
        elif isinstance(item, Event) and item.role == "abort":
            if len(lump) > 1 and count is not None:
                for index in lump[1:]:
                    steps[index] = None
                return tuple(steps), count
            break
    return tuple(steps), None
