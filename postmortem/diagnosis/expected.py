"""Before a run: the diagnosis that it would get if memory ran out in one phase, for planning what would help."""

from __future__ import annotations

from collections.abc import Sequence

from postmortem.diagnosis import facts
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Bucket, Diagnosis, JobConfig

TRAINER = "ai-toolkit"
_CLASSES = {
    "model_load": "startup",
    "quantize": "startup",
    "text_encoder_load": "startup",
    "cache_latents": "caching",
    "baseline_sampling": "sampling",
    "mid_sampling": "sampling",
    "training_step": "early_step",
}
"""What a failure in a phase means for a run that has not proven anything yet."""


def expected(config: JobConfig, phase: str, knowledge: Knowledge, buckets: Sequence[Bucket] = ()) -> Diagnosis:
    """A GPU OOM in `phase` of the job that `config` describes; all that only a log could say stays unknown."""
    family, arch = facts.family_of(config, (), knowledge)
    known = facts.setting_facts(config)
    known.update(facts.job_facts(config, buckets, family))
    known.update(facts.family_facts(family, arch))
    known.update(
        {
            "failure.kind": "gpu_oom",
            "failure.resource": "vram",
            "failure.phase": phase,
            "failure.class": _CLASSES.get(phase),
            "run.trainer": TRAINER,
            "run.config_known": config.known,
        }
    )
    return Diagnosis(
        kind="gpu_oom",
        resource="vram",
        class_=_CLASSES.get(phase),
        phase=phase,
        step=None,
        signature=None,
        confidence="low",
        headline="",
        headline_values={},
        evidence=(),
        factors=(),
        memory_mib={},
        device=None,
        family=family.name if family else None,
        arch=arch,
        trainer=TRAINER,
        outcome="incomplete",
        facts=known,
    )
