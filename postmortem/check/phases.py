"""Which phases a job will go through, what each needs on the card, and what would make it fit. All sizes in MiB."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from postmortem.diagnosis.expected import expected
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Bucket, Diagnosis, JobConfig
from postmortem.remedies import plan
from postmortem.remedies.plan import Plan
from postmortem.vram import Card, Forecast, Refusal, Rules, forecast, next_card_gib, surely_enough_mib
from postmortem.vram.forecast import BORDERLINE, FITS, TOO_MUCH, UNKNOWN
from postmortem.vram.job import read

TRAINING = "training_step"
PREVIEWS = ("baseline_sampling", "mid_sampling")
_WORST = (TOO_MUCH, BORDERLINE, UNKNOWN, FITS)


class Phase(msgspec.Struct, frozen=True):
    """One phase: its forecast (or why there is none), the fixes where it does not surely fit, and the smallest card
    class (GiB) that surely holds it as it is."""

    name: str
    found: Forecast | Refusal
    planned: Plan
    card_gib: int | None


def phases_of(config: JobConfig, training: Diagnosis, buckets: Sequence[Bucket], knowledge: Knowledge) -> list[str]:
    """The phases of this job that a forecast may be made for, in their order."""
    names: list[str] = []
    job = read(config, training.arch, buckets, knowledge)
    if not isinstance(job, Refusal):
        names += [step.phase for step in job.model.load if step.phase != "quantize" or job.qtype != "bf16"]
    cached = (
        config.get(path)
        for path in config.values
        if path.startswith("datasets[") and path.endswith((".cache_latents", ".cache_latents_to_disk"))
    )
    if any(value is True for value in cached):
        names.append("cache_latents")
    if training.facts["job.samples"]:
        skipped = config.get("train.skip_first_sample") is True
        names.append("mid_sampling" if skipped else "baseline_sampling")
    return [*names, TRAINING]


def weigh(
    config: JobConfig, training: Diagnosis, buckets: Sequence[Bucket], card: Card, knowledge: Knowledge
) -> list[Phase]:
    """Every phase with its forecast, the worst first. A phase of loading that holds nothing of note is left out."""
    rules = Rules(knowledge.memory_rules)
    weighed: list[Phase] = []
    for name in phases_of(config, training, buckets, knowledge):
        estimate = partial(_estimate, arch=training.arch, buckets=buckets, phase=name, card=card, knowledge=knowledge)
        found = forecast(config, training.arch, buckets, name, card, knowledge)
        if isinstance(found, Refusal):
            if found.id != "phase":
                weighed.append(Phase(name, found, Plan(), None))
            continue
        planned = Plan()
        if found.fits in (TOO_MUCH, BORDERLINE):
            planned = plan(expected(config, name, knowledge, buckets), config, knowledge, estimate)
            planned = _bearing(planned, name, knowledge)
        weighed.append(Phase(name, found, planned, next_card_gib(surely_enough_mib(found.need, rules))))
    return sorted(weighed, key=_badness)


def _bearing(planned: Plan, phase: str, knowledge: Knowledge) -> Plan:
    """The fixes that the forecast can size in this phase, and those that no forecast can size at all."""
    predict = {remedy.id: remedy.predict for remedy in knowledge.remedies}
    kept = [item for item in planned.suggestions if phase in predict[item.id] or not predict[item.id]]
    ranked = tuple(msgspec.structs.replace(item, rank=index + 1) for index, item in enumerate(kept))
    return msgspec.structs.replace(planned, suggestions=ranked)


def _estimate(
    config: JobConfig, *, arch: str | None, buckets: Sequence[Bucket], phase: str, card: Card, knowledge: Knowledge
) -> Forecast | None:
    found = forecast(config, arch, buckets, phase, card, knowledge)
    return found if isinstance(found, Forecast) else None


def _badness(phase: Phase) -> tuple[int, float]:
    if isinstance(phase.found, Refusal):
        return len(_WORST), 0.0
    return _WORST.index(phase.found.fits), -phase.found.need.likely


def fits_of(weighed: Sequence[Phase]) -> str:
    """The verdict on the whole job: the worst of its phases; unknown where one has no forecast and the others fit."""
    verdicts = {phase.found.fits for phase in weighed if isinstance(phase.found, Forecast)}
    for verdict in (TOO_MUCH, BORDERLINE):
        if verdict in verdicts:
            return verdict
    whole = all(isinstance(phase.found, Forecast) for phase in weighed)
    return FITS if whole and verdicts == {FITS} else UNKNOWN


def card_of_all(weighed: Sequence[Phase]) -> int | None:
    """The smallest card class that surely holds every phase; None where one has no forecast, or no card does."""
    sizes = [phase.card_gib for phase in weighed]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def find(weighed: Sequence[Phase], *names: str) -> Forecast | None:
    """The forecast of the first phase of one of these names."""
    for phase in weighed:
        if phase.name in names and isinstance(phase.found, Forecast):
            return phase.found
    return None
