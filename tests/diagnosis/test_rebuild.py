"""Bucket tables out of the dataset, where the log lacks its own."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis.rebuild import MAX_COPIES, MAX_SIDE, MAX_SIZES, Unusable, tables
from postmortem.knowledge.history import History
from postmortem.knowledge.schema import Family
from postmortem.model import Bucket, DatasetSizes, JobConfig, Notice, Value
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.scan import Lexicon
from postmortem.text import LogText
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
    *datasets: DatasetSizes, job: tuple[dict[str, Any], ...] = (ALONE,), family: Family | None = FAMILY
) -> list[list[tuple[str, int, int]]]:
    """Each table by all rules, whatever the date: (shape, files, block) of each row."""
    values = {f"datasets[{n}].{key}": Value(value, "log") for n, one in enumerate(job) for key, value in one.items()}
    found = tables(JobConfig(values, ("log",)), datasets, family, None, None)
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
