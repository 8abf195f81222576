"""Which words a diagnosis gets: the headline, what the reader should know of the input, what was not in the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from postmortem.diagnosis.cause import KERNEL, Cause
from postmortem.diagnosis.classify import Classified
from postmortem.diagnosis.codes import meaning_of
from postmortem.model import Attempt, JobConfig, Notice
from postmortem.text import LogText

MEMORY_KINDS = frozenset({"gpu_oom", "host_oom", "vram_spill"})

STOOD_STILL_S = 600.0
"""Silence after the last bar from which a log is said to have stood still."""


def told(cause: Cause) -> bool:
    """Whether whoever killed the process says so itself."""
    return cause.event is not None and cause.event.reason in KERNEL


def headline(
    cause: Cause, classified: Classified, attempt: Attempt, known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    key = cause.kind
    if cause.kind in ("gpu_oom", "host_oom"):
        key = f"{cause.kind}.{classified.class_ or 'unknown'}"
        if key == "gpu_oom.sampling":
            key = _preview(cause, known)
        if classified.class_ == "early_step" and not attempt.trained:
            key += "_unseen"
        if cause.kind == "host_oom" and attempt.end.outcome == "killed" and not told(cause):
            key = "host_oom.killed"
        elif attempt.end.outcome == "completed_with_skips":
            key = "gpu_oom.completed_with_skips"
        elif attempt.end.outcome in ("completed", "incomplete", "stopped") and known.get("run.skips"):
            key = "gpu_oom.skips_alive"
        elif cause.oom is not None and cause.oom.caught and cause.oom.phase != "training_step":
            key = "gpu_oom.swallowed"
        elif known.get("failure.signature") and cause.resource is None:
            key = "gpu_oom.bare_error"
    elif cause.kind in ("none", "unknown"):
        key = f"{cause.kind}.{attempt.end.outcome}"
        if any(note.event == "nan" for note in attempt.notes):
            key = f"{cause.kind}.nan"
        elif cause.kind == "none" and attempt.end.event is not None and attempt.end.event.reason == "scheduler":
            key = "none.scheduler"
    times = attempt.step_times
    values = {
        "phase": cause.phase,
        "step": cause.step,
        "total": attempt.total_steps,
        "skips": known.get("run.skips"),
        "good_steps": attempt.good_steps,
        "resource": cause.resource,
        "factor": round(times.after_s / times.before_s, 1) if times else None,
        "before_s": round(times.before_s, 1) if times else None,
        "after_s": round(times.after_s, 1) if times else None,
    }
    return key, values


def _preview(cause: Cause, known: Mapping[str, Any]) -> str:
    """What is to say of a preview that failed."""
    if known.get("run.preview_unplaced"):
        return "gpu_oom.sampling_unplaced"
    if cause.phase == "baseline_sampling":
        return "gpu_oom.sampling_baseline"
    if known.get("run.last_preview"):
        return "gpu_oom.sampling_finished" if known.get("run.finished") else "gpu_oom.sampling_last"
    return "gpu_oom.sampling_and_steps" if known.get("run.skips") else "gpu_oom.sampling"


def notices(
    attempt: Attempt,
    cause: Cause,
    history: Sequence[Attempt],
    trainer: str | None,
    where: Mapping[str, Any],
    *,
    no_training: bool,
) -> list[Notice]:
    """What the reader should know beside the verdict; `no_training`: `trainer` is a program that trains nothing."""
    found: list[Notice] = []
    skipped = any(oom.caught and oom.phase == "training_step" for oom in attempt.ooms)
    for earlier in history:
        if any(not oom.caught for oom in earlier.ooms) or earlier.end.outcome in ("failed", "killed"):
            oom = next((o for o in earlier.ooms if not o.caught), None) or (earlier.ooms[-1] if earlier.ooms else None)
            found.append(
                Notice(
                    "superseded_attempt",
                    earlier.first_line,
                    {
                        "attempt": earlier.index,
                        "file": LogText(earlier.source),
                        "outcome": earlier.end.outcome,
                        "phase": oom.phase if oom else earlier.phase,
                        "memory": oom is not None,
                    },
                )
            )
    if no_training:
        found.append(Notice("not_a_training_run", None, {"trainer": trainer}))
    elif trainer not in ("ai-toolkit", None) and cause.kind in MEMORY_KINDS:
        found.append(Notice("foreign_trainer", None, {"trainer": trainer}))
    if attempt.buffered:
        found.append(Notice("buffered_log", None, {}))
    if any(oom.caught and oom.implied for oom in attempt.ooms):
        found.append(
            Notice("skips_by_bar_only", None, {"count": sum(oom.caught and oom.implied for oom in attempt.ooms)})
        )
    if attempt.excerpt_bars and skipped:
        found.append(Notice("thinned_bars", None, {}))
    if cause.kind == "not_memory" and any(oom.kind == "gpu_oom" for oom in attempt.ooms):
        found.append(Notice("skips_before_other_error", None, {"count": sum(1 for oom in attempt.ooms if oom.caught)}))
    found.extend(_slowdown(attempt, cause, where.get("run.can_spill")))
    found.extend(_slow_clock(attempt))
    decoded = meaning_of(attempt) if attempt.end.outcome in ("failed", "killed", "stopped") else None
    if decoded is not None and cause.kind in ("unknown", "host_oom", "none"):
        meaning, code, line = decoded
        found.append(Notice(f"exit_{meaning}", line, {"code": LogText(code)}))
    for note in attempt.notes:
        if note.event == "nan":
            found.append(Notice("nan_loss", note.place.line, {}))
            break
    for oom in attempt.ooms:
        if oom.caught and oom.phase != "training_step":
            known = oom.phase in ("quantize", "saving", "setup")
            found.append(Notice(f"swallowed_{oom.phase}" if known else "swallowed_other", oom.place.line, {}))
            break
    return [*found, *attempt.warnings]


def _slowdown(attempt: Attempt, cause: Cause, can_spill: bool | None) -> Iterator[Notice]:
    """Steps that became slow, where that is not the verdict itself; what it cost, where it is."""
    times = attempt.step_times or attempt.slow_stretch
    if times is None:
        return
    hours = times.lost_s / 3600
    values = {
        "factor": round(times.factor, 1),
        "step": times.from_step,
        "to_step": times.to_step,
        "hours": round(hours, 1) if hours >= 1 else round(hours, 2),
        "before_s": round(times.before_s, 1),
        "after_s": round(times.after_s, 1),
    }
    if cause.kind == "vram_spill":
        yield Notice("spill_cost", times.place.line, values)
        return
    yield Notice("slowdown" if times.lasting else "slow_stretch", times.place.line, values)
    place = "cannot_spill" if can_spill is False else "can_spill" if can_spill else "may_spill"
    yield Notice(f"slowdown_{place}", None, {})


def _slow_clock(attempt: Attempt) -> Iterator[Notice]:
    """What the times in front of the lines show that the bar does not."""
    pace = attempt.pace
    over = attempt.end.outcome in ("failed", "killed", "incomplete")
    silent = pace.silent_s if over and attempt.phase == "training_step" else None
    if silent is not None and silent >= max(STOOD_STILL_S, 5 * (pace.bar_step_s or 0)):
        line = attempt.main_bar_place.line if attempt.main_bar_place else None
        yield Notice("stood_still", line, {"minutes": round(silent / 60)})
    bar, wall = pace.bar_step_s, pace.wall_step_s
    if bar is not None and wall is not None and wall >= 1.5 * bar + 1:
        yield Notice("wall_slower", None, {"bar_s": round(bar, 1), "wall_s": round(wall, 1)})


SYSTEMS = ("kubernetes", "slurm", "wsl", "windows", "container", "linux")
"""Where a check differs, the most particular first."""


def _checks(cause: Cause, known: Mapping[str, Any]) -> list[str]:
    """The one check for each system that the log's own evidence allows that settles who ended the process."""
    found = [system for system in SYSTEMS if known.get(f"run.on_{system}") is True]
    if {"kubernetes", "slurm", "container"} & set(found):
        found = [system for system in found if system != "linux"]
    if "wsl" in found:
        found = ["wsl"]
    if found:
        return [f"check_{system}" for system in found]
    return ["kernel_log" if cause.kind == "host_oom" else "how_it_ended"]


def missing(
    attempt: Attempt,
    config: JobConfig,
    cause: Cause,
    sizes: Mapping[str, float | None],
    trainer: str | None,
    known: Mapping[str, Any],
) -> list[str]:
    """What the log does not say that would have helped, as ids of capture hints."""
    lacking: list[str] = []
    if cause.kind not in MEMORY_KINDS and cause.kind != "unknown":
        return lacking
    if not config.known and trainer in ("ai-toolkit", None):
        lacking.append("config")
    if cause.kind == "gpu_oom" and sizes.get("tried_to_allocate") is None:
        lacking.append(
            "sizes_swallowed" if cause.oom is not None and (cause.oom.caught or cause.oom.implied) else "sizes"
        )
    if cause.phase == "unknown":
        lacking.append("traceback")
    if known.get("run.silent") or cause.kind == "unknown":
        lacking.extend(_checks(cause, known))
    if attempt.buffered:
        lacking.append("unbuffered")
    if attempt.excerpt_bars and any(oom.caught and oom.phase == "training_step" for oom in attempt.ooms):
        lacking.append("whole_log")
    return lacking
