"""The forecast of the phase that failed, anchored on what the failure proves, and the same for any changed config."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from postmortem.knowledge.schema import Knowledge
from postmortem.model import Attempt, Diagnosis, JobConfig
from postmortem.vram.forecast import Card, Forecast, anchored, forecast
from postmortem.vram.job import Refusal
from postmortem.vram.ledger import ledger

Estimate = Callable[[JobConfig], Forecast | None]
"""The forecast of one phase for a config; None where there is none."""
RAN_OUT = ("gpu_oom", "vram_spill")


def card_of(diagnosis: Diagnosis, attempts: Sequence[Attempt], given_mib: float | None) -> Card:
    """The card as this attempt's messages give it, else an earlier attempt's, else as the user says."""
    sizes = diagnosis.memory_mib
    seen = [sizes.get("gpu_total")]
    seen += [oom.sizes_mib.get("gpu_total") for one in attempts for oom in reversed(one.ooms)]
    capacity = next((size for size in seen if size), None)
    balance = ledger(sizes)
    allowed = diagnosis.facts.get("memory.allowed")
    return Card(capacity or given_mib, balance.other_processes, balance.non_pytorch, allowed)


def outlook(
    diagnosis: Diagnosis, config: JobConfig, attempt: Attempt, card: Card, knowledge: Knowledge
) -> tuple[Forecast | Refusal, Estimate]:
    """The forecast of the phase that failed (of training, where nothing did), and the same for any changed config."""
    phase = diagnosis.phase if diagnosis.kind == "gpu_oom" else "training_step"

    def of(wanted: JobConfig, gap_mib: float = 0.0) -> Forecast | Refusal:
        return forecast(wanted, diagnosis.arch, attempt.buckets, phase, card, knowledge, gap_mib)

    if diagnosis.kind in ("host_oom", "not_memory"):
        return Refusal("not_the_card"), lambda wanted: None
    plain = of(config)
    ran_out = diagnosis.kind in RAN_OUT
    gap = anchored(plain, diagnosis.memory_mib) if isinstance(plain, Forecast) and ran_out else 0.0
    told = of(config, gap) if gap else plain

    def estimate(wanted: JobConfig) -> Forecast | None:
        found = told if wanted is config else of(wanted, gap)
        return found if isinstance(found, Forecast) else None

    return told, estimate
