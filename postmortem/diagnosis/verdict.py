"""One diagnosis for one attempt: what ran out, in which phase, at which step, what class that is, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from postmortem.diagnosis import conditions, evidence, facts, memory, wording
from postmortem.diagnosis.cause import KERNEL, Cause, cause_of
from postmortem.diagnosis.classify import Classified, classify
from postmortem.diagnosis.platform import platform_facts
from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Attempt, Diagnosis, FactorFound, JobConfig
from postmortem.timeline.results import finished


@lru_cache(maxsize=2)
def _others(knowledge: Knowledge) -> set[str | None]:
    """Programs whose logs people hand in that train nothing."""
    return {item.sets.trainer for item in knowledge.patterns if item.sets.event == "not_training"}


def diagnose(
    attempt: Attempt,
    config: JobConfig,
    knowledge: Knowledge,
    trainer: str | None,
    history: Sequence[Attempt] = (),
) -> Diagnosis:
    """The diagnosis of `attempt` under `config`; `history` are the earlier attempts of the same job."""
    family, arch = facts.family_of(config, attempt.stages, knowledge)
    where = platform_facts(attempt, config, knowledge)
    cause = cause_of(attempt, where.get("run.can_spill"))
    sizes, warnings = memory.sizes_of(cause.oom, attempt.notes)
    known = _facts(attempt, config, family, arch, trainer, sizes, cause)
    known.update(where)
    known["run.after_preview"] = _after_preview(attempt)
    known["run.preview_unplaced"] = _unplaced(attempt, cause)
    known["run.last_preview"] = _last_preview(attempt, cause)
    known["run.finished"] = known["run.last_preview"] and finished(attempt)
    known["run.silent"] = _silent(attempt, cause)
    known["run.minutes_still"] = round(attempt.pace.silent_s / 60) if attempt.pace.silent_s is not None else None
    known["run.crashed"] = cause.event is not None and cause.event.role == "crash"
    classified = _class_of(cause, attempt, known)
    known["run.bucket_fits"] = classified.fits
    # validation runs without gradients at its own resolution: nothing that lightens a training step touches it
    known["failure.class"] = None if cause.phase == "validation" else classified.class_
    second_hand = cause.oom is not None and cause.oom.place.source != attempt.source
    if (classified.inferred or second_hand) and cause.confidence == "high":
        cause.confidence = "medium"
    sure = cause.event is not None and cause.event.reason in KERNEL
    if trainer is None and not attempt.has_header and cause.kind in wording.MEMORY_KINDS and not sure:
        cause.confidence = "low"
    factors = [
        FactorFound(factor.id, known)
        for factor in sorted(knowledge.factors, key=lambda item: -item.weight)
        if conditions.all_hold(factor.when, known)
    ]
    headline, values = wording.headline(cause, classified, attempt, known)
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
        evidence=evidence.collect(attempt, cause.place, cause.kind, cause.phase),
        factors=tuple(factors),
        memory_mib=sizes,
        device=cause.oom.device if cause.oom else None,
        family=family.name if family else None,
        arch=arch,
        trainer=trainer,
        outcome=attempt.end.outcome,
        facts=known,
        warnings=(
            *warnings,
            *wording.notices(attempt, cause, history, trainer, where, no_training=trainer in _others(knowledge)),
        ),
        suspects=classified.suspects,
        skips=classified.skips,
        missing=tuple(wording.missing(attempt, config, cause, sizes, trainer, known)),
    )


def _after_preview(attempt: Attempt) -> bool:
    """Whether the first failed training step stands right behind a mid-run preview (a save of the same step too)."""
    steps = [oom.step for oom in attempt.ooms if oom.phase == "training_step" and oom.step is not None]
    return bool(steps) and any(0 <= min(steps) - made <= 2 for made in attempt.sample_steps)


def _unplaced(attempt: Attempt, cause: Cause) -> bool:
    """Whether a preview failed in an excerpt that does not show whether training had begun."""
    return cause.phase == "baseline_sampling" and not (attempt.has_header or attempt.trained or _baseline_seen(attempt))


def _baseline_seen(attempt: Attempt) -> bool:
    """Whether the log shows previews before training: in an excerpt a preview's bar alone may be of any of them."""
    return any(
        stage.event == "baseline" or (stage.phase == "baseline_sampling" and attempt.has_header)
        for stage in attempt.stages
    )


