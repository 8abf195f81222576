"""Bucket tables out of the dataset, where the log lacks its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.diagnosis import rebuild
from postmortem.diagnosis.dating import bounds
from postmortem.diagnosis.expected import expected
from postmortem.diagnosis.rebuild import MAX_COPIES, MAX_SIDE, MAX_SIZES, Unusable, changed, settle, tables
from postmortem.knowledge.history import History
from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Bucket, BucketOdds, DatasetSizes, Dated, JobConfig, Notice, Skips, Value
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.scan import Lexicon
from postmortem.text import LogText
from tests.diagnosis.build import attempt, bucket
from tests.simulate import buckets, config, head, training

SMALL = DatasetSizes(LogText("mugs"), ((2000, 2000, False, 30),), "database")
LARGE = DatasetSizes(LogText("mugs_large"), ((2000, 2000, False, 6),), "database")
WIDE = DatasetSizes(LogText("mugs_large"), ((1920, 1080, False, 6),), "database")
JOB: list[dict[str, Any]] = [
    {"folder_path": "/data/mugs", "resolution": [512]},
    {"folder_path": "/data/mugs_large/", "resolution": [1024]},
]
EVERY_SIXTH = set(range(5, 400, 6))
"""Of 36 batches an epoch, 6 fail: those of the large dataset."""


@pytest.fixture
def given(lexicon: Lexicon, history: History) -> Any:
    def analyse_with(
        *datasets: DatasetSizes, job: list[dict[str, Any]] = JOB, table: str = "", **changes: Any
    ) -> Analysis:
        log = head(config(datasets=job, **changes)) + table + training(400, EVERY_SIXTH)
        source = Source("log", "utf-8", [log.encode()])
        return analyse("-", [source], [], lexicon, versions=history, datasets=datasets)

    return analyse_with


def told(analysis: Analysis) -> set[str]:
    return {notice.id for notice in analysis.warnings if notice.id.startswith(("buckets_", "dataset_"))}


def test_square_images_give_one_table_by_every_rule_and_it_is_weighed(given: Any) -> None:
    analysis = given(SMALL, LARGE)
    found = [(item.label, item.files, item.block, item.source) for item in analysis.attempt.buckets]
    assert found == [("512x512", 30, 1, "dataset"), ("1024x1024", 6, 2, "dataset")]
    assert told(analysis) == {"buckets_rebuilt"}
    assert analysis.diagnosis.facts["job.shapes"] == 2
    assert analysis.diagnosis.skips is not None
    assert analysis.diagnosis.skips.label == "1024x1024"


def test_folders_are_matched_by_name_whatever_their_order(given: Any) -> None:
    assert [item.files for item in given(LARGE, SMALL).attempt.buckets] == [30, 6]


def test_repeats_and_flips_count(given: Any) -> None:
    job = [{**JOB[0], "num_repeats": 2, "flip_x": True}, JOB[1]]
    assert [item.files for item in given(SMALL, LARGE, job=job).attempt.buckets] == [120, 6]


def test_rules_that_name_different_shapes_name_none(given: Any) -> None:
    analysis = given(SMALL, WIDE)
    assert analysis.attempt.buckets == ()
    assert told(analysis) == {"buckets_ambiguous"}


@pytest.mark.parametrize(
    ("datasets", "changes", "notice"),
    [
        ((LARGE,), {}, "dataset_unmatched"),
        ((SMALL, DatasetSizes(LogText("mugs_large"), ((9, 9, False, 1),), "headers", unread=2)), {}, "dataset_unsized"),
        ((SMALL, LARGE), {"job": [JOB[0], {**JOB[1], "auto_frame_count": True}]}, "dataset_beyond"),
        ((SMALL, LARGE), {"job": [JOB[0], {**JOB[1], "buckets": False}]}, "dataset_beyond"),
        ((SMALL, LARGE), {"model__arch": "never_heard_of"}, "dataset_beyond"),
    ],
)
def test_what_cannot_be_rebuilt_for_sure_is_said(given: Any, datasets: Any, changes: Any, notice: str) -> None:
    analysis = given(*datasets, **changes)
    assert analysis.attempt.buckets == ()
    assert told(analysis) == {notice}


def test_a_video_dataset_has_its_clips_at_its_frames(given: Any) -> None:
    clips = DatasetSizes(LogText("mugs_large"), ((2000, 2000, True, 6),), "database")
    analysis = given(SMALL, clips, job=[JOB[0], {**JOB[1], "num_frames": 41}])
    assert [item.label for item in analysis.attempt.buckets] == ["512x512", "1024x1024x41"]


def test_the_table_in_the_log_stands(given: Any) -> None:
    job = [JOB[0]]
    same = given(SMALL, job=job, table=buckets({"512x512": 30}))
    assert told(same) == set()
    other = given(SMALL, job=job, table=buckets({"512x512": 31}))
    assert told(other) == {"dataset_changed"}
    assert [(item.files, item.source) for item in other.attempt.buckets] == [(31, "log")]


FAMILY = Family("f", "F", ("f",), "toolkit/models/f.py", divisor_px=16)
ALONE = {
    "folder_path": "/data/mugs",
    "resolution": [512],
    "num_frames": 1,
    "scale": 1.0,
    "num_repeats": 1,
    "bucket_tolerance": 64,
    "buckets": True,
}


def rebuilt(
    *datasets: DatasetSizes,
    job: tuple[dict[str, Any], ...] = (ALONE,),
    family: Family | None = FAMILY,
    dated: Dated | None = None,
    history: History | None = None,
) -> list[list[tuple[str, int, int]]]:
    """Each table by all rules, whatever the date: (shape, files, block) of each row."""
    values = {f"datasets[{n}].{key}": Value(value, "log") for n, one in enumerate(job) for key, value in one.items()}
    found = tables(JobConfig(values, ("log",)), datasets, family, dated, history)
    rows: list[Bucket] = [row for table in found for row in table]
    assert {(row.line, row.source) for row in rows} == {(0, "dataset")}
    return [[(row.label, row.files, row.block) for row in table] for table in found]


@pytest.mark.parametrize(
    ("changes", "files"),
    [
        ({}, 30),
        ({"num_repeats": 3}, 90),
        ({"flip_x": True}, 60),
        ({"flip_y": True}, 60),
        ({"flip_x": True, "flip_y": True, "num_repeats": 2}, 240),
        # what is no count is one
        ({"num_repeats": 0}, 30),
        ({"num_repeats": True}, 30),
        ({"num_repeats": MAX_COPIES}, 30 * MAX_COPIES),
        ({"num_repeats": MAX_COPIES + 1}, 30),
        ({"scale": 100}, 30),
        ({"resolution": 512}, 30),
    ],
)
def test_copies_of_each_file(changes: dict[str, Any], files: int) -> None:
    assert rebuilt(SMALL, job=({**ALONE, **changes},)) == [[("512x512", files, 1)]]


def test_a_table_for_each_resolution() -> None:
    job = ({**ALONE, "resolution": [512, 768]}, {**ALONE, "folder_path": "/data/mugs_large", "resolution": [1024]})
    assert rebuilt(LARGE, SMALL, job=job) == [[("512x512", 30, 1), ("768x768", 30, 2), ("1024x1024", 6, 3)]]


def test_folders_are_taken_in_order_where_names_do_not_tell() -> None:
    job = (ALONE, {**ALONE, "resolution": [1024]})
    expected = [[("512x512", 30, 1), ("1024x1024", 6, 2)]]
    renamed = tuple(DatasetSizes(LogText(name), one.sizes, one.source) for name, one in (("a", SMALL), ("b", LARGE)))
    assert rebuilt(*renamed, job=job) == expected
    twins = tuple(DatasetSizes(LogText("mugs"), one.sizes, one.source) for one in (SMALL, LARGE))
    assert rebuilt(*twins, job=job) == expected
    # one folder may serve two datasets
    assert rebuilt(SMALL, job=job) == [[("512x512", 30, 1), ("1024x1024", 30, 2)]]


@pytest.mark.parametrize("path", ["MIX", "MIX/", "/data/MIX", "D:\\sets\\MIX\\", "./a b/MIX//"])
def test_a_folder_s_name_is_the_last_part_of_its_path(path: str) -> None:
    mix = DatasetSizes(LogText("MIX"), ((2000, 2000, False, 9),), "database")
    assert rebuilt(SMALL, mix, job=({**ALONE, "folder_path": path}, ALONE)) == [[("512x512", 9, 1), ("512x512", 30, 2)]]


@pytest.mark.parametrize(
    ("most", "resolution", "refused"),
    [(6, [512, 768, 1024], False), (5, [512, 768, 1024], True), (2, 512, False), (1, 512, True)],
)
def test_no_more_sizes_are_fitted_than_is_quick(
    most: int, resolution: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each size once for every resolution of its dataset."""
    monkeypatch.setattr(rebuild, "MAX_FITS", most)
    two = DatasetSizes(LogText("mugs"), ((2000, 2000, False, 1), (1500, 1500, False, 1)), "headers")
    job = ({**ALONE, "resolution": resolution},)
    if refused:
        with pytest.raises(Unusable) as told:
            rebuilt(two, job=job)
        assert told.value.notice == Notice("dataset_beyond")
    else:
        assert rebuilt(two, job=job)


