"""Which words a diagnosis gets: the headline, what the reader should know of the input, what was not in the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.diagnosis.cause import KERNEL, Cause
from postmortem.diagnosis.classify import Classified
from postmortem.model import Attempt, JobConfig, Notice
from postmortem.text import LogText

MEMORY_KINDS = frozenset({"gpu_oom", "host_oom", "vram_spill"})


def told(cause: Cause) -> bool:
    """Whether whoever killed the process says so itself."""
    return cause.event is not None and cause.event.reason in KERNEL


def headline(
    cause: Cause, classified: Classified, attempt: Attempt, known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    key = cause.kind
    if cause.kind in ("gpu_oom", "host_oom"):
        key = f"{cause.kind}.{classified.class_ or 'unknown'}"
        if key == "gpu_oom.sampling" and cause.phase == "baseline_sampling":
            key = "gpu_oom.sampling_baseline"
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


def notices(
    attempt: Attempt, cause: Cause, history: Sequence[Attempt], trainer: str | None, no_training: bool
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
    if cause.kind == "none" and attempt.step_times is not None:
        times = attempt.step_times
        found.append(
            Notice(
                "slowdown",
                times.place.line,
                {"factor": round(times.after_s / times.before_s, 1), "step": times.from_step},
            )
        )
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


def missing(
    attempt: Attempt, config: JobConfig, cause: Cause, sizes: Mapping[str, float | None], trainer: str | None
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
    if cause.kind == "host_oom" and attempt.end.outcome == "killed" and not told(cause):
        lacking.append("kernel_log")
    if cause.kind == "unknown":
        lacking.append("how_it_ended")
    if attempt.buffered:
        lacking.append("unbuffered")
    if attempt.excerpt_bars and any(oom.caught and oom.phase == "training_step" for oom in attempt.ooms):
        lacking.append("whole_log")
    return lacking
