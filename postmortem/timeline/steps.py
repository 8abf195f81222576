"""Which steps were skipped, and at which step a run died: from the bar, not from where a banner stands.

Piped, Python's stdout is block-buffered while tqdm's stderr is not: the banners of several skips come out
in one lump, many bars late. The bar tells the truth in every capture mode (see scan/bars.py). Where the bar
was thinned out (a pasted log), banners are placed by what stands before them, and where even that says
nothing, the step stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec

from postmortem.model import BarSpan, Event, Item
from postmortem.timeline import training_bar

MAX_UNPROVEN = 20_000
MAX_SUSPECTS = 12
SURE = 5
"""Steps that the bar must have passed before its way of counting is proven."""
MAX_ROW = 3
"""Dropped batches in a row that a run survives."""
DENSE = 1.5
"""Draws a step of a bar that nobody thinned out: a finished step is drawn twice."""


class Placement(msgspec.Struct, frozen=True):
    """The steps of the banners, in order, and how they were found.

    `extra` are steps that only the bar shows as skipped, `last_bar` the bar's last count, `death_step` the step that
    was at work then. `confirmed`: the counts that no step finished on the bar explain the banners; `buffered`: they
    came out late; `excerpt`: the bar was thinned out, or its start is missing. `counts_completed` is how it counts:
    else it shows the step just run.
    """

    steps: tuple[int | None, ...]
    extra: tuple[int, ...]
    last_bar: int | None
    death_step: int | None
    confirmed: bool
    buffered: bool
    excerpt: bool
    counts_completed: bool
    proves_count: bool = False
    """Whether the bar itself shows how it counts, so that this is no default."""


def place(
    items: Sequence[Item], name: str | None, start_step: int, *, died: bool, silent: bool, done: Sequence[int] = ()
) -> Placement:
    """Find the step of every skip banner among `items` (one attempt) and the step at death.

    `done` are steps in which a save was announced: they had been trained. `silent`: the log just ends, so
    banners may have died in a buffer; then what the bar alone shows as skipped is given as `extra`.
    """
    spans = training_bar.spans(items, name)
    banners = [item for item in items if isinstance(item, Event) and item.role == "skip"]
    aborted = any(isinstance(item, Event) and item.role == "abort" for item in items)
    if not spans:
        return Placement((None,) * len(banners), (), None, None, False, False, False, True)
    last = spans[-1]
    passed = last.last_n - spans[0].first_n
    draws = sum(span.draws for span in spans)
    # a real bar is redrawn over a carriage return; draws on lines of their own were rewritten by somebody
    rewritten = not any(span.redrawn for span in spans) and draws < DENSE * (passed + 2)
    excerpt = rewritten or spans[0].first_n > start_step or 2 * draws < passed + 1
    # a bar that lags by one is drawn again at its first count once that step is over, with or without a postfix
    counts_completed = excerpt or not (last.start_said > 1 or last.start_blank > 1)
    if excerpt and not rewritten and 2 * draws >= passed + 1:
        counts_completed = not _lags_at_saves(items, name)
    offset = 0 if counts_completed else 1
    # with no step lost, a bar that counts the step at work as done would have been drawn twice at its first count
    plain = not excerpt and not banners and last.start_proofs == 1 and passed >= SURE and not last.unproven
    death = _death(last, start_step, offset, excerpt=excerpt, aborted=aborted, done=done)

    def found(steps: Sequence[int | None], *, extra: Sequence[int] = (), confirmed: bool, buffered: bool) -> Placement:
        return Placement(
            *(tuple(steps), tuple(extra), last.last_n, death, confirmed, buffered, excerpt, counts_completed),
            proves_count=not counts_completed or plain,
        )

    if not excerpt:
        counts = [count + offset for count in _expand(spans, last.total)]
        if not counts_completed:
            counts = [*_first_skips(last), *counts]
        for steps in _candidates(counts, len(banners), last, offset, death, aborted=aborted, done=done):
            if _counters_fit(banners, steps):
                return found(steps, confirmed=bool(banners), buffered=_late(items, name, steps))
        shown, rest = counts[: len(banners)], counts[len(banners) :]
        plausible = rest and draws >= DENSE * passed and 2 * len(counts) <= passed and _skips(last, counts)
        if silent and plausible and _counters_fit(banners, shown):
            return found(shown, extra=rest, confirmed=True, buffered=True)
        if _lumped(items, name):
            return found([None] * len(banners), confirmed=False, buffered=True)
    whole = spans[0].first_n <= start_step
    placed, stalled = _by_position(items, name, offset, start_step if whole else None)
    if died and stalled is not None:
        death = stalled
    return found(placed, confirmed=False, buffered=_lumped(items, name))


def _lags_at_saves(items: Sequence[Item], name: str | None) -> bool:
    """Whether a save was announced while the bar, drawn at the end of that step, still stood one count before it.

    A bar that counts completed steps stands at the step's own number then, and held-back lines come later still.
    """
    count: int | None = None
    seen: set[bool] = set()
    for item in items:
        if training_bar.is_span(item, name):
            count = item.last_n
        elif isinstance(item, Event) and item.event == "saving" and count is not None:
            step = item.number("step")
            if step is not None:
                seen.add(step == count + 1)
    return seen == {True}


def _skips(last: BarSpan, counts: Sequence[int]) -> bool:
    """Whether `counts` can be dropped batches: a fourth in a row ends a run, and a loss that is NaN never changes."""
    rows = any(later - count == MAX_ROW for count, later in zip(counts, counts[MAX_ROW:], strict=False))
    return not rows and not _no_number(last)


def _no_number(bar: BarSpan) -> bool:
    return "nan" in bar.postfix.reveal().lower()


def open_counts(last: BarSpan, offset: int) -> int:
    """How many steps at the end of a bar that nobody thinned out show no sign that they were finished."""
    if last.proven_n is None or _no_number(last):
        return 0
    return max(0, last.last_n + offset - 1 - _proven_step(last, offset))


def _death(last: BarSpan, start_step: int, offset: int, *, excerpt: bool, aborted: bool, done: Sequence[int]) -> int:
    """The step that was at work when the bar was last drawn."""
    if excerpt:
        return max([last.last_n + offset, *(step + 1 for step in done)])
    if aborted:
        # three skipped and the fourth fatal, counted from the last step that was finished; draws may be missing
        proven = max(start_step - 1, _proven_step(last, offset))
        if last.last_n + offset <= proven + 4:
            return proven + 4
    proven = last.last_proven and (offset == 0 or _second_done(last))
    step = min(last.last_n + offset + (1 if proven else 0), last.total)  # a closed bar is drawn once more
    return max(step, max(done) + 1) if done else step


def _proven_step(bar: BarSpan, offset: int) -> int:
    """The last step whose end the bar shows; -1 for none."""
    if bar.proven_n is None:
        return -1
    return bar.proven_n + (offset if bar.proven_n > bar.start_n or _drawn_twice(bar) else 0)


def _second_done(bar: BarSpan) -> bool:
    """Whether a bar that lags has shown the end of the step after its first count, which it draws at that count."""
    return bar.last_n > bar.start_n or _drawn_twice(bar)


def _drawn_twice(bar: BarSpan) -> bool:
    return bar.start_blank > 1 or bar.start_proofs > 1 or bar.start_said > 2


def _first_skips(bar: BarSpan) -> list[int]:
    """Of a bar that lags: which of the two steps that it draws at its first count were dropped, as it has left it.

    A step that ends well draws a new postfix; the first of the two then draws the bar again, dropped or not.
    """
    skipped = [bar.start_n] if bar.start_blank > 1 else []
    if bar.last_n > bar.start_n and bar.start_said and not _drawn_twice(bar):
        skipped.append(bar.start_n + 1)
    return skipped


def _candidates(
    counts: list[int], wanted: int, last: BarSpan, offset: int, death: int, *, aborted: bool, done: Sequence[int]
) -> Iterator[list[int]]:
    """Readings of the counts that the bar left unfinished, as many as there are banners; the plainest first."""
    if len(counts) == wanted:
        yield counts
    if aborted:
        # the last streak is known from the abort, whatever of it was drawn
        before = [count for count in counts if count < death - 3]
        whole = [*before, *range(death - 3, death)]
        if len(whole) == wanted:
            yield whole
    elif len(counts) + 1 == wanted:
        # the skip that the log ends on: the bar has not left its count yet, or was not drawn again
        yield [*counts, last.last_n + offset + (1 if last.last_proven else 0)]
    # the first step after a save has one draw only; a loss that repeats hides that it was finished
    suspects = sorted({step + 1 for step in done} & set(counts))
    excess = len(counts) - wanted
    if 0 < excess <= len(suspects) and len(suspects) < MAX_SUSPECTS:
        for dropped in combinations(suspects, excess):
            yield [count for count in counts if count not in dropped]


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
        if training_bar.is_span(item, name):
            count = item.last_n
        elif isinstance(item, Event) and item.role == "skip":
            step = steps[index]
            index += 1
            if step is not None and count > step + 1:
                return True
    return False


def _lumped(items: Sequence[Item], name: str | None) -> bool:
    """Whether banners were held back in a buffer and came out together."""
    return any(_held_back(lump) for lump in _lumps(items, name))


def _held_back(lump: Sequence[tuple[int, int | None]]) -> bool:
    """Two banners that both start a new count, with no bar between: none of them stands where it happened."""
    return sum(counter == 1 for _, counter in lump) > 1


def _by_position(
    items: Sequence[Item], name: str | None, offset: int, start: int | None
) -> tuple[tuple[int | None, ...], int | None]:
    """Steps by the bar that stands before each banner; also the bar's count if a final lump has no bar in it.

    `start` is the step at which the bar begins, None where its beginning is missing.
    """
    steps: list[int | None] = []
    count: int | None = None
    lump: list[int] = []
    counter: int | None = None
    stalled: int | None = None
    aborted = False
    blank = False
    """Whether the bar has shown no step that ended well."""
    for item in items:
        if training_bar.is_span(item, name):
            count = item.last_n + offset
            blank = not item.postfix.reveal()
            lump = []
        elif isinstance(item, Event) and item.role == "skip":
            base = count
            previous = steps[-1] if steps else None
            in_a_row = previous is not None and _counter(item) == (counter or 0) + 1 > 1
            counter = _counter(item)
            if base is not None and previous is not None and in_a_row and abs(previous + 1 - base) <= 1:
                base = previous + 1  # the counter knows that no good step came between, wherever the bar stood
            elif base is not None and lump:
                base = previous + 1 if previous is not None and counter is not None and counter > 1 else None
            lump.append(len(steps))
            steps.append(base)
        elif isinstance(item, Event) and item.role == "abort" and not aborted:
            aborted = True
            first = steps[lump[0]] if lump else None
            if start is not None and first is not None and blank and len(steps) == len(lump) == MAX_ROW:
                first = start  # no step ever ended well, wherever the bar stands by now
            if start is not None and first is not None and first <= start + 1:
                # held back, they would stand behind a bar that has passed them all: it cannot be that early
                steps[lump[0] :] = [first + at for at in range(len(lump))]
                stalled = count if len(lump) > 1 else None
            elif len(lump) > 1 and count is not None:
                for index in lump[1:]:
                    steps[index] = None
                stalled = count
    for lump_of in _lumps(items, name):
        if _held_back(lump_of):
            for index, _ in lump_of:
                steps[index] = None
    return tuple(steps), stalled


def _lumps(items: Sequence[Item], name: str | None) -> Iterator[list[tuple[int, int | None]]]:
    """The banners with no training bar between them: each its number and its counter."""
    lump: list[tuple[int, int | None]] = []
    number = 0
    for item in items:
        if training_bar.is_span(item, name):
            if lump:
                yield lump
            lump = []
        elif isinstance(item, Event) and item.role == "skip":
            lump.append((number, _counter(item)))
            number += 1
    if lump:
        yield lump