def test_no_more_datasets_than_a_job_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "MAX_DATASETS", 2)
    assert rebuilt(SMALL, SMALL, job=(ALONE,) * 2)
    with pytest.raises(Unusable) as told:
        rebuilt(SMALL, SMALL, SMALL, job=(ALONE,) * 3)
    assert told.value.notice == Notice("dataset_unmatched", None, {"given": 3, "wanted": 2})


def sized(count: int, **given: Any) -> DatasetSizes:
    return DatasetSizes(LogText("mugs"), tuple((64 + n, 64, False, 1) for n in range(count)), "headers", **given)


@pytest.mark.parametrize(
    ("datasets", "changes", "family", "notice"),
    [
        ((), {}, FAMILY, Notice("dataset_unmatched", None, {"given": 0, "wanted": 1})),
        ((LARGE, LARGE), {}, FAMILY, Notice("dataset_unmatched", None, {"given": 2, "wanted": 1})),
        ((sized(1, unread=1),), {}, FAMILY, Notice("dataset_unsized", None, {"dataset": LogText("mugs"), "unread": 1})),
        (
            (sized(1, whole=False),),
            {},
            FAMILY,
            Notice("dataset_unsized", None, {"dataset": LogText("mugs"), "unread": 0}),
        ),
        ((sized(0),), {}, FAMILY, Notice("dataset_unsized", None, {"dataset": LogText("mugs"), "unread": 0})),
        (
            (sized(MAX_SIZES + 1),),
            {},
            FAMILY,
            Notice("dataset_unsized", None, {"dataset": LogText("mugs"), "unread": 0}),
        ),
        # too many to fit: each size once for every resolution
        ((sized(MAX_SIZES),), {"resolution": [512] * 6}, FAMILY, Notice("dataset_beyond")),
        ((SMALL,), {}, None, Notice("dataset_beyond")),
        ((SMALL,), {}, Family("f", "F", ("f",), "s"), Notice("dataset_beyond")),
        ((SMALL,), {}, Family("f", "F", ("f",), "s", media="audio", divisor_px=16), Notice("dataset_beyond")),
        *(
            ((SMALL,), changes, FAMILY, Notice("dataset_beyond"))
            for changes in (
                {"resolution": ["512"]},
                {"resolution": [0]},
                {"resolution": [MAX_SIDE + 1]},
                {"resolution": [True]},
                {"scale": 0},
                {"scale": 101},
                {"scale": True},
                {"scale": "1"},
                {"num_frames": 0},
                {"num_frames": None},
                {"num_frames": True},
                {"auto_frame_count": True},
                {"buckets": False},
                {"bucket_tolerance": None},
                {"bucket_tolerance": "64"},
                {"bucket_tolerance": True},
            )
        ),
    ],
)
def test_what_gives_no_table(
    datasets: tuple[DatasetSizes, ...], changes: dict[str, Any], family: Family | None, notice: Notice
) -> None:
    with pytest.raises(Unusable) as refused:
        rebuilt(*datasets, job=({**ALONE, **changes},), family=family)
    assert refused.value.notice == notice
    assert str(refused.value) == notice.id


