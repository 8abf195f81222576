"""The failure classes of the contract: what the failing step, its neighbours and the batch shapes amount to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, fsum
from typing import Any

import msgspec

from postmortem.diagnosis import odds as weighing
from postmortem.model import Attempt, Bucket, BucketOdds, Oom, Skips, is_whole

PROVEN_STEPS = 10
"""Good steps after which an attempt has proved that it can step."""
EPOCHS = 3
"""Passes over the data after which every batch shape has proved that it fits: a later failure is no rare bucket."""
_STEPS = ("training_step", "validation")
_OUTSIDE = {
    "model_load": "startup",
    "quantize": "startup",
    "text_encoder_load": "startup",
    "setup": "startup",
    "cache_latents": "caching",
    "cache_text_embeddings": "caching",
    "baseline_sampling": "sampling",
    "mid_sampling": "sampling",
    "saving": "saving",
}
"""The class of a phase that is no training step."""
_FEW_LARGEST = 0.6
"""The few largest buckets: at most this share of all batches."""


class Classified(msgspec.Struct, frozen=True):
    """The class, whether it is inferred, and what was worked out on the way."""

    class_: str | None
    inferred: bool
    suspects: tuple[BucketOdds, ...] = ()
    skips: Skips | None = None

    @property
    def fits(self) -> bool:
        """Whether what the suspects hold of the batches fits the observed number of failures."""
        return bool(self.suspects) and self.skips is not None and self.skips.fits


def classify(phase: str, attempt: Attempt, facts: Mapping[str, Any], *, gpu: bool) -> Classified:
    """The class of a memory failure in `phase` of `attempt`."""
    if phase not in _STEPS:
        return Classified(_OUTSIDE.get(phase), False)
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
    failing = in_time([oom for oom in attempt.ooms if oom.phase in _STEPS and oom.kind == "gpu_oom"])
    odds = bucket_odds(attempt.buckets, facts.get("job.batch_size") or 1, facts.get("job.block_batches"))
    if _after_preview(attempt, failing):
        return Classified("after_sampling", True)
    shapes = facts.get("job.shapes")
    if shapes == 1:
        return Classified("steady_training", True)
    if not died or any(oom.caught and not _in_final_streak(oom, failing) for oom in failing):
        return _scattered(attempt, facts, failing, odds)
    # a first failure that ends the run has no rate: it is a rare bucket until each has proved that it fits
    rare = attempt.good_steps < EPOCHS * sum(odd.batches for odd in odds) if odds else shapes is not None
    return Classified("bucket_spike" if rare and len(failing) == 1 else "steady_training", True)


def in_time(ooms: Sequence[Oom]) -> list[Oom]:
    """Failures as they came: by step where every step is known, else in the order of the log.

    A piped log prints the abort's traceback before the banners that went before it.
    """
    steps = [oom.step for oom in ooms]
    if None in steps:
        return list(ooms)
    return sorted(ooms, key=lambda oom: oom.step or 0)


def _scattered(
    attempt: Attempt, facts: Mapping[str, Any], failing: Sequence[Oom], odds: Sequence[BucketOdds]
) -> Classified:
    """Failures among good steps: whether one bucket or the few largest explain how many there are."""
    given = facts.get("train.gradient_accumulation")
    batches = given if is_whole(given) and given > 0 else 1
    skips = None
    # a regularisation dataset is drawn from a loader of its own
    if not facts.get("job.regularisation"):
        in_steps = [oom.step for oom in failing if oom.phase == "training_step"]
        skips = weighing.weigh(odds, in_steps, attempt.start_step, len(in_steps) + attempt.good_steps, batches)
    steps = max(1, len(failing) + attempt.good_steps)
    explained = _in_a_step(fsum(odd.share for odd in _largest(odds)) if odds else _FEW_LARGEST, batches)
    if len(failing) / steps > explained + 2 * (explained * (1 - explained) / steps) ** 0.5:
        return Classified("steady_training", True, (), skips)
    return Classified("bucket_spike", True, skips.best if skips is not None else (), skips)


def _in_final_streak(oom: Oom, failing: Sequence[Oom]) -> bool:
    """Whether `oom` belongs to the unbroken run of failures at the end."""
    streak: list[Oom] = []
    for item in reversed(failing):
        streak.append(item)
        if item.caught and item.counter == 1:
            break
    return oom in streak


def _after_preview(attempt: Attempt, failing: Sequence[Oom]) -> bool:
    """Every streak of failures begins right after a mid-run preview or a save."""
    marks = {step for step in (*attempt.sample_steps, *attempt.save_steps) if step > attempt.start_step}
    starts: list[int] = []
    previous: int | None = None
    for oom in failing:
        if oom.step is None:
            continue
        if previous is None or oom.step != previous + 1:
            starts.append(oom.step)
        previous = oom.step
    # a bar that was thinned out places a step one off
    near = (0, 1, 2) if attempt.excerpt_bars else (1,)
    return bool(starts) and all(any(start - mark in near for mark in marks) for start in starts)


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
    return 1 - (1 - share) ** min(batches, 1000)


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
