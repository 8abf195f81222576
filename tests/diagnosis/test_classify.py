"""The failure classes, one rule at a time."""

from __future__ import annotations

import pytest

from postmortem.pipeline import Analysis
from tests.conftest import Analyse
from tests.simulate import buckets, config, finished, head, training
from tests.timeline.test_attempts import SIZES

TABLE = buckets({"512x512": 40, "768x768": 30, "1024x1024": 8})


def class_of(analysis: Analysis) -> str | None:
    return analysis.diagnosis.class_


def test_fewer_than_ten_good_steps_is_early_whatever_else(run: Analyse) -> None:
    assert class_of(run(head(config()) + TABLE + training(400, {9, 10, 11, 12}))) == "early_step"
    assert class_of(run(head(config()) + TABLE + training(400, {10, 11, 12, 13}))) == "steady_training"


def test_scattered_skips_at_the_rate_of_the_largest_bucket(run: Analyse) -> None:
    analysis = run(head(config()) + TABLE + training(100, {3, 17, 20, 38, 44, 52, 61, 77, 80, 93}) + finished())
    assert class_of(analysis) == "bucket_spike"
    assert [odd.bucket.label for odd in analysis.diagnosis.suspects] == ["1024x1024"]
    assert analysis.diagnosis.suspects[0].share == pytest.approx(8 / 78)


def test_more_than_the_largest_can_explain(run: Analyse) -> None:
    skipped = {step for step in range(100) if step % 4}
    assert class_of(run(head(config()) + TABLE + training(100, skipped) + finished())) == "steady_training"


def test_one_shape_only(run: Analyse) -> None:
    one = head(config(datasets__resolution=[1024])) + buckets({"1024x1024": 30})
    assert class_of(run(one + training(100, {30, 60}) + finished())) == "steady_training"


def test_a_log_that_ends_before_its_only_shape_succeeded(run: Analyse) -> None:
    one = head(config(datasets__resolution=[1024])) + buckets({"1024x1024": 30})
    assert class_of(run(one + training(400, {0, 1, 2}, until=3))) == "early_step"
    assert class_of(run(one + training(400, {4, 5}, until=6))) == "early_step"
    assert class_of(run(one + training(400, {40, 41}, until=42))) == "steady_training"


def test_a_log_that_ends_with_several_shapes(run: Analyse) -> None:
    """With no step done nothing is proven; with some, the batch that failed can be one of the large ones."""
    assert class_of(run(head(config()) + TABLE + training(400, {0, 1}, until=2))) == "early_step"
    assert class_of(run(head(config()) + TABLE + training(400, {5}, until=9))) == "bucket_spike"


def test_accumulated_batches_meet_the_bucket_more_often(run: Analyse) -> None:
    skipped = set(range(2, 100, 3))
    assert class_of(run(head(config()) + TABLE + training(100, skipped) + finished())) == "bucket_spike"
    few = buckets({"512x512": 70, "768x768": 60, "1024x1024": 6})
    many = {step for step in range(100) if step % 5 in (0, 2, 4)}
    assert (
        class_of(run(head(config(train__gradient_accumulation=16)) + few + training(100, many) + finished()))
        == "bucket_spike"
    )


def test_the_first_steps_after_a_preview(run: Analyse) -> None:
    preview = "\n\rGenerating Samples:   0%|          | 0/2 [00:00<?, ?it/s]\rGenerating Samples: 100%|##########| 2/2 [00:09<00:00,  4.5s/it]\n"
    before = training(400, [], until=251).rstrip("\n")
    before = before[: before.rindex("\r")]  # inside step 250 the bar has not counted on yet
    after = training(400, {251, 252, 253, 254}, start=251, postfix=before[before.rindex(", lr") : -1])
    after = after[after.index("\n#####") - 1 :]
    analysis = run(head(config()) + TABLE + before + preview + after)
    assert class_of(analysis) == "after_sampling"


