"""The training by its steps: how long they took as a line, and below it previews, saves, skips and the failure."""

from __future__ import annotations

import msgspec

from postmortem.report.document import Report
from postmortem.report.html.geometry import ceiling, percent, ticks
from postmortem.report.texts import Texts

MAX_NAMED = 12
"""Steps named in words; the marks show all."""

STEPPING = ("training_step", "mid_sampling", "saving", "validation")
"""Phases between the first step and the last."""


class Tick(msgspec.Struct, frozen=True):
    """A number below the axis; `anchor` keeps it inside the picture."""

    x: float
    label: str
    anchor: str


class Marks(msgspec.Struct, frozen=True):
    """Marks of one kind: where they stand, and what they are in words."""

    look: str
    xs: list[float]
    text: str


class Turn(msgspec.Struct, frozen=True):
    """Where the steps became slow."""

    x: float
    label: str
    anchor: str


class Steps(msgspec.Struct, frozen=True):
    """The picture. `points` is the line, 0 to 1000 across, 0 (slowest) to 100 (no time) down; empty without times."""

    points: str
    slowest: str
    turn: Turn | None
    marks: list[Marks]
    axis: list[Tick]
    done: float
    notes: list[str]
    sentence: str


def steps(report: Report, texts: Texts) -> Steps | None:
    """The training; None where no step is known."""
    skipped = sorted(
        {
            event.step
            for event in report.oom_events
            if event.step is not None and event.caught and event.phase == "training_step"
        }
    )
    died = report.run.outcome in ("failed", "killed") and report.failure.phase in STEPPING
    failed = report.failure.step if died else None
    shown = report.steps
    known = [*skipped, *shown.previews, *shown.saves, *(item.last_step for item in shown.stretches)]
    known += [step for step in (failed, report.run.last_completed_step) if step is not None]
    if not known or (report.run.last_completed_step is None and not skipped and failed is None):
        return None
    first = min([report.run.start_step or 0, *known])
    last, total = max(known) + 1, report.run.total_steps
    # what comes after the last step (its preview, say) is numbered like one more
    end = total if total and total >= last - 1 and last * 3 >= total else last
    scale = _Axis(first, max(end, first + 1))
    marks = [
        *_marks("preview", shown.previews, scale, texts),
        *_marks("save", shown.saves, scale, texts),
        *_marks("skip", [step for step in skipped if step != failed], scale, texts),
    ]
    if failed is not None:
        marks.append(Marks("fail", [scale.middle(failed)], texts("html.mark.fail", {"step": failed})))
    points, slowest = _line(report, scale)
    done = report.run.last_completed_step
    notes = [texts("html.of_planned", {"last": end, "total": total})] if total and end < total else []
    turn = _turn(report, scale, texts)
    said = [mark.text for mark in marks] + ([turn.label] if turn else []) + notes
    return Steps(
        points=points,
        slowest=slowest,
        turn=turn,
        marks=marks,
        axis=[_tick(step, scale) for step in ticks(scale.first, scale.end)],
        done=scale.at(done + 1) if done is not None else 0.0,
        notes=notes,
        sentence=". ".join(said),
    )


class _Axis:
    """Steps as percentages of the width."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end

    def at(self, step: float) -> float:
        """Where a step begins."""
        return percent(step - self.first, self.end - self.first)

    def middle(self, step: int) -> float:
        """Its middle, where its mark stands."""
        return self.at(step + 0.5)


def _marks(look: str, found: list[int], scale: _Axis, texts: Texts) -> list[Marks]:
    if not found:
        return []
    named = ", ".join(str(step) for step in found[:MAX_NAMED]) + (" …" if len(found) > MAX_NAMED else "")
    text = texts(f"html.mark.{look}", {"count": len(found), "steps": named})
    return [Marks(look, sorted({scale.middle(step) for step in found}), text)]


def _line(report: Report, scale: _Axis) -> tuple[str, str]:
    """The line as SVG points, and the end of its axis in seconds."""
    stretches = report.steps.stretches
    if len(stretches) < 2:
        return "", ""
    most = ceiling(max(item.step_s for item in stretches))
    points: list[str] = []
    for item in stretches:
        y = round(100 - 100 * item.step_s / most, 1)
        for step in (item.first_step, item.last_step + 1):
            points.append(f"{round(10 * scale.at(step), 1):g},{y:g}")
    return " ".join(points), f"{most:g}"


def _turn(report: Report, scale: _Axis, texts: Texts) -> Turn | None:
    change = report.steps.change
    if change is None:
        return None
    key = "html.turn" if change.lasting else "html.turn_passed"
    values = {
        "step": change.from_step,
        "to_step": change.to_step,
        "before_s": float(f"{change.before_s:.3g}"),
        "after_s": float(f"{change.after_s:.3g}"),
    }
    x = scale.at(change.from_step)
    return Turn(x, texts(key, values), "end" if x > 50 else "start")


def _tick(step: int, scale: _Axis) -> Tick:
    x = scale.at(step)
    return Tick(x, str(step), "start" if x < 3 else "end" if x > 97 else "middle")
