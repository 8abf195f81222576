"""Step times from the bar's own clock, and the point from which they collapsed for good."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from postmortem.model import BarSpan, Place, StepTimes
from postmortem.text import LogText

COLLAPSE = 4.0
"""How many times slower a step must have become to be called a collapse."""
MIN_SECONDS = 120.0
MIN_STEPS_BEFORE = 5
MIN_STEPS_AFTER = 3
MAX_POINTS = 240

_Point = tuple[int, float, Place, BarSpan]


def median(values: list[float]) -> float:
    """The middle value; of two middle ones the mean. (The standard library's costs 5 ms to import.)"""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def step_times(spans: Sequence[BarSpan]) -> StepTimes | None:
    """The lasting collapse of step time that the draws show, or None.

    Lasting means: every stretch after the change, to the end, is at least COLLAPSE times slower than the
    median before it. Previews, saves and single slow buckets do not do that.
    """
    points: list[_Point] = []
    for span in spans:
        for n, clock, line in span.samples:
            # a finished step is drawn twice at one moment; the first draw has the count that took that long
            if not points or (n > points[-1][0] and clock > points[-1][1]):
                points.append((n, clock, Place(line, span.place.offset, span.place.source), span))
    if not points:
        return None
    n, clock, place, span = points[0]
    if n > span.start_n or clock > 0:
        points.insert(0, (0 if span.start_n == n else span.start_n, 0.0, place, span))
    return _collapse(_thin(points))


def _thin(points: list[_Point]) -> list[_Point]:
    """At most MAX_POINTS of the draws, the last one always: the search below looks at every pair."""
    stride = -(-len(points) // MAX_POINTS)
    return points if stride < 2 else [*points[:-1:stride], points[-1]]


def _collapse(points: list[_Point]) -> StepTimes | None:
    stretches = [
        (n1 - n0, (t1 - t0) / (n1 - n0), n0, place, n1, span)
        for (n0, t0, _, _), (n1, t1, place, span) in pairwise(points)
        if n1 > n0 and t1 >= t0
    ]
    slowest_after = [0.0] * len(stretches)
    least = float("inf")
    for index in range(len(stretches) - 1, -1, -1):
        least = min(least, stretches[index][1])
        slowest_after[index] = least
    before_steps = 0
    for cut in range(1, len(stretches)):
        before_steps += stretches[cut - 1][0]
        if before_steps < MIN_STEPS_BEFORE:
            continue
        usual = median([stretch[1] for stretch in stretches[:cut]])
        if usual <= 0 or slowest_after[cut] < COLLAPSE * usual:
            continue
        after = stretches[cut:]
        steps = sum(stretch[0] for stretch in after)
        spent = sum(stretch[0] * stretch[1] for stretch in after)
        if steps >= MIN_STEPS_AFTER and spent >= MIN_SECONDS:
            _, _, step, place, count, span = after[0]
            shown = LogText(f"{span.description.reveal()}: {count}/{span.total}")
            return StepTimes(usual, spent / steps, step, place, shown)
    return None