def test_an_image_that_is_too_small_for_ai_toolkit_gives_no_table() -> None:
    with pytest.raises(Unusable) as refused:
        rebuilt(DatasetSizes(LogText("mugs"), ((3, 3, False, 1),), "headers"))
    assert refused.value.notice == Notice("dataset_beyond")


def test_the_largest_side_is_one() -> None:
    """An image is never made larger than it is."""
    found = rebuilt(SMALL, job=({**ALONE, "resolution": MAX_SIDE},))
    assert found and all(int(label.split("x")[0]) <= 2000 for table in found for label, *_ in table)


def test_two_frames_are_a_clip() -> None:
    clips = DatasetSizes(LogText("mugs"), ((2000, 2000, True, 4),), "database")
    assert rebuilt(clips, job=({**ALONE, "num_frames": 2},)) == [[("512x512x2", 4, 1)]]


OLD = Family("o", "O", ("o",), "toolkit/stable_diffusion_model.py", divisor_px=16)
"""A family of the class whose divisor was doubled."""
PHOTOS = DatasetSizes(LogText("mugs"), ((1920, 1080, False, 6),), "database")


def between(history: History, start: str | None, end: str | None, *, commits: bool = False) -> Dated:
    """A dating by whole days, or by commits."""
    days, shas = ((None, None), (start, end)) if commits else ((start, end), (None, None))
    return Dated(start, end, (), span=bounds(days[0], shas[0], days[1], shas[1], history))


