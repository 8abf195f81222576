"""The failure classes, one rule at a time."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis.classify import bucket_odds, classify
from postmortem.diagnosis.odds import weigh
from postmortem.model import Attempt
from postmortem.pipeline import Analysis
from tests.conftest import Analyse
from tests.diagnosis.build import attempt, bucket, oom
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


@pytest.mark.parametrize(
    ("phase", "class_"),
    [
        ("model_load", "startup"),
        ("quantize", "startup"),
        ("text_encoder_load", "startup"),
        ("setup", "startup"),
        ("cache_latents", "caching"),
        ("cache_text_embeddings", "caching"),
        ("baseline_sampling", "sampling"),
        ("mid_sampling", "sampling"),
        ("saving", "saving"),
        ("unknown", None),
    ],
)
def test_outside_of_the_steps_the_phase_is_the_class(phase: str, class_: str | None) -> None:
    found = classify(phase, attempt(ooms=(oom(None, phase),), good_steps=500, trained=True), {}, gpu=True)
    assert (found.class_, found.inferred, found.suspects, found.skips, found.fits) == (class_, False, (), None, False)


@pytest.mark.parametrize("phase", ["training_step", "validation"])
@pytest.mark.parametrize(
    ("outcome", "good", "trained", "class_", "inferred"),
    [
        # fewer than ten good steps before it died; without a bar nobody counted them
        ("failed", 9, True, "early_step", False),
        ("killed", 0, True, "early_step", False),
        ("failed", 0, False, "early_step", True),
        ("failed", 10, True, "steady_training", True),
        ("completed_with_skips", 9, True, "bucket_spike", True),
    ],
)
def test_ten_good_steps(phase: str, outcome: str, good: int, trained: bool, class_: str, inferred: bool) -> None:
    found = classify(phase, attempt(outcome, ooms=(oom(5, phase),), good_steps=good, trained=trained), {}, gpu=True)
    assert (found.class_, found.inferred) == (class_, inferred)


def test_host_memory_knows_no_buckets() -> None:
    found = classify("training_step", rare(good=20), {"job.shapes": 3}, gpu=False)
    assert (found.class_, found.inferred) == ("steady_training", True)


TWO_SHAPES = (bucket("512x512", 9), bucket("1024x1024", 1))


def rare(*, good: int, ooms: int = 1, **given: Any) -> Attempt:
    return attempt(
        ooms=tuple(oom(good + n, counter=n + 1) for n in range(ooms)), good_steps=good, trained=True, **given
    )


@pytest.mark.parametrize(
    ("given", "facts", "class_"),
    [
        # three passes over ten batches prove that each shape fits
        ({"good": 29, "buckets": TWO_SHAPES}, {}, "bucket_spike"),
        ({"good": 30, "buckets": TWO_SHAPES}, {}, "steady_training"),
        ({"good": 14, "buckets": TWO_SHAPES}, {"job.batch_size": 2}, "bucket_spike"),
        ({"good": 18, "buckets": TWO_SHAPES}, {"job.batch_size": 2}, "steady_training"),
        ({"good": 14, "buckets": TWO_SHAPES}, {"job.block_batches": (2,)}, "bucket_spike"),
        ({"good": 18, "buckets": TWO_SHAPES}, {"job.block_batches": (2,)}, "steady_training"),
        ({"good": 29, "buckets": TWO_SHAPES, "ooms": 2}, {}, "steady_training"),
        # without a table the number of shapes must do
        ({"good": 3000}, {"job.shapes": 2}, "bucket_spike"),
        ({"good": 30}, {"job.shapes": 1}, "steady_training"),
        ({"good": 30}, {}, "steady_training"),
        ({"good": 29, "buckets": TWO_SHAPES}, {"job.shapes": 1}, "steady_training"),
    ],
)
def test_a_failure_that_ended_the_run(given: dict[str, Any], facts: dict[str, Any], class_: str) -> None:
    found = classify("training_step", rare(**given), facts, gpu=True)
    assert (found.class_, found.inferred, found.suspects, found.skips) == (class_, True, (), None)


def skipping(steps: list[int], *, good: int, outcome: str = "completed_with_skips", **given: Any) -> Attempt:
    caught = [oom(step, caught=True, counter=1) for step in steps]
    return attempt(outcome, ooms=(*caught, *given.pop("ooms", ())), good_steps=good, trained=True, **given)


def spread(count: int, total: int) -> list[int]:
    return [n * total // count for n in range(count)]


@pytest.mark.parametrize(
    ("failures", "steps", "facts", "class_"),
    [
        # the largest bucket holds 0.1 of the batches; a rate of two standard deviations above is still its own
        (15, 100, {}, "bucket_spike"),
        (17, 100, {}, "steady_training"),
        # 1 - 0.9 ** 4 = 0.344 of the steps meet it, and 0.095 are two deviations
        (43, 100, {"train.gradient_accumulation": 4}, "bucket_spike"),
        (44, 100, {"train.gradient_accumulation": 4}, "steady_training"),
        (17, 100, {"train.gradient_accumulation": "4"}, "steady_training"),
        (17, 100, {"train.gradient_accumulation": 0}, "steady_training"),
        (15, 100, {"train.gradient_accumulation": 0}, "bucket_spike"),
        (1, 1, {}, "steady_training"),
        (90, 100, {"train.gradient_accumulation": 10**400}, "bucket_spike"),
    ],
)
def test_a_rate_that_the_largest_bucket_explains(failures: int, steps: int, facts: dict[str, Any], class_: str) -> None:
    table = (bucket("1024x1024", 10), bucket("512x512", 90))
    run_ = skipping(spread(failures, steps), good=steps - failures, buckets=table)
    found = classify("training_step", run_, facts, gpu=True)
    assert (found.class_, found.inferred) == (class_, True)
    given = facts.get("train.gradient_accumulation")
    batches = given if isinstance(given, int) else 1
    assert found.skips == weigh(bucket_odds(table, 1), spread(failures, steps), 0, steps, batches)
    assert found.skips is not None
    assert found.suspects == (found.skips.best if class_ == "bucket_spike" else ())


def test_without_a_table_the_bulk_of_the_batches_is_the_bound() -> None:
    """0.6 and two deviations of 0.049."""
    several = {"job.shapes": 3}
    for failures, class_ in ((69, "bucket_spike"), (70, "steady_training")):
        run_ = skipping(spread(failures, 100), good=100 - failures)
        assert classify("training_step", run_, several, gpu=True).class_ == class_


def test_the_few_largest_together_hold_at_most_the_bulk() -> None:
    """0.3 + 0.3 of the batches; a third bucket would be more than 0.6. The largest alone always counts."""
    for table, limit in (
        ((bucket("1024x1024", 30), bucket("768x768", 30), bucket("512x512", 40)), 69),
        ((bucket("1024x1024", 30), bucket("768x768", 40), bucket("512x512", 30)), 39),
        ((bucket("1024x1024", 80), bucket("512x512", 20)), 88),
    ):
        for failures, class_ in ((limit, "bucket_spike"), (limit + 1, "steady_training")):
            run_ = skipping(spread(failures, 100), good=100 - failures, buckets=table)
            assert classify("training_step", run_, {}, gpu=True).class_ == class_


def test_skips_of_a_regularisation_set_are_not_weighed() -> None:
    run_ = skipping([5, 40], good=60, buckets=TWO_SHAPES)
    assert classify("training_step", run_, {}, gpu=True).skips is not None
    found = classify("training_step", run_, {"job.regularisation": True}, gpu=True)
    assert (found.class_, found.skips, found.suspects) == ("bucket_spike", None, ())


def test_only_the_failures_of_steps_on_the_card_count() -> None:
    others = (oom(3, "mid_sampling"), oom(4, kind="host_oom"))
    run_ = skipping([5, 40], good=60, buckets=TWO_SHAPES, ooms=(*others, oom(50, "validation", caught=True, counter=1)))
    skips = classify("training_step", run_, {}, gpu=True).skips
    assert skips is not None and (skips.failures, skips.steps) == (2, 62)


def test_a_row_of_failures_at_the_end_is_one() -> None:
    """3/3 and then the end: what stood before the row was scattered, the row itself is not."""
    row = [oom(40 + n, caught=True, counter=n + 1) for n in range(3)]
    alone = attempt(ooms=(*row, oom(43)), good_steps=40, trained=True, buckets=TWO_SHAPES)
    assert classify("training_step", alone, {}, gpu=True).skips is None
    after = attempt(
        ooms=(oom(7, caught=True, counter=1), *row, oom(43)), good_steps=39, trained=True, buckets=TWO_SHAPES
    )
    assert classify("training_step", after, {}, gpu=True).skips is not None


@pytest.mark.parametrize(
    ("steps", "given", "after"),
    [
        # a preview is made inside step 250: the next step is the first after it
        ([251, 252, 253, 254], {}, True),
        ([250, 251], {}, False),
        ([252, 253], {}, False),
        ([251, 252, 501, 502], {}, True),
        ([251, 252, 502, 503], {}, False),
        ([None, 251, 252], {}, True),
        # a piped log prints the abort before the banners that went before it
        ([254, 251, 252, 253], {}, True),
        ([504, 251, 252], {}, False),
        ([None], {}, False),
        # a save is a mark as well; one at the start is what the run resumed from
        ([301], {"save_steps": (300,), "sample_steps": ()}, True),
        ([251], {"start_step": 250}, False),
        ([251], {"start_step": 249}, True),
        # a thinned bar places steps one off
        ([250], {"excerpt_bars": True}, True),
        ([251], {"excerpt_bars": True}, True),
        ([252], {"excerpt_bars": True}, True),
        ([253], {"excerpt_bars": True}, False),
        ([249], {"excerpt_bars": True}, False),
    ],
)
def test_right_after_a_preview_or_a_save(steps: list[int | None], given: dict[str, Any], after: bool) -> None:
    marks = {"sample_steps": (250, 500), **given}
    run_ = attempt(ooms=tuple(oom(step) for step in steps), good_steps=240, trained=True, **marks)
    found = classify("training_step", run_, {}, gpu=True)
    assert (found.class_ == "after_sampling") is after
    assert found.inferred and found.suspects == ()


def test_batches_of_each_table() -> None:
    """A short batch is padded; each dataset has its own size where it says so; tables of unknown datasets the usual one."""
    table = [
        bucket("512x512", 9, block=1, line=1),
        bucket("1024x1024", 5, block=2, line=2),
        bucket("1024x1024", 4, block=3, line=4),
        bucket("1024x1024", 1, block=0, line=3),
        bucket("64x64", 0, block=1, line=5),
    ]
    found = bucket_odds(table, 4, (2, 3))
    assert [(odd.bucket.line, odd.batches) for odd in found] == [(2, 2), (3, 1), (4, 1), (1, 5)]
    assert [odd.share for odd in found] == pytest.approx([2 / 9, 1 / 9, 1 / 9, 5 / 9])
    assert [odd.batches for odd in bucket_odds(table, 0)] == [5, 1, 4, 9]
    assert bucket_odds([bucket("64x64", 0)], 1) == ()
