"""How long things took, by the times in front of the lines. Cheap: only events, and ends of bars, carry one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from postmortem.model import BarSpan, Item, Pace, Stage, Stamp
from postmortem.timeline import training_bar
from postmortem.timeline.rates import median

_DAY_S = 86_400.0
APART_S = 20.0
"""Seconds between draws whose distance is measured."""
_HALF_DAY_S = _DAY_S / 2


def first_stamp(items: Iterable[Item]) -> Stamp | None:
    """The first time that a line of `items` carries."""
    return next((item.place.stamp for item in items if item.place.stamp is not None), None)


def elapsed(stamps: Iterable[Stamp | None], start: Stamp | None) -> list[float | None]:
    """Seconds since `start` for stamps in the order of the log; None where a line has no time or one of another kind.

    A clock without a date that jumps back by more than half a day has passed midnight.
    """
    found: list[float | None] = []
    days = 0.0
    last = start.seconds if start else 0.0
    for stamp in stamps:
        if start is None or stamp is None or stamp.kind != start.kind:
            found.append(None)
            continue
        if stamp.kind == "clock":
            if stamp.seconds < last - _HALF_DAY_S:
                days += _DAY_S
            last = stamp.seconds
        seconds = stamp.seconds + days - start.seconds
        found.append(seconds if seconds >= 0 else None)
    return found


def pace(
    items: Sequence[Item], stages: Sequence[Stage], name: str | None, start: Stamp | None, last: Stamp | None
) -> Pace:
    """Durations of one attempt. `last` is the time of the log's last line, where this attempt reaches it."""
    main = training_bar.spans(items, name)
    bar_step = _per_step(main)
    if start is None:
        return Pace(bar_step_s=bar_step)
    ends: list[Stamp | None] = []
    bar_at = -1
    for item in items:
        if isinstance(item, BarSpan):
            if training_bar.is_span(item, name):
                bar_at = len(ends)
            ends.append(item.last_place.stamp)
        else:
            ends.append(item.place.stamp)
    times = elapsed([*ends, last], start)
    known = [seconds for seconds in times if seconds is not None]
    whole = max(known, default=None)
    bar = times[bar_at] if bar_at >= 0 else None
    return Pace(
        whole_s=whole,
        phases=_phases(stages, start, whole),
        silent_s=whole - bar if whole is not None and bar is not None else None,
        bar_step_s=bar_step,
        wall_step_s=_wall_step(main),
    )


def _phases(stages: Sequence[Stage], start: Stamp, whole: float | None) -> tuple[tuple[str, float], ...]:
    """Seconds in each phase, in the order in which they began: from its first line to the first of another."""
    moments: list[Stamp | None] = []
    for stage in stages:
        moments += [stage.since, stage.place.stamp]
    times = elapsed(moments, start)
    spent: dict[str, float] = {}
    phase: str | None = None
    since = 0.0
    for index, stage in enumerate(stages):
        begun = times[2 * index] if times[2 * index] is not None else times[2 * index + 1]
        if begun is None or stage.phase == phase:
            continue
        if phase is not None:
            spent[phase] = spent.get(phase, 0.0) + max(0.0, begun - since)
        phase, since = stage.phase, begun
    if phase is not None and whole is not None:
        spent[phase] = spent.get(phase, 0.0) + max(0.0, whole - since)
    return tuple(spent.items())


def _per_step(main: Sequence[BarSpan]) -> float | None:
    """The usual seconds a step by the bar's own clock, which stands still while previews and saves run."""
    found: list[float] = []
    for span in main:
        points = [span.samples[index] for index in _moved(span)]
        found.extend((t1 - t0) / (n1 - n0) for (n0, t0, _), (n1, t1, _) in pairwise(points))
    return median(found) if found else None


def _wall_step(main: Sequence[BarSpan]) -> float | None:
    """The same by the wall clock, between draws with nothing between them."""
    found: list[float] = []
    for span in main:
        if len(span.walls) != len(span.samples):
            continue
        times = elapsed(span.walls, span.walls[0])
        points = [(span.samples[index][0], times[index]) for index in _moved(span)]
        for (n0, t0), (n1, t1) in pairwise(points):
            if t0 is not None and t1 is not None and t1 >= t0:
                found.append((t1 - t0) / (n1 - n0))
    return median(found) if found else None


def _moved(span: BarSpan) -> list[int]:
    """Which samples to measure between: some time apart, since the bar counts whole seconds; the last one always.

    A finished step is drawn twice at one moment; the first draw has the count that took that long.
    """
    kept: list[int] = []
    end: int | None = None
    for index, (n, clock, _) in enumerate(span.samples):
        if not kept:
            kept.append(index)
            continue
        before_n, before, _ = span.samples[kept[-1]]
        if n > before_n and clock >= before + APART_S:
            kept.append(index)
            end = None
        elif n > before_n and clock > before and (end is None or clock > span.samples[end][1]):
            end = index
    return kept if end is None or len(kept) > 2 else [*kept, end]