@pytest.mark.parametrize(
    ("start", "end", "commits", "old", "new"),
    [
        # `bucket_tolerance` was the divisor, then the family's, which one class had at half its later size
        ("2025-03-01", "2025-03-20", False, ["896x512"], ["896x512"]),
        ("2025-04-05", "2025-05-05", False, ["944x536"], ["944x528"]),
        ("2025-06-10", "2026-05-01", False, ["944x528"], ["944x528"]),
        (None, "c9264bd", True, ["896x512", "944x536", "944x528"], ["896x512", "944x528"]),
        ("87bac27", None, True, ["960x528"], ["960x528"]),
        ("c9264bd", "87bac27", True, None, None),
        ("2025-04-05", "2026-08-01", False, ["944x536", "944x528", "960x528"], ["944x528", "960x528"]),
        (None, None, False, ["896x512", "944x536", "944x528", "960x528"], ["896x512", "944x528", "960x528"]),
    ],
)
def test_the_rule_is_that_of_the_date(
    start: str | None, end: str | None, commits: bool, old: Any, new: Any, history: History
) -> None:
    given: dict[str, Any] = {
        "job": ({**ALONE, "resolution": 720},),
        "dated": between(history, start, end, commits=commits),
    }
    for family, shapes in ((OLD, old), (FAMILY, new)):
        if shapes is None:
            with pytest.raises(Unusable) as refused:
                rebuilt(PHOTOS, family=family, history=history, **given)
            assert refused.value.notice == Notice("dataset_beyond")
            continue
        found = rebuilt(PHOTOS, family=family, history=history, **given)
        assert found == [[(shape, 6, 1)] for shape in shapes]


def test_a_date_is_needed_and_the_history_to_understand_it(history: History) -> None:
    every = [[(shape, 6, 1)] for shape in ("896x512", "944x528", "960x528")]
    job = ({**ALONE, "resolution": 720},)
    new = between(history, "87bac27", None, commits=True)
    assert rebuilt(PHOTOS, job=job, dated=new) == every
    assert rebuilt(PHOTOS, job=job, history=history) == every
    assert rebuilt(PHOTOS, job=job, history=history, dated=Dated(None, None, ())) == every


def test_images_among_clips_count_since_they_are_taken(history: History) -> None:
    mixed = DatasetSizes(LogText("mugs"), ((2000, 2000, True, 4), (2000, 2000, False, 9)), "database")
    job = ({**ALONE, "num_frames": 41, "flip_x": True},)
    clips, both = [("512x512x41", 8, 1)], [("512x512x41", 8, 1), ("512x512", 18, 1)]
    before = between(history, "87bac27", "8c1a408", commits=True)
    after = between(history, "8c1a408", None, commits=True)
    assert rebuilt(mixed, job=job, dated=before, history=history) == [clips]
    assert rebuilt(mixed, job=job, dated=after, history=history) == [both]
    assert rebuilt(mixed, job=job) == [clips, both]
    # without a clip the job would not have run before; since then it does
    images = DatasetSizes(LogText("mugs"), ((2000, 2000, False, 9),), "database")
    assert rebuilt(images, job=job) == [[("512x512", 18, 1)]]
    with pytest.raises(Unusable):
        rebuilt(images, job=job, dated=before, history=history)
    # a dataset of images never takes clips
    assert rebuilt(mixed, job=(ALONE,)) == [[("512x512", 9, 1)]]


def test_a_table_tells_its_dataset() -> None:
    values = {f"datasets[0].{key}": Value(value, "log") for key, value in ALONE.items()}
    ((row,),) = tables(JobConfig(values, ("log",)), (SMALL,), FAMILY, None, None)
    assert (row.dataset.reveal(), row.width, row.height, row.frames) == ("/data/mugs", 512, 512, 1)
    del values["datasets[0].folder_path"]
    ((row,),) = tables(JobConfig(values, ("log",)), (SMALL,), FAMILY, None, None)
    assert row.dataset.reveal() == "mugs"


