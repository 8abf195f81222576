"""What an attempt died of, before it is put into words: kind, resource, phase, step, and the event it stands on."""

from __future__ import annotations

import msgspec

from postmortem.model import Attempt, Event, Oom, Place, StepTimes

KERNEL = ("kernel_oom", "container_oom")
"""Reasons of kill events that come from whoever did the killing."""
_NEAR_LINES = 400
UNKNOWN_SYSTEM = 4.0
"""How many times slower steps must be to be called a spill where the log does not show the system."""


class Cause(msgspec.Struct):
    """What the attempt died of, before it is put into words."""

    kind: str
    resource: str | None = None
    phase: str = "unknown"
    step: int | None = None
    signature: str | None = None
    confidence: str = "high"
    oom: Oom | None = None
    event: Event | None = None
    place: Place | None = None
    headline: str = ""


def cause_of(attempt: Attempt, can_spill: bool | None = None) -> Cause:
    """The cause; `can_spill` is whether the driver there pages VRAM to RAM, None where the log does not show it."""
    end = attempt.end
    event = end.event
    skips = [oom for oom in attempt.ooms if oom.caught and oom.phase == "training_step"]
    if end.outcome in ("failed", "killed"):
        if event is not None and event.reason == "bad_alloc" and not attempt.has_header and attempt.phase == "unknown":
            return _at_end(
                attempt,
                Cause("not_memory", signature=event.pattern, confidence="medium", event=event, place=event.place),
            )
        if event is not None and event.role in ("oom", "host_oom", "abort"):
            return _from_oom(attempt, event)
        if event is not None and event.role == "consequence" and skips and _follows(event, skips[-1], attempt):
            return _from_skip(attempt, skips[-1], event)
        if event is not None and event.role == "consequence" and not attempt.has_header:
            # what it would follow from may stand in the part that is missing
            return _at_end(
                attempt, Cause("unknown", signature=event.pattern, confidence="low", event=event, place=event.place)
            )
        if event is not None and (event.role == "kill" or end.outcome == "killed"):
            return _killed(attempt, event)
        if event is not None and event.role in ("crash", "exit"):
            return _at_end(
                attempt, Cause("unknown", signature=event.pattern, confidence="medium", event=event, place=event.place)
            )
        if event is not None:
            return _at_end(attempt, Cause("not_memory", signature=event.pattern, event=event, place=event.place))
        return _at_end(attempt, Cause("unknown", confidence="low", place=end.place))
    if skips:
        first = skips[0]
        return Cause("gpu_oom", "vram", "training_step", first.step, first.pattern, "high", first, None, first.place)
    loose = [oom for oom in attempt.ooms if not oom.caught]
    if loose and end.outcome == "incomplete":
        return _of(attempt, loose[-1], None)
    times = attempt.step_times
    if times is not None and end.outcome in ("incomplete", "stopped") and _spilled(times, can_spill):
        sure = "medium" if can_spill else "low"
        return Cause("vram_spill", "vram", "training_step", times.from_step, None, sure, None, None, times.place)
    if attempt.ooms and end.outcome != "stopped":
        return _of(attempt, attempt.ooms[-1], None)
    if end.outcome == "incomplete":
        return _at_end(attempt, Cause("unknown", confidence="low"))
    return Cause("none", phase="unknown", place=end.place)


def _spilled(times: StepTimes, can_spill: bool | None) -> bool:
    """Whether a lasting slowdown is a spill: where nothing tells the system, only one that little else explains."""
    return can_spill or (can_spill is None and times.factor >= UNKNOWN_SYSTEM)


def _at_end(attempt: Attempt, cause: Cause) -> Cause:
    """Fill in where the program was when the log's last word came."""
    cause.phase = attempt.phase if cause.event is None else attempt.end_phase
    cause.step = attempt.end_step
    return cause


def _from_oom(attempt: Attempt, event: Event) -> Cause:
    for oom in attempt.ooms:
        if event.role == "abort" and oom.implied:
            cause = _of(attempt, oom, event)
            if not attempt.skips_confirmed:
                cause.step = attempt.end_step
            return cause
    matching = [oom for oom in attempt.ooms if oom.pattern == event.pattern and not oom.caught]
    return _of(attempt, matching[-1] if matching else attempt.ooms[-1], event)


def _of(attempt: Attempt, oom: Oom, event: Event | None) -> Cause:
    """A cause made of one OOM: sure where the phase is, a fragment where it is not."""
    proven = (attempt.end.traceback is not None and oom.placed) or oom.implied or oom.caught
    confidence = "low" if oom.phase == "unknown" else "high" if proven else "medium"
    begun = attempt.has_header or attempt.trained or any(stage.event == "baseline" for stage in attempt.stages)
    if oom.phase == "baseline_sampling" and not begun:
        # a preview in a fragment: whether training had begun stands in the part that is missing
        oom = msgspec.structs.replace(oom, step=None)
        confidence = "medium"
    return Cause(oom.kind, oom.resource, oom.phase, oom.step, oom.pattern, confidence, oom, event, oom.place)


def _from_skip(attempt: Attempt, skip: Oom, event: Event) -> Cause:
    """An error that an OOM caught just before it caused: the OOM is the verdict."""
    step = attempt.end_step if attempt.end_step is not None else skip.step
    return Cause("gpu_oom", "vram", "training_step", step, skip.pattern, "high", skip, event, skip.place)


def _follows(event: Event, skip: Oom, attempt: Attempt) -> bool:
    """The consequence stands right behind the skip: within the step after it, or at least near it in the log."""
    if attempt.end_step is not None and skip.step is not None:
        return attempt.end_step - skip.step <= 1
    return event.place.line - skip.place.line <= _NEAR_LINES


def _killed(attempt: Attempt, event: Event) -> Cause:
    kernel = event.reason in KERNEL
    cause = Cause(
        "host_oom",
        event.resource or "host_ram",
        "unknown",
        None,
        event.pattern,
        "high" if kernel else "medium",
        None,
        event,
        event.place,
    )
    return _at_end(attempt, cause)
