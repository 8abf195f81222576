"""Step times from the bar's own clock, and the point from which they collapsed for good."""

from __future__ import annotations

from collections.abc import Sequence

from postmortem.model import BarSpan, StepTimes

COLLAPSE = 4.0
"""How many times slower a step must have become to be called a collapse."""
MIN_SECONDS = 120.0
MIN_STEPS_BEFORE = 5
MIN_STEPS_AFTER = 3


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
    points = [(n, clock, span) for span in spans for n, clock in span.samples]
    if not points:
        return None
    if points[0][0] > points[0][2].start_n or points[0][1] > 0:
        points.insert(0, (0 if points[0][2].start_n == points[0][0] else points[0][2].start_n, 0.0, points[0][2]))
    stretches: list[tuple[int, float, BarSpan]] = []
    for (n0, t0, _), (n1, t1, span) in zip(points, points[1:]):
        if n1 > n0 and t1 >= t0:
            stretches.append((n1 - n0, (t1 - t0) / (n1 - n0), span))
    starts: list[int] = []
    count = points[0][0]
    for steps, _, _ in stretches:
        starts.append(count)
        count += steps
    for cut in range(1, len(stretches)):
        before, after = stretches[:cut], stretches[cut:]
        if sum(s for s, _, _ in before) < MIN_STEPS_BEFORE or sum(s for s, _, _ in after) < MIN_STEPS_AFTER:
            continue
        usual = median([rate for _, rate, _ in before])
        if usual <= 0 or min(rate for _, rate, _ in after) < COLLAPSE * usual:
            continue
        spent = sum(steps * rate for steps, rate, _ in after)
        if spent < MIN_SECONDS:
            continue
        return StepTimes(usual, spent / sum(s for s, _, _ in after), starts[cut], after[0][2].place)
    return None
