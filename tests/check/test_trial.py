"""The guide's conditions for checkpointing off, each holding, failing and left open."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.check.document import JobItem
from tests.check.conftest import job, stable
from tests.simulate import buckets, config, head, training

OFF: dict[str, Any] = {"train__gradient_checkpointing": False}


def answer(found: JobItem, name: str) -> tuple[bool | None, str]:
    return next((item.holds, item.reason) for item in found.trial.conditions if item.id == name)


FEW = head(config()) + training(40, [], until=12)
MANY = head(config()) + training(400, [], until=150)
DIED = head(config()) + training(400, {0, 1, 2, 3})
SKIPPED = head(config()) + training(400, {7})
CRASHED = head(config()) + training(400, [], until=150) + "\nTraceback (most recent call last):\nValueError: no\n"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (None, (None, "no_log")),
        (stable(), (True, "completed")),
        (MANY, (True, "many_steps")),
        (FEW, (None, "few_steps")),
        (DIED, (False, "ran_out")),
        (SKIPPED, (False, "ran_out")),
        (CRASHED, (False, "failed")),
    ],
)
def test_stable(log: str | None, expected: tuple[bool | None, str]) -> None:
    assert answer(job(log=log), "stable") == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (True, "small")),
        ({"train__batch_size": 2}, (False, "large")),
        ({"model__arch": "flux", "train__batch_size": 4}, (True, "small")),
        ({"model__arch": "flux", "train__batch_size": 5}, (False, "large")),
        ({"model__arch": "sdxl", "train__batch_size": 2}, (None, "no_number")),
        ({"model__arch": "sdxl", "train__batch_size": 4}, (False, "large")),
    ],
)
def test_batch_conservative(changes: dict[str, Any], expected: tuple[bool | None, str]) -> None:
    assert answer(job(**changes), "batch_conservative") == expected


def test_largest_bucket_and_headroom_by_the_forecast_with_checkpointing_on_and_off() -> None:
    for changes in (dict[str, Any](), OFF):  # the config's own value does not matter
        between = job(gpu_gib=32, **changes)
        assert answer(between, "largest_bucket") == (True, "room")
        assert answer(between, "headroom") == (False, "short")
    assert answer(job(gpu_gib=141), "headroom") == (True, "room")
    assert answer(job(gpu_gib=12), "largest_bucket") == (False, "at_limit")
    assert answer(job(), "headroom") == (None, "card_unknown")
    assert answer(job(gpu_gib=24, model__arch="sd3"), "headroom") == (None, "no_forecast")
    assert answer(job(gpu_gib=141, log=SKIPPED), "largest_bucket") == (False, "ran_out")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (True, "lighter")),
        ({"train__disable_sampling": True}, (True, "off")),
        ({"sample__width": 4096, "sample__height": 4096}, (False, "heavier")),
        ({"model__arch": "sd3", "datasets__resolution": [512]}, (False, "larger")),
        ({"model__arch": "sd3"}, (None, "no_forecast")),
    ],
)
def test_previews_light(changes: dict[str, Any], expected: tuple[bool | None, str]) -> None:
    assert answer(job(**changes), "previews_light") == expected


def test_one_variable() -> None:
    assert answer(job(), "one_variable") == (None, "no_log")
    assert answer(job(log=stable()), "one_variable") == (True, "alone")
    assert answer(job(log=stable(), **OFF), "one_variable") == (True, "alone")
    assert answer(job(log=stable(), train__lr=2e-4, **OFF), "one_variable") == (True, "alone")
    assert answer(job(log=stable(), train__batch_size=2, **OFF), "one_variable") == (False, "others")
    bare = stable().replace("{", "(", 1)
    assert answer(job(log=bare), "one_variable") == (None, "config_unknown")


def test_all_hold() -> None:
    on = job(gpu_gib=141, log=stable()).trial
    assert (on.on, on.verdict, len(on.watch)) == (True, "yes", 3)
    assert [(edit.path, edit.to) for edit in on.changes] == [("train.gradient_checkpointing", False)]
    off = job(gpu_gib=141, log=stable(), **OFF).trial
    assert (off.on, off.verdict, off.changes, len(off.watch)) == (False, "yes", [], 3)


def test_one_that_does_not_hold_decides_and_turns_it_back_on() -> None:
    on = job(gpu_gib=24, log=stable()).trial
    assert (on.verdict, on.changes, on.watch) == ("no", [], [])
    off = job(gpu_gib=24, log=stable(), **OFF).trial
    assert off.verdict == "no"
    assert [(edit.path, edit.to) for edit in off.changes] == [("train.gradient_checkpointing", True)]


def test_one_that_is_not_known_leaves_it_open() -> None:
    assert (job(log=stable()).trial.verdict, job(gpu_gib=141).trial.verdict) == ("open", "open")
    assert job(log=stable()).trial.changes == []


def test_a_job_that_the_log_shows_stable_with_checkpointing_off_is_proven() -> None:
    assert job(gpu_gib=24, log=stable(**OFF), **OFF).trial.verdict == "proven"
    assert job(gpu_gib=24, log=stable(**OFF), train__batch_size=2, **OFF).trial.verdict == "no"


def test_batch_shapes_of_the_log_bound_the_largest_batch_of_the_same_data_only() -> None:
    def peak(found: JobItem) -> float:
        part = next(phase.forecast for phase in found.phases if phase.phase == "training_step")
        assert part is not None
        return part.peak.likely

    log = head(config()) + buckets({"512x512": 30}) + training(40, [])
    assert peak(job(log=log)) < peak(job())
    other: dict[str, Any] = {"datasets__folder_path": "/data/cups"}
    assert peak(job(log=log, **other)) == peak(job(**other))