def test_a_single_fatal_oom_before_every_shape_was_seen(run: Analyse) -> None:
    error = f"Error running job: {SIZES}\n"
    assert class_of(run(head(config()) + TABLE + training(400, [], until=40) + error)) == "bucket_spike"
    assert class_of(run(head(config()) + TABLE + training(2000, [], until=900) + error)) == "steady_training"


def test_validation_is_touched_by_no_training_fix(run: Analyse) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2670, in run\n'
        "    self.validate()\n"
        '  File "/opt/ai-toolkit/extensions_built_in/sd_trainer/SDTrainer.py", line 900, in validate\n'
        "    pred = self.predict_noise(noisy)\n"
        f"torch.OutOfMemoryError: {SIZES}\n"
    )
    off = config(train__gradient_checkpointing=False, train__batch_size=4)
    analysis = run(head(off) + TABLE + training(400, [], until=100) + f"Error running job: {SIZES}\n" + trace)
    assert analysis.diagnosis.phase == "validation"
    ids = {item.id for item in analysis.suggestions}
    assert not ids & {"enable_gradient_checkpointing", "reduce_batch_size", "drop_largest_resolution"}


def test_a_preview_in_a_fragment_has_no_step(run: Analyse) -> None:
    """Whether training had begun stands in the part that is missing."""
    analysis = run(
        "Traceback (most recent call last):\n"
        '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 303, in sample\n'
        "    self.sd.generate_images(gen_img_config_list, sampler=sample_config.sampler)\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB "
        "of which 1.00 GiB is free.\n"
    ).diagnosis
    assert (analysis.kind, analysis.class_, analysis.step) == ("gpu_oom", "sampling", None)
    assert analysis.confidence != "high"


def test_a_consequence_in_a_fragment_proves_nothing(run: Analyse) -> None:
    whole = run(head(config()) + training(40, []) + "Error running job: 'exp_avg'\n").diagnosis
    part = run(training(40, []) + "Error running job: 'exp_avg'\n").diagnosis
    assert whole.kind == "not_memory"
    assert (part.kind, part.confidence) == ("unknown", "low")


TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ai-toolkit/run.py", line 120, in main\n'
    "    job.run()\n"
    "{}"
    f"torch.OutOfMemoryError: {SIZES}\n"
)


def test_a_traceback_that_names_no_place_leaves_the_phase_inferred(run: Analyse) -> None:
    start = head(config()) + TABLE + "Generating baseline samples before training\n" + f"Error running job: {SIZES}\n"
    inside = '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2481, in run\n    self.sample(self.step_num)\n'
    named, bare = run(start + TRACE.format(inside)).diagnosis, run(start + TRACE.format("")).diagnosis
    assert (named.phase, named.confidence) == ("baseline_sampling", "high")
    assert (bare.phase, bare.confidence) == ("baseline_sampling", "medium")


def test_good_steps_are_not_known_for_certain_without_a_bar(run: Analyse) -> None:
    step = '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2625, in run\n    loss_dict = self.hook_train_loop(batch_list)\n'
    error = f"Error running job: {SIZES}\n" + TRACE.format(step)
    seen = run(head(config()) + TABLE + training(400, [], until=2) + error).diagnosis
    unseen = run(head(config()) + TABLE + error).diagnosis
    assert (seen.class_, seen.confidence) == ("early_step", "high")
    assert (unseen.class_, unseen.confidence) == ("early_step", "medium")


def test_more_accumulated_batches_than_the_data_set_has(run: Analyse) -> None:
    """Every step meets every shape: no shape explains that some fail."""
    small = buckets({"512x512": 5, "768x768": 3, "1024x1024": 2})
    analysis = run(head(config(train__gradient_accumulation=16)) + small + training(100, {12, 30, 55}) + finished())
    assert analysis.diagnosis.kind == "gpu_oom"
    assert analysis.diagnosis.skips is not None and not analysis.diagnosis.skips.fits
    assert analysis.diagnosis.skips.label is None
