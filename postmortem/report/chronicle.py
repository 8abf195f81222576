"""The timeline of the report, and how long things took."""

from __future__ import annotations

import msgspec

from postmortem.model import Attempt, Place, Stamp
from postmortem.report import document as doc
from postmortem.timeline.clock import elapsed

MAX_TIMELINE = 400
MAX_MARKS = 200


def rows(attempt: Attempt) -> tuple[list[doc.TimelineItem], int]:
    """Stages, OOMs and the end, in the order of the log, with their times where the lines carry them; how many of the
    middle were left out."""
    found: list[tuple[int, doc.TimelineItem, Stamp | None]] = []
    last: tuple[str, str] | None = None
    for stage in attempt.stages:
        key = (stage.phase, stage.event)
        item = doc.TimelineItem(
            line=stage.place.line,
            step=stage.step,
            phase=stage.phase,
            event=stage.event,
            text=stage.text,
            pattern=stage.pattern,
            start=start_of(stage.place, attempt),
            end=end_of(stage.place, attempt),
        )
        row = (stage.place.offset, item, stage.place.stamp)
        if key == last and found:
            found[-1] = row
        else:
            found.append(row)
        last = key
    for oom in attempt.ooms:
        event = (
            "oom_skipped" if oom.caught and oom.phase == "training_step" else "oom_swallowed" if oom.caught else "oom"
        )
        found.append(
            (
                oom.place.offset,
                doc.TimelineItem(
                    line=line_of(oom.place, attempt),
                    step=oom.step,
                    phase=oom.phase,
                    event=event,
                    text=oom.text,
                    pattern=None if oom.by_bar else oom.pattern,
                    start=start_of(oom.place, attempt),
                    end=end_of(oom.place, attempt),
                ),
                oom.place.stamp,
            )
        )
    end = attempt.end
    if end.event is not None and not any(oom.place == end.event.place for oom in attempt.ooms):
        found.append(
            (
                end.event.place.offset,
                doc.TimelineItem(
                    line=end.event.place.line,
                    step=attempt.end_step,
                    phase=attempt.end_phase,
                    event=end.event.role,
                    text=end.event.text,
                    pattern=end.event.pattern,
                    start=start_of(end.event.place, attempt),
                    end=end_of(end.event.place, attempt),
                ),
                end.event.place.stamp,
            )
        )
    found.sort(key=lambda row: row[0])
    times = elapsed((stamp for _, _, stamp in found), attempt.started)
    kept = [
        msgspec.structs.replace(item, time=doc.TimePart(elapsed_s=_round(seconds), printed=stamp.text))
        if stamp is not None
        else item
        for (_, item, stamp), seconds in zip(found, times)
    ]
    left_out = max(0, len(kept) - MAX_TIMELINE)
    if left_out:
        kept = [*kept[: MAX_TIMELINE // 2], *kept[-MAX_TIMELINE // 2 :]]
    return kept, left_out


def pace(attempt: Attempt) -> doc.PacePart:
    """How long the run, its phases and its steps took."""
    times = attempt.pace
    return doc.PacePart(
        total_s=_round(times.whole_s),
        silent_s=_round(times.silent_s),
        bar_step_s=_round(times.bar_step_s),
        wall_step_s=_round(times.wall_step_s),
        phases=[doc.PhaseTime(phase=phase, seconds=round(seconds, 3)) for phase, seconds in times.phases],
    )


def no_pace() -> doc.PacePart:
    """What stands where it could not be worked out."""
    return doc.PacePart(total_s=None, silent_s=None, bar_step_s=None, wall_step_s=None, phases=[])


def no_steps() -> doc.StepsPart:
    """What stands where it could not be worked out."""
    return doc.StepsPart(stretches=[], change=None, previews=[], saves=[])


def steps(attempt: Attempt) -> doc.StepsPart:
    """The training by its steps."""
    slow = attempt.step_times or attempt.slow_stretch
    change = slow and doc.ChangeOfPace(
        from_step=slow.from_step,
        to_step=slow.to_step,
        before_s=round(slow.before_s, 3),
        after_s=round(slow.after_s, 3),
        lost_s=round(slow.lost_s, 1),
        lasting=slow.lasting,
        line=slow.place.line,
    )
    return doc.StepsPart(
        stretches=[
            doc.StretchItem(first_step=item.first_step, last_step=item.last_step, step_s=round(item.step_s, 3))
            for item in attempt.stretches
        ],
        change=change or None,
        previews=list(attempt.sample_steps[-MAX_MARKS:]),
        saves=list(attempt.save_steps[-MAX_MARKS:]),
    )


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def line_of(place: Place, attempt: Attempt) -> int | None:
    """The line in the log, if it stands there."""
    return place.line if place.source == attempt.source else None


def start_of(place: Place, attempt: Attempt) -> int | None:
    """The first byte of what stands at `place` in the log's text, if that is known."""
    return place.offset if place.end and place.source == attempt.source else None


def end_of(place: Place, attempt: Attempt) -> int | None:
    """The byte behind it."""
    return place.end if place.end and place.source == attempt.source else None
