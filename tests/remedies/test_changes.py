"""What each kind of edit makes of a setting, and where it makes nothing of it."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.knowledge.schema import Change
from postmortem.model import JobConfig, Value
from postmortem.remedies.changes import work_out
from postmortem.text import LogText

UNSET = object()
A, B = "datasets[0].", "datasets[1]."


def edits(change: Change, values: dict[str, Any], *, defaults: tuple[str, ...] = ()) -> dict[str, tuple[Any, Any]]:
    """The edits of `change` on a config of `values`, by path: from which value to which."""
    given = {path: Value(value, "default" if path in defaults else "log") for path, value in values.items()}
    return {edit.path: (edit.before, edit.after) for edit in work_out((change,), JobConfig(given, ("log",)))}


@pytest.mark.parametrize(
    ("change", "before", "after"),
    [
        # a switch that is where it should be is no edit; what is not set is off
        (Change("model.low_vram", set=True), False, True),
        (Change("model.low_vram", set=True), True, UNSET),
        (Change("model.low_vram", set=True), None, True),
        (Change("model.low_vram", set=False), True, False),
        (Change("model.low_vram", set=False), False, UNSET),
        (Change("model.low_vram", set=False), None, UNSET),
        (Change("train.optimizer", set="adamw8bit"), "adamw", "adamw8bit"),
        # never below one, nor below a floor; no number, no edit
        (Change("train.batch_size", op="halve"), 8, 4),
        (Change("train.batch_size", op="halve"), 3, 1),
        (Change("train.batch_size", op="halve"), 1, UNSET),
        (Change("train.batch_size", op="halve"), True, UNSET),
        (Change("train.batch_size", op="halve"), "8", UNSET),
        (Change("train.batch_size", op="halve"), None, UNSET),
        (Change("network.linear", op="halve", floor=4), 6, 4),
        (Change("network.linear", op="halve", floor=4), 4, UNSET),
        (Change("network.linear", op="halve", floor=4), 2, UNSET),
        (Change("sample.sample_every", op="double"), 250, 500),
        # AI Toolkit's video frames are 4n+1 or 8n+1
        (Change("sample.num_frames", op="scale_frames"), 121, 57),
        (Change("sample.num_frames", op="scale_frames"), 81, 41),
        (Change("sample.num_frames", op="scale_frames"), 17, 9),
        (Change("sample.num_frames", op="scale_frames"), 16, 1),
        (Change("sample.num_frames", op="scale_frames"), 2, 1),
        (Change("sample.num_frames", op="scale_frames"), 1, UNSET),
        (Change("sample.num_frames", op="scale_frames"), 0, UNSET),
        (Change("sample.num_frames", op="scale_frames"), -30, UNSET),
        # half the pixels in steps of 64, at least 256
        (Change("sample.width", op="scale_side"), 1024, 704),
        (Change("sample.width", op="scale_side"), 1344, 896),
        (Change("sample.width", op="scale_side"), 320, 256),
        (Change("sample.width", op="scale_side"), 256, UNSET),
        (Change("sample.width", op="scale_side"), 200, UNSET),
        # an adapter belongs to its type, so it goes with it
        (Change("model.qtype", op="lower_bits"), "qfloat8", "uint4"),
        (Change("model.qtype", op="lower_bits"), "uint5|some/adapter9", "uint4"),
        (Change("model.qtype", op="lower_bits"), "uint4", "uint3"),
        (Change("model.qtype", op="lower_bits"), "uint3|some/adapter8", UNSET),
        (Change("model.qtype", op="lower_bits"), "uint2", UNSET),
        (Change("model.qtype", op="lower_bits"), "qfloat", UNSET),
        (Change("model.qtype", op="lower_bits"), None, UNSET),
    ],
)
def test_one_setting(change: Change, before: Any, after: Any) -> None:
    values = {} if before is None else {change.path: before}
    assert edits(change, values) == ({} if after is UNSET else {change.path: (before, after)})


def test_without_a_config_there_is_nothing_to_edit() -> None:
    assert work_out((Change("model.low_vram", set=True),), JobConfig({}, ())) == ()


def test_every_change_is_worked_out_for_itself() -> None:
    both = (Change("model.low_vram", set=True), Change("model.quantize", set=True))
    found = work_out(both, JobConfig({"model.low_vram": Value(True, "log")}, ("log",)))
    assert [edit.path for edit in found] == ["model.quantize"]


@pytest.mark.parametrize(
    ("batch", "before", "after"),
    [
        (8, 2, 4),
        (5, 1, 2),
        (4, 1, 2),
        (3, 1, 3),
        (2, 1, 2),
        (2, None, 2),
        (4, 0, 2),
        (1, 1, UNSET),
        ("4", 1, UNSET),
        (None, 1, UNSET),
        (True, 1, UNSET),
        # what is no number is not calculated with
        (4, True, UNSET),
        (4, [2], UNSET),
        (4, LogText("auto"), UNSET),
        (4, LogText("1e+20"), UNSET),
        (4, 1.5, UNSET),
    ],
)
def test_accumulation_takes_over_what_halving_the_batch_loses(batch: Any, before: Any, after: Any) -> None:
    change = Change("train.gradient_accumulation", op="multiply_by_batch_cut")
    values = {change.path: before, "train.batch_size": batch}
    given = {path: value for path, value in values.items() if value is not None}
    assert edits(change, given) == ({} if after is UNSET else {change.path: (before, after)})


@pytest.mark.parametrize(
    ("op", "name", "before", "after"),
    [
        # the largest sets the peak: others come down only to where it ends
        ("halve", "batch_size", (8, 6), (4, 4)),
        ("halve", "batch_size", (8, 4), (4, UNSET)),
        ("halve", "batch_size", (8, 3), (4, UNSET)),
        ("halve", "batch_size", (1, 1), (UNSET, UNSET)),
        ("halve", "batch_size", (8, True), (4, UNSET)),
        ("halve", "batch_size", (8, None), (4, UNSET)),
        ("scale_frames", "num_frames", (81, 49), (41, 41)),
        ("scale_frames", "num_frames", (81, 41), (41, UNSET)),
        ("scale_frames", "num_frames", (1, 1), (UNSET, UNSET)),
        # what is no number is set for each
        ("set", "cache_latents_to_disk", (False, True), (True, UNSET)),
    ],
)
def test_several_datasets(op: Any, name: str, before: tuple[Any, Any], after: tuple[Any, Any]) -> None:
    change = Change(f"datasets[].{name}", op=op, set=True if op == "set" else None)
    expected = {f"{place}{name}": (old, new) for place, old, new in zip((A, B), before, after) if new is not UNSET}
    assert edits(change, {A + name: before[0], B + name: before[1]}) == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([[512, 768, 1024]], {A: [512, 768]}),
        ([[768], [1280]], {B: [768]}),
        ([[512, 768, 1280], [1280]], {A: [512, 768], B: [768]}),
        ([[512, 768], [1024]], {B: [768]}),
        ([[1024, 512], [256]], {A: [512]}),
        ([1024, 1536], {B: 1024}),
        ([[1024], [1024]], {}),
        ([[1024]], {}),
        ([1024], {}),
    ],
)
def test_the_largest_resolution_goes(before: list[Any], after: dict[str, Any]) -> None:
    """A dataset that has no other takes the next smaller in use; one that lacks the largest sets no peak."""
    values = {f"{place}resolution": value for place, value in zip((A, B), before)}
    found = edits(Change("datasets[].resolution", op="drop_largest"), values)
    assert found == {f"{place}resolution": (values[f"{place}resolution"], new) for place, new in after.items()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([1024], [768]),
        (1024, 768),
        ([1400], [1280]),
        ([768], [512]),
        ([256], None),
        # where there are several the largest can be left out
        ([512, 1024], None),
    ],
)
def test_the_only_resolution_becomes_the_next_smaller_one(before: Any, after: Any) -> None:
    found = edits(Change("datasets[].resolution", op="next_resolution"), {A + "resolution": before})
    assert found == ({} if after is None else {A + "resolution": (before, after)})


def test_a_batch_of_its_own_is_lowered_only_where_it_is_given() -> None:
    change = Change("datasets[].batch_size", op="halve", given_only=True)
    assert edits(change, {A + "batch_size": 8, B + "batch_size": 8}, defaults=(A + "batch_size",)) == {
        B + "batch_size": (8, 4)
    }
    assert edits(Change("train.batch_size", op="halve", given_only=True), {}) == {}
    # other settings of a dataset, and those of previews, are not meant
    assert edits(change, {A + "batch_size_2": 8, "sample.samples[0].batch_size": 8, "xdatasets[0].batch_size": 8}) == {}


@pytest.mark.parametrize(
    ("sizes", "resolutions", "after"),
    [
        # down to the largest training resolution where that is less than half the pixels
        ({"sample.width": 2048, "sample.height": 2048}, [1024], {"sample.width": 1024, "sample.height": 1024}),
        ({"sample.width": 1024, "sample.height": 1024}, [1024], {"sample.width": 704, "sample.height": 704}),
        ({"sample.width": 1024, "sample.height": 2048}, [512, 1024], {"sample.width": 512, "sample.height": 1024}),
        (
            {"sample.width": 1024, "sample.height": 1024},
            [512, True, "768"],
            {"sample.width": 512, "sample.height": 512},
        ),
        (
            {"sample.width": 2048, "sample.samples[1].width": 1536},
            1024,
            {"sample.width": 1024, "sample.samples[1].width": 768},
        ),
        # one that is no larger than what the largest comes down to sets no peak
        ({"sample.width": 512, "sample.samples[1].width": 2048}, 1024, {"sample.samples[1].width": 1024}),
        (
            {"sample.width": 512, "sample.height": 512, "sample.samples[1].width": 2048},
            1024,
            {"sample.samples[1].width": 1024},
        ),
        # a preview that is not a number is no side
        ({"sample.width": 1024, "sample.height": True}, [512], {"sample.width": 512}),
    ],
)
def test_previews_come_down_together(sizes: dict[str, Any], resolutions: Any, after: dict[str, int]) -> None:
    found: dict[str, Any] = {}
    for path in ("sample.width", "sample.height", "sample.samples[].width"):
        found |= edits(Change(path, op="scale_side"), {**sizes, A + "resolution": resolutions})
    assert found == {path: (sizes[path], new) for path, new in after.items()}


@pytest.mark.parametrize(
    ("trained", "preview", "after"),
    [(41, 81, 41), (43, 81, 41), (45, 81, 45), (1, 81, 1), (81, 81, 41), (121, 81, 41), (0, 81, 41), (True, 81, 41)],
)
def test_a_preview_longer_than_what_is_trained_comes_down_to_that(trained: Any, preview: int, after: int) -> None:
    """Wan's clips have 4n+1 frames; `sample` alone follows, a dataset's own clips are halved."""
    values = {A + "num_frames": trained, "sample.num_frames": preview}
    found = edits(Change("sample.num_frames", op="scale_frames"), values)
    assert found == {"sample.num_frames": (preview, after)}
    other = {A + "num_frames": 81, B + "num_frames": 17}
    assert edits(Change("datasets[].num_frames", op="scale_frames"), other) == {A + "num_frames": (81, 41)}