def test_crop_and_scale_shape_the_table() -> None:
    halved = {"896x512", "944x528", "960x528"}
    squared = rebuilt(PHOTOS, job=({**ALONE, "resolution": 720, "square_crop": True},))
    assert all(width == height for table in squared for (label, *_) in table for width, height in [label.split("x")])
    small = DatasetSizes(LogText("mugs"), ((3840, 2160, False, 6),), "database")
    assert {label for ((label, *_),) in rebuilt(small, job=({**ALONE, "resolution": 720, "scale": 0.5},))} == halved


def told_by(rows: tuple[Bucket, ...], class_: str | None, skips: Skips | None, knowledge: Knowledge) -> Any:
    found = expected(JobConfig({}, ()), "training_step", knowledge)
    return rows, msgspec.structs.replace(found, class_=class_, skips=skips)


def test_the_newest_table_stands_for_all_that_say_the_same(knowledge: Knowledge) -> None:
    small, large, other = bucket("512x512", 30), bucket("1024x1024", 6), bucket("1040x1024", 6)
    odds = BucketOdds(large, 6, 0.2)

    def skips(**changes: Any) -> Skips:
        return Skips(
            **{
                "rows": (odds,),
                "failures": 3,
                "steps": 40,
                "best": (odds,),
                "share": 0.2,
                "odds": 0.9,
                "fits": True,
                "fitting": 1,
                "always": True,
                "label": "1024x1024",
                **changes,
            }
        )

    one = told_by((small, large), "bucket_spike", skips(), knowledge)
    assert settle([one]) == 0
    # what decides nothing may differ: the smaller shapes, the odds
    alike = told_by((bucket("528x512", 30), large), "bucket_spike", skips(odds=0.7, failures=3), knowledge)
    assert settle([alike, one]) == 1
    assert settle([one, alike, one]) == 2
    for rows, class_, found in (
        ((small, other), "bucket_spike", skips()),
        ((small, large), "steady_training", skips()),
        ((small, large), "bucket_spike", skips(label=None)),
        ((small, large), "bucket_spike", skips(fits=False)),
        ((small, large), "bucket_spike", skips(best=(BucketOdds(small, 30, 0.8),))),
        ((small, large), "bucket_spike", None),
    ):
        assert settle([one, told_by(rows, class_, found, knowledge)]) is None
    none = told_by((small, large), None, None, knowledge)
    assert settle([none, none]) == 1
    # a clip weighs by its frames
    clip = bucket("512x512x41", 3)
    assert settle([told_by((clip, large), None, None, knowledge), told_by((clip, other), None, None, knowledge)]) == 1


def row(label: str, files: int, *, block: int = 1, line: int = 10, dataset: str = "/data/mugs") -> Bucket:
    return msgspec.structs.replace(bucket(label, files, block=block, line=line), dataset=LogText(dataset))


@pytest.mark.parametrize(
    ("printed", "trained", "differs"),
    [
        ([row("512x512", 30), row("768x512", 2)], True, False),
        # in whatever order, and of whichever system the path is
        ([row("768x512", 2), row("512x512", 30)], True, False),
        ([row("512x512", 31, line=12), row("768x512", 2, line=13)], True, True),
        ([row("512x512", 30, line=12)], True, True),
        ([row("512x512", 30, line=12), row("768x512", 2), row("768x512", 2)], True, True),
        ([row("512x512", 31, line=12, dataset="D:\\sets\\mugs\\")], True, True),
        # a table at which the log may end is not whole
        ([row("512x512", 31, line=12)], False, False),
        ([row("512x512", 31, line=12), row("512x512", 30, block=2, line=20)], False, True),
        # nor is one whose head is cut off
        ([row("512x512", 31, block=0, line=12)], True, False),
        ([row("512x512", 31, block=0, line=12), row("1024x1024", 5, block=1, line=20)], True, True),
        # of a dataset that was not given
        ([row("512x512", 31, line=12, dataset="/data/cups")], True, False),
        # each table for itself: one dataset has one for each resolution
        ([row("1024x1024", 6, line=9), row("512x512", 30, block=2), row("768x512", 2, block=2)], True, False),
    ],
)
def test_a_table_that_the_dataset_no_longer_gives(printed: list[Bucket], trained: bool, differs: bool) -> None:
    older = (row("512x512", 32),)
    newer = (row("512x512", 30), row("768x512", 2), row("1024x1024", 6, block=2))
    found = changed(attempt(trained=trained, buckets=tuple(printed)), [older, newer])
    if not differs:
        assert found is None
        return
    line = 20 if printed[0].block == 0 else 12
    assert found == Notice("dataset_changed", line, {"dataset": LogText("mugs")})
