"""One diagnosis for one attempt: what ran out, in which phase, at which step, what class that is, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from postmortem.diagnosis import conditions, evidence, facts, memory
from postmortem.diagnosis.classify import Classified, classify
from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Attempt, Diagnosis, Event, FactorFound, JobConfig, Notice, Oom, Place

KERNEL = ("kernel_oom", "container_oom")
"""Reasons of kill events that come from whoever did the killing."""
MEMORY_KINDS = frozenset({"gpu_oom", "host_oom", "vram_spill"})
_NEAR_LINES = 400


class _Cause(msgspec.Struct):
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


def diagnose(
    attempt: Attempt,
    config: JobConfig,
    knowledge: Knowledge,
    trainer: str | None,
    history: Sequence[Attempt] = (),
) -> Diagnosis:
    """The diagnosis of `attempt` under `config`; `history` are the earlier attempts of the same job."""
    family, arch = facts.family_of(config, attempt, knowledge)
    cause = _cause(attempt)
    sizes, warnings = memory.sizes_of(cause.oom, attempt.notes)
    known = _facts(attempt, config, family, arch, trainer, sizes, cause)
    classified = _class_of(cause, attempt, known)
    # validation runs without gradients at its own resolution: nothing that lightens a training step touches it
    known["failure.class"] = None if cause.phase == "validation" else classified.class_
    if classified.inferred and cause.confidence == "high":
        cause.confidence = "medium"
    sure = cause.event is not None and cause.event.reason in KERNEL
    if trainer is None and not attempt.has_header and cause.kind in MEMORY_KINDS and not sure:
        cause.confidence = "low"
    factors = [
        FactorFound(factor.id, known)
        for factor in sorted(knowledge.factors, key=lambda item: -item.weight)
        if conditions.all_hold(factor.when, known)
    ]
    headline, values = _headline(cause, classified, attempt, known)
    return Diagnosis(
        kind=cause.kind,
        resource=cause.resource,
        class_=classified.class_,
        phase=cause.phase,
        step=cause.step,
        signature=cause.signature,
        confidence=cause.confidence,
        headline=headline,
        headline_values=values,
        evidence=evidence.collect(attempt, cause.place, cause.event, cause.kind, config),
        factors=tuple(factors),
        memory_mib=sizes,
        device=cause.oom.device if cause.oom else None,
        family=family.name if family else None,
        arch=arch,
        trainer=trainer,
        outcome=attempt.end.outcome,
        facts=known,
        warnings=(*warnings, *_warnings(attempt, cause, history)),
        suspects=classified.suspects,
        missing=tuple(_missing(attempt, config, cause, sizes)),
    )


def _class_of(cause: _Cause, attempt: Attempt, known: Mapping[str, Any]) -> Classified:
    if cause.kind not in ("gpu_oom", "host_oom"):
        return Classified(None, False)
    return classify(cause.phase, attempt, known, gpu=cause.kind == "gpu_oom")


def _cause(attempt: Attempt) -> _Cause:
    end = attempt.end
    event = end.event
    skips = [oom for oom in attempt.ooms if oom.caught and oom.phase == "training_step"]
    if end.outcome in ("failed", "killed"):
        if event is not None and event.reason == "bad_alloc" and not attempt.has_header and attempt.phase == "unknown":
            return _at_end(
                attempt,
                _Cause("not_memory", signature=event.pattern, confidence="medium", event=event, place=event.place),
            )
        if event is not None and event.role in ("oom", "host_oom", "abort"):
            return _from_oom(attempt, event)
        if event is not None and event.role == "consequence" and skips and _follows(event, skips[-1], attempt):
            return _from_skip(attempt, skips[-1], event)
        if event is not None and (event.role == "kill" or end.outcome == "killed"):
            return _killed(attempt, event)
        if event is not None and event.role in ("crash", "exit"):
            return _at_end(
                attempt, _Cause("unknown", signature=event.pattern, confidence="medium", event=event, place=event.place)
            )
        if event is not None:
            return _at_end(attempt, _Cause("not_memory", signature=event.pattern, event=event, place=event.place))
        return _at_end(attempt, _Cause("unknown", confidence="low", place=end.place))
    if skips:
        first = skips[0]
        return _Cause("gpu_oom", "vram", "training_step", first.step, first.pattern, "high", first, None, first.place)
    loose = [oom for oom in attempt.ooms if not oom.caught]
    if loose and end.outcome == "incomplete":
        return _of(attempt, loose[-1], None)
    if attempt.step_times is not None and end.outcome in ("incomplete", "stopped"):
        times = attempt.step_times
        return _Cause("vram_spill", "vram", "training_step", times.from_step, None, "medium", None, None, times.place)
    if attempt.ooms and end.outcome != "stopped":
        return _of(attempt, attempt.ooms[-1], None)
    if end.outcome == "incomplete":
        return _at_end(attempt, _Cause("unknown", confidence="low"))
    return _Cause("none", phase="unknown", place=end.place)


def _at_end(attempt: Attempt, cause: _Cause) -> _Cause:
    """Fill in where the program was when the log's last word came."""
    cause.phase = attempt.phase if cause.event is None else attempt.end_phase
    cause.step = attempt.end_step
    return cause


def _from_oom(attempt: Attempt, event: Event) -> _Cause:
    for oom in attempt.ooms:
        if event.role == "abort" and oom.implied:
            cause = _of(attempt, oom, event)
            if not attempt.skips_confirmed:
                cause.step = attempt.end_step
            return cause
    matching = [oom for oom in attempt.ooms if oom.pattern == event.pattern and not oom.caught]
    return _of(attempt, matching[-1] if matching else attempt.ooms[-1], event)


