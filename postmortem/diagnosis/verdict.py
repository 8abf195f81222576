"""One diagnosis for one attempt: what ran out, in which phase, at which step, what class that is, how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.diagnosis import conditions, evidence, facts, memory, wording
from postmortem.diagnosis.cause import KERNEL, Cause, cause_of
from postmortem.diagnosis.classify import Classified, classify
from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Attempt, Diagnosis, FactorFound, JobConfig


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
    family, arch = facts.family_of(config, attempt, knowledge)
    cause = cause_of(attempt)
    sizes, warnings = memory.sizes_of(cause.oom, attempt.notes)
    known = _facts(attempt, config, family, arch, trainer, sizes, cause)
    classified = _class_of(cause, attempt, known)
    known["run.bucket_fits"] = classified.fits
    # validation runs without gradients at its own resolution: nothing that lightens a training step touches it
    known["failure.class"] = None if cause.phase == "validation" else classified.class_
    if classified.inferred and cause.confidence == "high":
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
        evidence=evidence.collect(attempt, cause.place, cause.event, cause.kind, cause.phase),
        factors=tuple(factors),
        memory_mib=sizes,
        device=cause.oom.device if cause.oom else None,
        family=family.name if family else None,
        arch=arch,
        trainer=trainer,
        outcome=attempt.end.outcome,
        facts=known,
        warnings=(*warnings, *wording.notices(attempt, cause, history, trainer, trainer in _others(knowledge))),
        suspects=classified.suspects,
        missing=tuple(wording.missing(attempt, config, cause, sizes, trainer)),
    )


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
            "run.consequence": cause.event.text if cause.event and cause.event.role == "consequence" else None,
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
