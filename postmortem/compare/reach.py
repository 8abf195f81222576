"""How far an attempt got against the place where another one failed."""

from __future__ import annotations

from math import ceil

import msgspec

from postmortem.diagnosis.classify import bucket_odds
from postmortem.model import Attempt, is_whole
from postmortem.pipeline import Analysis

MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")
INTERVALS = 3
"""So many times the interval between the earlier skips, without a skip, prove that they are gone."""
STREAK = 3
"""Steps that AI Toolkit skips in a row: early failures no further apart are at the same place."""
_GROUPS = {
    "model_load": 0,
    "quantize": 0,
    "text_encoder_load": 0,
    "setup": 0,
    "cache_latents": 1,
    "cache_text_embeddings": 1,
    "baseline_sampling": 2,
    "training_step": 3,
    "mid_sampling": 3,
    "saving": 3,
    "validation": 3,
}
_PREVIEWS = ("baseline_sampling", "mid_sampling")


class Reach(msgspec.Struct, frozen=True):
    """What the later attempt shows of the earlier one's failure.

    `verdict`: passed · not_yet · same · later · earlier · elsewhere · other_kind. `until` is the step that it must
    complete (its own numbering) where that is known; `preview_off` says that it passed because no preview ran.
    """

    verdict: str
    until: int | None = None
    preview_off: bool = False


def failed(analysis: Analysis) -> bool:
    """Whether the attempt failed: it died, it dropped batches, or it spilled."""
    return analysis.diagnosis.kind in MEMORY_KINDS or analysis.attempt.end.outcome in ("failed", "killed")


def reach(failing: Analysis, retry: Analysis) -> Reach:
    """How `retry` stands to the failure of `failing`."""
    if failed(retry):
        return _both_failed(failing, retry)
    group = _GROUPS.get(failing.diagnosis.phase)
    if group is None:
        return Reach("passed" if _whole(retry.attempt) else "not_yet")
    preview_off = failing.diagnosis.phase in _PREVIEWS and not _previewed(failing.diagnosis.phase, retry.attempt)
    if group < 3:
        beyond = retry.attempt.trained or any(_GROUPS.get(s.phase, -1) > group for s in retry.attempt.stages)
        if preview_off and not _chosen_off(retry, baseline=True):
            return Reach("not_yet")
        return Reach("passed" if beyond else "not_yet", None, beyond and preview_off)
    return _steps(failing, retry, preview_off)


def first_failing_step(analysis: Analysis) -> int | None:
    """The first step that failed, counted from the attempt's own start; None where the log does not say."""
    diagnosis, attempt = analysis.diagnosis, analysis.attempt
    steps = [oom.step for oom in attempt.ooms if oom.phase == diagnosis.phase and oom.step is not None]
    if diagnosis.step is not None:
        steps.append(diagnosis.step)
    return max(0, min(steps) - attempt.start_step) if steps else None


def last_step(attempt: Attempt) -> int | None:
    """The last completed step, from the attempt's own start."""
    done = attempt.last_completed_step
    if done is None and _whole(attempt) and attempt.total_steps:
        done = attempt.total_steps - 1
    return done - attempt.start_step if done is not None else None


def _steps(failing: Analysis, retry: Analysis, preview_off: bool) -> Reach:
    attempt = retry.attempt
    done = last_step(attempt)
    # where an abort ended is further than where its first skip was: the whole streak must be passed
    dead = failing.diagnosis.step
    place = dead - failing.attempt.start_step if dead is not None else first_failing_step(failing)
    if place is None:
        return Reach("passed" if _whole(attempt) else "not_yet")
    needed = place + 1
    spike = failing.diagnosis.class_ == "bucket_spike"
    if spike:
        needed = max(needed, _clean_steps(failing))
    wants_preview = failing.diagnosis.phase == "mid_sampling" or failing.diagnosis.class_ == "after_sampling"
    marks = [s for s in (*attempt.sample_steps, *attempt.save_steps) if s > attempt.start_step]
    if failing.diagnosis.phase == "mid_sampling":
        marks = [s for s in attempt.sample_steps if s > attempt.start_step]
    if wants_preview and not marks and not _chosen_off(retry):
        every = retry.config.get("sample.sample_every")
        if is_whole(every) and every > 0:
            needed = max(needed, every + 1)
        return Reach("not_yet", attempt.start_step + needed)
    passed = done is not None and (done >= needed)
    if spike and done is not None and attempt.good_steps < needed:
        passed = False
    if passed:
        return Reach("passed", None, preview_off or (wants_preview and not marks))
    return Reach("not_yet", attempt.start_step + needed)


def _clean_steps(failing: Analysis) -> int:
    """Steps without a skip after which rare large batches have had their turn: an epoch, or several skip intervals."""
    attempt = failing.attempt
    failures = sum(1 for oom in attempt.ooms if oom.phase == "training_step")
    interval = ceil(INTERVALS * (attempt.good_steps + failures) / max(1, failures))
    odds = bucket_odds(attempt.buckets, failing.diagnosis.facts.get("job.batch_size") or 1)
    batches = failing.diagnosis.facts.get("train.gradient_accumulation")
    epoch = ceil(sum(odd.batches for odd in odds) / (batches if is_whole(batches) and batches > 0 else 1))
    return min(epoch, interval) if epoch else interval


def _both_failed(failing: Analysis, retry: Analysis) -> Reach:
    mine, theirs = failing.diagnosis, retry.diagnosis
    groups = _GROUPS.get(mine.phase), _GROUPS.get(theirs.phase)
    order = _order(failing, retry, groups)
    if mine.kind != theirs.kind and order != "later":
        return Reach("other_kind")
    return Reach(order)


def _order(failing: Analysis, retry: Analysis, groups: tuple[int | None, int | None]) -> str:
    mine, theirs = failing.diagnosis, retry.diagnosis
    if groups[0] is None or groups[1] is None:
        return "elsewhere"
    if groups[0] != groups[1]:
        return "later" if groups[1] > groups[0] else "earlier"
    if groups[0] < 3:
        return "same" if mine.phase == theirs.phase else "elsewhere"
    if mine.phase == theirs.phase and mine.class_ == theirs.class_ == "bucket_spike":
        return "same"
    before, after = first_failing_step(failing), first_failing_step(retry)
    if before is None or after is None:
        return "same" if mine.phase == theirs.phase and mine.class_ == theirs.class_ else "elsewhere"
    near = STREAK if mine.class_ == theirs.class_ == "early_step" else 0
    if abs(after - before) <= near:
        return "same" if mine.phase == theirs.phase else "elsewhere"
    if after < before:
        return "earlier"
    # past the first skip is not yet past the last failure of the streak
    dead = mine.step - failing.attempt.start_step if mine.step is not None else before
    return "later" if after > dead else "same"


def _whole(attempt: Attempt) -> bool:
    return attempt.end.outcome in ("completed", "completed_with_skips")


def _previewed(phase: str, attempt: Attempt) -> bool:
    return any(stage.phase == phase for stage in attempt.stages)


def _chosen_off(retry: Analysis, *, baseline: bool = False) -> bool:
    """Whether the retry's config says that the preview in question is not to run."""
    config = retry.config
    off = config.get("train.disable_sampling") is True
    return off or (baseline and config.get("train.skip_first_sample") is True)