def _last_preview(attempt: Attempt, cause: Cause) -> bool:
    """Whether it is the preview behind the last step that failed."""
    total = attempt.total_steps
    return cause.phase == "mid_sampling" and total is not None and cause.step is not None and cause.step >= total


def _silent(attempt: Attempt, cause: Cause) -> bool:
    """Whether the process ended and nobody says why: no error, or a kill or crash that nobody explains."""
    if cause.kind == "unknown":
        crashed = cause.event is not None and cause.event.role in ("crash", "exit")
        return crashed or attempt.end.outcome == "incomplete"
    return cause.kind == "host_oom" and attempt.end.outcome == "killed" and not wording.told(cause)


def _class_of(cause: Cause, attempt: Attempt, known: Mapping[str, Any]) -> Classified:
    if cause.kind not in ("gpu_oom", "host_oom"):
        return Classified(None, False)
    return classify(cause.phase, attempt, known, gpu=cause.kind == "gpu_oom")


def _facts(
    attempt: Attempt,
    config: JobConfig,
    family: Family | None,
    arch: str | None,
    trainer: str | None,
    sizes: Mapping[str, float | None],
    cause: Cause,
) -> dict[str, Any]:
    known: dict[str, Any] = facts.setting_facts(config)
    known.update(facts.job_facts(config, attempt.buckets, family))
    known.update(facts.family_facts(family, arch))
    known.update(facts.memory_facts(sizes))
    known.update(facts.request_facts(sizes, known))
    if cause.oom is not None:
        known["memory.allowed"] = cause.oom.sizes_mib.get("allowed")
    skips = [oom for oom in attempt.ooms if oom.caught and oom.phase == "training_step"]
    baseline = _baseline_seen(attempt)
    known.update(
        {
            "failure.kind": cause.kind,
            "failure.resource": cause.resource,
            "failure.phase": cause.phase,
            "failure.signature": cause.signature,
            "failure.step": cause.step,
            "failure.call": attempt.end_frame.code.reveal() if attempt.end_frame else None,
            "failure.inner_call": _inner_call(attempt),
            "failure.functions": _functions(attempt),
            "run.trainer": trainer,
            "run.outcome": attempt.end.outcome,
            "run.good_steps": attempt.good_steps,
            "run.resumed": attempt.resumed,
            "run.trained": attempt.trained,
            "run.skips": len(skips),
            "run.baseline_done": baseline and attempt.trained,
            "run.baseline_seen": baseline,
            "run.config_known": config.known,
            "run.backend": _backend(cause.signature),
            "run.unified": _backend(cause.signature) == "mps",
            "run.parked": _parked(attempt),
            "run.last_event": attempt.stages[-1].event if attempt.stages else None,
            "run.quantizing_seen": any(stage.phase == "quantize" for stage in attempt.stages),
            "run.consequence": cause.event.text if cause.event and cause.event.role == "consequence" else None,
            "run.swallowed": any(oom.caught and oom.phase != "training_step" for oom in attempt.ooms),
            "run.unproven_steps": not attempt.skips_confirmed and bool(skips),
        }
    )
    return known


def _inner_call(attempt: Attempt) -> str | None:
    """The code line of the innermost frame, whoever's it is."""
    traceback = attempt.end.traceback
    return traceback.frames[-1].code.reveal() or None if traceback and traceback.frames else None


def _parked(attempt: Attempt) -> bool:
    """Whether the transformer waited in RAM when the log last spoke of where it is."""
    moves = [stage.event for stage in attempt.stages if stage.event in ("transformer_parked", "transformer_to_gpu")]
    return moves[-1:] == ["transformer_parked"]


def _functions(attempt: Attempt) -> str | None:
    """The functions that the failing call stood in, outermost first, in one text; None without a traceback."""
    traceback = attempt.end.traceback
    return " ".join(frame.function for frame in traceback.frames) if traceback and traceback.frames else None


def _backend(signature: str | None) -> str | None:
    if signature is None:
        return None
    for name in ("hip", "mps", "xpu"):
        if name in signature:
            return name
    return "cuda" if signature.startswith(("torch.", "cuda", "toolkit.")) else None