def _of(attempt: Attempt, oom: Oom, event: Event | None) -> _Cause:
    """A cause made of one OOM: sure where the phase is, a fragment where it is not."""
    proven = attempt.end.traceback is not None or oom.implied or oom.caught
    confidence = "low" if oom.phase == "unknown" else "high" if proven else "medium"
    return _Cause(oom.kind, oom.resource, oom.phase, oom.step, oom.pattern, confidence, oom, event, oom.place)


def _from_skip(attempt: Attempt, skip: Oom, event: Event) -> _Cause:
    """An error that an OOM caught just before it caused: the OOM is the verdict."""
    step = attempt.end_step if attempt.end_step is not None else skip.step
    return _Cause("gpu_oom", "vram", "training_step", step, skip.pattern, "high", skip, event, skip.place)


def _follows(event: Event, skip: Oom, attempt: Attempt) -> bool:
    """The consequence stands right behind the skip: within the step after it, or at least near it in the log."""
    if attempt.end_step is not None and skip.step is not None:
        return attempt.end_step - skip.step <= 1
    return event.place.line - skip.place.line <= _NEAR_LINES


def _killed(attempt: Attempt, event: Event) -> _Cause:
    kernel = event.reason in KERNEL
    cause = _Cause(
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


def _facts(
    attempt: Attempt,
    config: JobConfig,
    family: Family | None,
    arch: str | None,
    trainer: str | None,
    sizes: Mapping[str, float | None],
    cause: _Cause,
) -> dict[str, Any]:
    known: dict[str, Any] = facts.setting_facts(config)
    known.update(facts.job_facts(config, attempt, family))
    known.update(facts.memory_facts(sizes))
    if cause.oom is not None:
        known["memory.allowed"] = cause.oom.sizes_mib.get("allowed")
    skips = [oom for oom in attempt.ooms if oom.caught and oom.phase == "training_step"]
    baseline = any(stage.phase == "baseline_sampling" for stage in attempt.stages)
    known.update(
        {
            "failure.kind": cause.kind,
            "failure.resource": cause.resource,
            "failure.phase": cause.phase,
            "failure.signature": cause.signature,
            "failure.step": cause.step,
            "failure.call": attempt.end_frame.code.reveal() if attempt.end_frame else None,
            "run.trainer": trainer,
            "run.family": family.id if family else None,
            "run.arch": arch,
            "run.risk": family.risk if family else None,
            "run.media": family.media if family else None,
            "run.edit": family.edit if family else None,
            "run.outcome": attempt.end.outcome,
            "run.good_steps": attempt.good_steps,
            "run.resumed": attempt.resumed,
            "run.trained": attempt.trained,
            "run.skips": len(skips),
            "run.baseline_done": baseline and attempt.trained,
            "run.baseline_seen": baseline,
            "run.config_known": config.known,
            "run.backend": _backend(cause.signature),
            "run.swallowed": any(oom.caught and oom.phase != "training_step" for oom in attempt.ooms),
            "run.unproven_steps": not attempt.skips_confirmed and bool(skips),
        }
    )
    return known


def _backend(signature: str | None) -> str | None:
    if signature is None:
        return None
    for name in ("hip", "mps", "xpu"):
        if name in signature:
            return name
    return "cuda" if signature.startswith(("torch.", "cuda", "toolkit.")) else None


def _headline(
    cause: _Cause, classified: Classified, attempt: Attempt, known: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    key = cause.kind
    if cause.kind in ("gpu_oom", "host_oom"):
        key = f"{cause.kind}.{classified.class_ or 'unknown'}"
        if attempt.end.outcome == "completed_with_skips":
            key = "gpu_oom.completed_with_skips"
        elif attempt.end.outcome in ("completed", "incomplete", "stopped") and known.get("run.skips"):
            key = "gpu_oom.skips_alive"
        elif cause.oom is not None and cause.oom.caught and cause.oom.phase != "training_step":
            key = "gpu_oom.swallowed"
        elif known.get("failure.signature") and cause.resource is None:
            key = "gpu_oom.bare_error"
    elif cause.kind in ("none", "unknown"):
        key = f"{cause.kind}.{attempt.end.outcome}"
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


def _warnings(attempt: Attempt, cause: _Cause, history: Sequence[Attempt]) -> list[Notice]:
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
                        "outcome": earlier.end.outcome,
                        "phase": oom.phase if oom else earlier.phase,
                        "memory": oom is not None,
                    },
                )
            )
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
            found.append(Notice(f"swallowed_{oom.phase}", oom.place.line, {}))
            break
    return [*found, *attempt.warnings]


def _missing(attempt: Attempt, config: JobConfig, cause: _Cause, sizes: Mapping[str, float | None]) -> list[str]:
    """What the log does not say that would have helped, as ids of capture hints."""
    missing: list[str] = []
    if cause.kind not in MEMORY_KINDS and cause.kind != "unknown":
        return missing
    if not config.known:
        missing.append("config")
    if cause.kind == "gpu_oom" and sizes.get("tried_to_allocate") is None:
        missing.append(
            "sizes_swallowed" if cause.oom is not None and (cause.oom.caught or cause.oom.implied) else "sizes"
        )
    if cause.phase == "unknown":
        missing.append("traceback")
    told = cause.event is not None and cause.event.reason in KERNEL
    if cause.kind == "host_oom" and attempt.end.outcome == "killed" and not told:
        missing.append("kernel_log")
    if cause.kind == "unknown":
        missing.append("how_it_ended")
    if attempt.buffered:
        missing.append("unbuffered")
    if attempt.excerpt_bars and any(oom.caught and oom.phase == "training_step" for oom in attempt.ooms):
        missing.append("whole_log")
    return missing
