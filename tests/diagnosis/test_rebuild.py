"""Bucket tables out of the dataset, where the log lacks its own."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.knowledge.history import History
from postmortem.model import DatasetSizes
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
