"""The failure classes of the contract: what the failing step, its neighbours and the batch shapes amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import msgspec

from postmortem.diagnosis import odds as weighing
from postmortem.model import Attempt, Bucket, BucketOdds, Oom, Skips, is_whole

PROVEN_STEPS = 10
"""Good steps after which an attempt has proved that it can step."""
EPOCHS = 3
"""Passes over the data after which every batch shape has proved that it fits: a later failure is no rare bucket."""
_STARTUP = frozenset({"model_load", "quantize", "text_encoder_load", "setup"})
_CACHING = frozenset({"cache_latents", "cache_text_embeddings"})
_SAMPLING = frozenset({"baseline_sampling", "mid_sampling"})
_FEW_LARGEST = 0.6
"""The few largest buckets: at most this share of all batches."""


class Classified(msgspec.Struct, frozen=True):
    """The class, whether it is inferred, and what was worked out on the way."""

    class_: str | None
    inferred: bool
    suspects: tuple[BucketOdds, ...] = ()
    rate: float | None = None
    skips: Skips | None = None

    @property
    def fits(self) -> bool:
        """Whether what the suspects hold of the batches fits the observed number of failures."""
        return bool(self.suspects) and self.skips is not None and self.skips.fits


def classify(phase: str, attempt: Attempt, facts: Mapping[str, Any], *, gpu: bool) -> Classified:
    """The class of a memory failure in `phase` of `attempt`."""
    if phase in _STARTUP:
        return Classified("startup", False)
    if phase in _CACHING:
        return Classified("caching", False)
    if phase in _SAMPLING:
        return Classified("sampling", False)
    if phase == "saving":
        return Classified("saving", False)
    if phase not in ("training_step", "validation"):
        return Classified(None, False)
    died = attempt.end.outcome in ("failed", "killed")
    if died and attempt.good_steps < PROVEN_STEPS:
        # without a bar (a fragment, or standard output alone) how many good steps went before is not known
        return Classified("early_step", not attempt.trained)
    if not gpu:
        return Classified("steady_training", True)
    enough = PROVEN_STEPS if facts.get("job.shapes") == 1 else 1
    if not died and attempt.end.outcome != "completed_with_skips" and attempt.good_steps < enough:
        # the log ends, or the user ended the run, before a step (of its only shape: enough steps) succeeded
        return Classified("early_step", True)
    return _training(attempt, facts, died=died)


def _training(attempt: Attempt, facts: Mapping[str, Any], *, died: bool) -> Classified:
    failing = [oom for oom in attempt.ooms if oom.phase in ("training_step", "validation") and oom.kind == "gpu_oom"]
    caught = [oom for oom in failing if oom.caught]
    rate = len(failing) / max(1, len(failing) + attempt.good_steps)
    odds = bucket_odds(attempt.buckets, facts.get("job.batch_size") or 1, facts.get("job.block_batches"))
    if _after_preview(attempt, failing):
        return Classified("after_sampling", True, (), rate)
    shapes = facts.get("job.shapes")
    if shapes == 1:
        return Classified("steady_training", True, (), rate)
    largest = _largest(odds)
    given = facts.get("train.gradient_accumulation")
    batches = given if is_whole(given) and given > 0 else 1
    in_steps = [oom.step for oom in failing if oom.phase == "training_step"]
    scattered = [oom for oom in caught if not _in_final_streak(oom, failing, died)]
    skips = None
    # a regularisation dataset is drawn from a loader of its own; a first failure that ends the run has no rate
    if (scattered or not died) and not facts.get("job.regularisation"):
        skips = weighing.weigh(odds, in_steps, attempt.start_step, len(in_steps) + attempt.good_steps, batches)
    best = skips.best if skips is not None else ()
    share = sum(odd.share for odd in largest) if largest else _FEW_LARGEST
    explained = _in_a_step(share, batches)
    if scattered or not died:
        if rate <= explained + 2 * (explained * (1 - explained) / max(1, len(failing) + attempt.good_steps)) ** 0.5:
            return Classified("bucket_spike", True, best, rate, skips)
        return Classified("steady_training", True, (), rate, skips)
    epoch = sum(odd.batches for odd in odds)
    if len(failing) > 1:
        return Classified("steady_training", True, (), rate)
    if odds and attempt.good_steps < EPOCHS * epoch:
        return Classified("bucket_spike", True, best, rate, skips)
    if not odds and (shapes or 0) > 1:
        return Classified("bucket_spike", True, (), rate)
    return Classified("steady_training", True, (), rate)


def _in_final_streak(oom: Oom, failing: Sequence[Oom], died: bool) -> bool:
    """Whether `oom` belongs to the unbroken run of failures that ended the attempt."""
    if not died:
        return False
    streak: list[Oom] = []
    for item in reversed(failing):
        streak.append(item)
        if item.caught and item.counter == 1:
            break
    return oom in streak


def _after_preview(attempt: Attempt, failing: Sequence[Oom]) -> bool:
    """Every streak of failures begins right after a mid-run preview or a save."""
    marks = {step for step in (*attempt.sample_steps, *attempt.save_steps) if step > attempt.start_step}
    if not marks or not failing:
        return False
    starts: list[int] = []
    previous: int | None = None
    for oom in failing:
        if oom.step is None:
            continue
        if previous is None or oom.step != previous + 1:
            starts.append(oom.step)
        previous = oom.step
    reach = 2 if attempt.excerpt_bars else 1
    low = 0 if attempt.excerpt_bars else 1
    return bool(starts) and all(any(low <= start - mark <= reach for mark in marks) for start in starts)


def bucket_odds(
    buckets: Sequence[Bucket], batch_size: int, by_block: Sequence[int] | None = None
) -> tuple[BucketOdds, ...]:
    """Each bucket with its batches an epoch (the last one padded) and its share, largest volume first.

    `by_block` are the batch sizes of the tables in the order of the log, where datasets have their own.
    """

    def size(bucket: Bucket) -> int:
        return max(1, by_block[bucket.block - 1] if by_block and 0 < bucket.block <= len(by_block) else batch_size)

    counted = [(bucket, ceil(bucket.files / size(bucket))) for bucket in buckets if bucket.files]
    total = sum(batches for _, batches in counted)
    if not total:
        return ()
    ordered = sorted(counted, key=lambda pair: (-pair[0].volume, pair[0].line))
    return tuple(BucketOdds(bucket, batches, batches / total) for bucket, batches in ordered)


def _in_a_step(share: float, batches: int) -> float:
    """How often a step of `batches` accumulated batches meets a bucket that holds `share` of them."""
    return 1 - (1 - min(1.0, share)) ** max(1, min(batches, 1000))


def _largest(odds: Sequence[BucketOdds]) -> list[BucketOdds]:
    """The few largest buckets: from the top, as long as they hold no more than the bulk of the batches."""
    chosen: list[BucketOdds] = []
    share = 0.0
    for odd in odds:
        if chosen and share + odd.share > _FEW_LARGEST:
            break
        chosen.append(odd)
        share += odd.share
    return chosen
