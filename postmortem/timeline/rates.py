"""Step times from the bar's own clock, and where they collapsed: for good, or for a while.

The bar's clock stands still while previews and saves run. Buckets of several sizes alternate: then fast steps stand
among the slow ones, and there is no change. Slow first steps (compiling, filling caches) are no change for the worse.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from itertools import pairwise
from math import fsum

from postmortem.model import BarSpan, Place, StepTimes, Stretch
from postmortem.text import LogText

COLLAPSE = 4.0
"""How many times slower a step must have become to be called a collapse, after few steps."""
SLOWER = 2.5
"""The same after STEADY steps on either side; public reports of spills begin at three."""
STEADY = 20
WHILE_S = 900.0
"""Seconds lost from which a slow stretch that passed is worth a word."""
MIN_SECONDS = 120.0
MIN_STEPS_BEFORE = 5
MIN_STEPS_AFTER = 3
MAX_POINTS = 240
MAX_STRETCHES = 200
APART_S = 20.0
"""Seconds between draws whose distance is measured for the line of step times."""

_Point = tuple[int, float, int, BarSpan]
"""Count, the bar's clock, line, and the span that it is in."""


def median(values: list[float]) -> float:
    """The middle value; of two middle ones the mean. (The standard library's costs 5 ms to import.)"""
    return _middle(sorted(values))


def _middle(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def step_times(spans: Sequence[BarSpan]) -> StepTimes | None:
    """The collapse of step time that the draws show, or None.

    Lasting means: every stretch after the change, to the end, is slower than the median before it by COLLAPSE (or
    SLOWER, where enough steps show it). One that passed is given where it cost WHILE_S or more.
    """
    points = _points(spans)
    return _collapse(_thin(points)) if points else None


def stretches(spans: Sequence[BarSpan]) -> tuple[Stretch, ...]:
    """How long the steps took, by stretches of APART_S at least, since the bar's clock has whole seconds."""
    found: list[Stretch] = []
    kept: list[_Point] = []
    for point in _points(spans):
        if not kept or point[1] >= kept[-1][1] + APART_S:
            kept.append(point)
    stride = -(-len(kept) // MAX_STRETCHES)
    kept = kept if stride < 2 else [*kept[:-1:stride], kept[-1]]
    for (n0, t0, _, _), (n1, t1, _, _) in pairwise(kept):
        if n1 > n0 and t1 > t0:
            found.append(Stretch(n0, n1 - 1, (t1 - t0) / (n1 - n0)))
    return tuple(found)


def _points(spans: Sequence[BarSpan]) -> list[_Point]:
    """The draws that show a finished step, and the start before them."""
    points: list[_Point] = []
    for span in spans:
        for n, clock, line in span.samples:
            # a finished step is drawn twice at one moment; the first draw has the count that took that long
            if not points or (n > points[-1][0] and clock > points[-1][1]):
                points.append((n, clock, line, span))
    if points:
        n, clock, line, span = points[0]
        if n > span.start_n or clock > 0:
            points.insert(0, (0 if span.start_n == n else span.start_n, 0.0, line, span))
    return points


def _thin(points: list[_Point]) -> list[_Point]:
    """At most MAX_POINTS of the draws, the last one always: the search below looks at every pair."""
    stride = -(-len(points) // MAX_POINTS)
    return points if stride < 2 else [*points[:-1:stride], points[-1]]


_Stretch = tuple[int, float, int, int, int, BarSpan]
"""Steps, seconds a step, first step, the line in which it ends, its last count, and its span."""


def _collapse(points: list[_Point]) -> StepTimes | None:
    stretches: list[_Stretch] = [
        (n1 - n0, (t1 - t0) / (n1 - n0), n0, line, n1, span)
        for (n0, t0, _, _), (n1, t1, line, span) in pairwise(points)
        if n1 > n0 and t1 >= t0
    ]
    slowest_after = [0.0] * len(stretches)
    least = float("inf")
    for index in range(len(stretches) - 1, -1, -1):
        least = min(least, stretches[index][1])
        slowest_after[index] = least
    before_steps = 0
    before: list[float] = []
    for cut in range(1, len(stretches)):
        before_steps += stretches[cut - 1][0]
        insort(before, stretches[cut - 1][1])
        if before_steps < MIN_STEPS_BEFORE:
            continue
        usual = _middle(before)
        if usual <= 0 or slowest_after[cut] < SLOWER * usual:
            continue
        after = stretches[cut:]
        steps = sum(stretch[0] for stretch in after)
        spent = fsum(stretch[0] * stretch[1] for stretch in after)
        shown = steps >= STEADY and before_steps >= STEADY
        if slowest_after[cut] < COLLAPSE * usual and not shown:
            continue
        if steps >= MIN_STEPS_AFTER and spent >= MIN_SECONDS:
            return _change(after, usual, lasting=True)
    return _passing(stretches)


def _change(slow: Sequence[_Stretch], usual: float, *, lasting: bool) -> StepTimes:
    steps = sum(stretch[0] for stretch in slow)
    spent = fsum(stretch[0] * stretch[1] for stretch in slow)
    _, _, step, line, count, span = slow[0]
    place = Place(line, span.place.offset, span.place.source)
    shown = LogText(f"{span.description.reveal()}: {count}/{span.total}")
    return StepTimes(usual, spent / steps, step, place, shown, slow[-1][4], spent - steps * usual, lasting)


def _passing(stretches: Sequence[_Stretch]) -> StepTimes | None:
    """The dearest run of slow stretches with good steps before and after it."""
    if len(stretches) < 3:
        return None
    usual = median([stretch[1] for stretch in stretches])
    best: StepTimes | None = None
    start: int | None = None
    for index, stretch in enumerate(stretches):
        slow = usual > 0 and stretch[1] >= COLLAPSE * usual
        if slow and start is None:
            start = index
        if start and not slow:
            run = stretches[start:index]
            if sum(one[0] for one in run) >= MIN_STEPS_AFTER:
                change = _change(run, usual, lasting=False)
                if change.lost_s >= WHILE_S and (best is None or change.lost_s > best.lost_s):
                    best = change
        if not slow:
            start = None
    return best
