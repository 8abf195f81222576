"""The peak of the phase that failed, against the card: parts, verdict, and how this run's own numbers moved it. MiB."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from postmortem.knowledge.schema import Knowledge
from postmortem.model import Bucket, JobConfig, Range
from postmortem.vram.estimate import GIB, Part, Rules, parts, rules_of
from postmortem.vram.job import Refusal, read

FITS, BORDERLINE, TOO_MUCH, UNKNOWN = "fits", "borderline", "does not fit", "unknown"

_GAP_SPREAD = 1.2
_LARGE_GAP_MIB = 1024.0
_LARGE_GAP_SHARE = 0.15


class Card(msgspec.Struct, frozen=True):
    """What of a card this process can have: capacity, and what other things hold of it (None: not known). MiB.

    `allowed` is the cap that the process set itself (a memory fraction).
    """

    capacity: float | None = None
    others: float | None = None
    non_pytorch: float | None = None
    allowed: float | None = None

    @property
    def usable(self) -> float | None:
        """What is left for this process: the card less other processes, and no more than a cap lets it have."""
        if self.capacity is None:
            return self.allowed
        left = self.capacity - (self.others or 0.0)
        return left if self.allowed is None else min(left, self.allowed)


class Forecast(msgspec.Struct, frozen=True):
    """`peak` is what PyTorch allocates at most in `phase`; `need` adds the CUDA context and the allocator's slack.

    `usable` is the card less other processes; None where the card is not known. `anchor_mib` is what this run was
    seen to hold beyond what the config explains.
    """

    phase: str
    model: str
    parts: tuple[Part, ...]
    peak: Range
    need: Range
    usable: float | None
    fits: str
    anchor_mib: float | None = None


def forecast(
    config: JobConfig,
    arch: str | None,
    buckets: Sequence[Bucket],
    phase: str,
    card: Card,
    knowledge: Knowledge,
    gap_mib: float = 0.0,
) -> Forecast | Refusal:
    """The forecast for `phase` of the job that `config` describes; `gap_mib` is added as an unexplained resident."""
    job = read(config, arch, buckets, knowledge)
    if isinstance(job, Refusal):
        return job
    found = parts(job, phase, knowledge)
    if isinstance(found, Refusal):
        return found
    if gap_mib > 0:
        found = (*found, Part("unexplained", gap_mib, gap_mib, gap_mib * _GAP_SPREAD, "observed"))
    rules = rules_of(knowledge)
    peak = Range(*(math.fsum(getattr(part, end) for part in found) for end in ("low", "likely", "high")))
    need = _need(peak, card, rules)
    usable = card.usable
    fits = verdict(need, usable, rules)
    if fits == FITS and gap_mib > max(_LARGE_GAP_MIB, _LARGE_GAP_SHARE * (peak.likely - gap_mib)):
        fits = BORDERLINE  # something holds memory that the config does not explain, and may hold more
    return Forecast(phase, job.model.title, found, peak, need, usable, fits, gap_mib or None)


def anchored(plain: Forecast, memory: Mapping[str, float | None]) -> float:
    """What the failure proves beyond `plain`, MiB; only a lower bound.

    The process held and asked for more than was predicted; and since memory ran out in this phase, the need was
    above what the card had, whatever the config explains. The request that failed need not have been the last.
    """
    allocated, tried = memory.get("pytorch_allocated"), memory.get("tried_to_allocate")
    seen = allocated + tried - plain.peak.high if allocated is not None and tried is not None else 0.0
    short = plain.usable - plain.need.likely if plain.usable is not None else 0.0
    return max(0.0, seen, short)


def _need(peak: Range, card: Card, rules: Rules) -> Range:
    slack, context = rules["slack_gib"], rules["context_gib"]
    seen = card.non_pytorch
    return Range(
        *(
            getattr(peak, end) + getattr(slack, end) * GIB + (seen if seen is not None else getattr(context, end) * GIB)
            for end in ("low", "likely", "high")
        )
    )


def verdict(need: Range, usable: float | None, rules: Rules) -> str:
    """Whether `need` fits into `usable`: said only outside a band around the likely need, and beyond its range."""
    if usable is None:
        return UNKNOWN
    if surely_enough_mib(need, rules) <= usable:
        return FITS
    if min(need.low, need.likely - _band(need, rules)) > usable:
        return TOO_MUCH
    return BORDERLINE


def surely_enough_mib(need: Range, rules: Rules) -> float:
    """From how much usable memory on `need` is said to fit."""
    return max(need.high, need.likely + _band(need, rules))


def _band(need: Range, rules: Rules) -> float:
    return rules["band_gib"].likely * GIB + rules["band_share"].likely * need.likely
