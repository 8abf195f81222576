"""What conditions may ask about, from settings and sizes: totals over datasets and previews, shares of the card."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.diagnosis import facts
from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Bucket, JobConfig, Stage, Value
from postmortem.text import LogText
from tests.diagnosis.build import at, bucket

A, B = "datasets[0].", "datasets[1]."


def settings(values: dict[str, Any]) -> JobConfig:
    return JobConfig({path: Value(value, "log") for path, value in values.items()}, ("log",))


def job(values: dict[str, Any], buckets: tuple[Bucket, ...] = ()) -> dict[str, Any]:
    """`job.*` without the prefix."""
    found = facts.job_facts(settings(values), buckets, None)
    return {key.removeprefix("job."): value for key, value in found.items()}


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"gpu_total": 1000.0, "other_processes": 250.0}, {"other_share": 0.25}),
        ({"gpu_total": 1000.0, "other_processes": 0.0}, {"other_share": 0.0}),
        ({"gpu_total": 1000.0, "process_in_use": 500.0}, {"own_share": 0.5}),
        ({"gpu_total": 1000.0, "pytorch_allocated": 1000.0}, {"allocated_share": 1.0, "spilled": False}),
        ({"gpu_total": 1000.0, "pytorch_allocated": 1001.0}, {"allocated_share": 1.001, "spilled": True}),
        ({"gpu_total": 0.0, "pytorch_allocated": 5.0, "other_processes": 1.0, "process_in_use": 1.0}, {}),
        ({"pytorch_allocated": 5.0, "other_processes": 1.0, "process_in_use": 1.0, "free": 1.0}, {}),
        # the request would fit into what is reserved, which is more than a trifle
        ({"reserved_unallocated": 512.0, "tried_to_allocate": 512.0}, {"fragmented": True}),
        ({"reserved_unallocated": 511.0, "tried_to_allocate": 100.0}, {"fragmented": False}),
        ({"reserved_unallocated": 512.0, "tried_to_allocate": 513.0}, {"fragmented": False}),
        ({"reserved_unallocated": 512.0}, {}),
        (
            {"reserved_unallocated": 600.0, "tried_to_allocate": 9.0, "gpu_total": 100.0, "pytorch_allocated": 200.0},
            {"allocated_share": 2.0, "spilled": True, "fragmented": False},
        ),
        (
            {"reserved_unallocated": 600.0, "tried_to_allocate": 9.0, "gpu_total": 200.0, "pytorch_allocated": 200.0},
            {"allocated_share": 1.0, "spilled": False, "fragmented": True},
        ),
        # far more was free than was asked for
        ({"free": 2068.0, "tried_to_allocate": 20.0}, {"had_room": True}),
        ({"free": 2067.0, "tried_to_allocate": 20.0}, {}),
        ({"free": 9000.0}, {}),
        # what nobody accounts for: the card without what is free, held here or by others
        (
            {"gpu_total": 1000.0, "free": 100.0, "pytorch_allocated": 500.0, "reserved_unallocated": 50.0},
            {"allocated_share": 0.5, "spilled": False, "unaccounted": 350.0, "unaccounted_share": 0.35},
        ),
        (
            {
                "gpu_total": 1000.0,
                "free": 100.0,
                "pytorch_allocated": 500.0,
                "reserved_unallocated": 50.0,
                "process_in_use": 600.0,
                "other_processes": 200.0,
            },
            {
                "allocated_share": 0.5,
                "spilled": False,
                "own_share": 0.6,
                "other_share": 0.2,
                "unaccounted": 100.0,
                "unaccounted_share": 0.1,
            },
        ),
        (
            {"gpu_total": 1000.0, "free": 100.0, "pytorch_allocated": 1000.0, "reserved_unallocated": 50.0},
            {"allocated_share": 1.0, "spilled": False, "unaccounted": 0.0, "unaccounted_share": 0.0},
        ),
        (
            {"gpu_total": 1000.0, "free": 100.0, "pytorch_allocated": 1001.0, "reserved_unallocated": 50.0},
            {"allocated_share": 1.001, "spilled": True},
        ),
    ],
)
def test_shares_of_the_card(sizes: dict[str, float | None], expected: dict[str, Any]) -> None:
    found = {key.removeprefix("memory."): value for key, value in facts.memory_facts(sizes).items()}
    assert found == pytest.approx({"had_room": False, **sizes, **expected})


@pytest.mark.parametrize(
    ("sizes", "known", "expected"),
    [
        ({}, {"job.preview_pixels": 100}, {}),
        ({"tried_to_allocate": 6.0}, {}, {"share": None}),
        ({"tried_to_allocate": 6.0, "gpu_total": 24.0}, {}, {"share": 0.25}),
        ({"tried_to_allocate": 1.0}, {"job.preview_pixels": 1024}, {"share": None, "b_per_preview_px": 1024.0}),
        ({"tried_to_allocate": 1.0}, {"job.max_resolution": 512}, {"share": None, "b_per_bucket_px": 4.0}),
    ],
)
def test_bytes_a_pixel_of_the_request(sizes: Any, known: dict[str, Any], expected: dict[str, Any]) -> None:
    found = facts.request_facts(sizes, known)
    assert {key.removeprefix("memory.request_"): value for key, value in found.items()} == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # the largest batch of all datasets, and the job's own
        ({"train.batch_size": 2, A + "batch_size": 1, A + "resolution": 512, B + "batch_size": 4}, {"batch_size": 4}),
        ({"train.batch_size": 8, A + "batch_size": 4}, {"batch_size": 8}),
        ({"train.batch_size": "8"}, {"batch_size": None}),
        # resolutions of all datasets; one in several aspects says nothing of the shapes, unless buckets are off
        (
            {A + "resolution": [768, 512], B + "resolution": 1024},
            {"max_resolution": 1024, "min_resolution": 512, "resolutions": 3, "shapes": 3},
        ),
        ({A + "resolution": [1024], A + "buckets": True, B + "resolution": 1024}, {"resolutions": 1, "shapes": None}),
        ({A + "resolution": [512, 1024]}, {"resolutions": 2, "shapes": 2}),
        ({}, {"resolutions": None, "shapes": None}),
        ({A + "resolution": [1024], A + "buckets": False}, {"shapes": 1}),
        (
            {A + "resolution": [1024], A + "buckets": False, B + "resolution": 1024, B + "buckets": True},
            {"shapes": None},
        ),
        ({A + "resolution": [1, 2]}, {"max_resolution": 2, "min_resolution": 1}),
        ({A + "resolution": [True, 0, "x"]}, {"max_resolution": None, "min_resolution": None, "resolutions": None}),
        # frames
        ({A + "num_frames": 1, B + "num_frames": 41}, {"num_frames": 41, "video": True}),
        ({A + "num_frames": 1}, {"num_frames": 1, "video": False}),
        ({A + "num_frames": 2}, {"num_frames": 2, "video": True}),
        ({}, {"num_frames": None, "video": False}),
        # control images: folders of all datasets, and the most of one
        (
            {
                A + "folder_path": "a",
                A + "control_path": "x",
                B + "folder_path": "b",
                B + "control_path_1": "y",
                B + "control_path_2": ["z", "w"],
                B + "control_path_3": None,
            },
            {"controls": 3, "controls_each": 3},
        ),
        ({}, {"controls": 0, "controls_each": 0}),
        ({A + "control_path_10": "x", A + "xcontrol_path": "x"}, {"controls": 0, "controls_each": 0}),
        # what all must have, and what one is enough for
        (
            {A + "cache_latents_to_disk": True, B + "cache_latents_to_disk": False},
            {"latents_on_disk": False, "latents_cached": False},
        ),
        (
            {A + "cache_latents_to_disk": True, B + "cache_latents_to_disk": True},
            {"latents_on_disk": True, "latents_cached": True},
        ),
        ({A + "cache_latents": True}, {"latents_on_disk": False, "latents_cached": True}),
        ({A + "cache_latents": True, B + "cache_latents": False}, {"latents_cached": False}),
        ({}, {"latents_on_disk": False, "latents_cached": False, "auto_frames": False, "regularisation": False}),
        ({A + "auto_frame_count": False, B + "auto_frame_count": True}, {"auto_frames": True}),
        ({A + "auto_frame_count": False}, {"auto_frames": False}),
        ({A + "is_reg": False, B + "is_reg": True}, {"regularisation": True}),
        ({A + "is_reg": False}, {"regularisation": False}),
        ({A + "num_workers": 2, B + "num_workers": 8, A + "prefetch_factor": 3}, {"workers": 8, "prefetch": 3}),
        # what another dataset leaves out, and what it leaves empty
        ({A + "folder_path": "a", B + "num_workers": 3, "datasets[2].num_workers": 4}, {"workers": 4}),
        ({A + "num_workers": 3, B + "folder_path": "b", "datasets[2].num_workers": 4}, {"workers": 4}),
        ({A + "num_workers": 3, B + "num_workers": None, "datasets[2].num_workers": 4}, {"workers": 4}),
        ({A + "num_workers": "8"}, {"workers": None, "prefetch": None}),
        # preservation, text encoders
        ({"train.diff_output_preservation": True}, {"preservation": True}),
        ({"train.blank_prompt_preservation": True}, {"preservation": True}),
        ({}, {"preservation": False, "te_cached": False, "te_resident": True}),
        ({"train.cache_text_embeddings": True}, {"te_cached": True, "te_resident": False}),
        ({A + "cache_text_embeddings": True}, {"te_cached": True, "te_resident": False}),
        ({"train.unload_text_encoder": True}, {"te_cached": False, "te_resident": False}),
        # network, optimiser, types
        ({"network.linear": 32}, {"rank": 32, "full_fine_tune": False}),
        ({"network.linear": "32"}, {"rank": None}),
        ({"network.type": "lora"}, {"rank": None, "full_fine_tune": False}),
        ({}, {"rank": None, "full_fine_tune": True}),
        ({"train.optimizer": "adamw8bit"}, {"optimizer_8bit": True}),
        ({"train.optimizer": "Adafactor"}, {"optimizer_8bit": True}),
        ({"train.optimizer": "automagic"}, {"optimizer_8bit": True}),
        ({"train.optimizer": "adamw"}, {"optimizer_8bit": False}),
        ({"train.optimizer": 8}, {"optimizer_8bit": False}),
        ({"model.quantize": True, "model.qtype": "uint3|some/adapter8"}, {"quantized": True, "quant_bits": 3}),
        ({"model.quantize": False, "model.qtype": "qfloat8"}, {"quantized": False, "quant_bits": None}),
        ({"model.quantize": True, "model.qtype": "none|some/adapter8"}, {"quantized": True, "quant_bits": None}),
        ({"model.quantize": True}, {"quantized": True, "quant_bits": None}),
        ({"model.quantize_te": True, "model.layer_offloading": True}, {"te_quantized": True, "offload": True}),
        ({}, {"quantized": False, "te_quantized": False, "offload": False}),
        # previews: each sample's own size where it has one; the largest of all
        (
            {"sample.width": 512, "sample.height": 768},
            {"preview_side": 768, "preview_pixels": 512 * 768, "samples": False},
        ),
        (
            {
                "sample.width": 512,
                "sample.height": 768,
                "sample.num_frames": 9,
                "sample.samples": [1, 2],
                "sample.samples[0].width": 1024,
                "sample.samples[1].num_frames": 41,
                "sample.samples[1].height": 640,
            },
            {"preview_side": 1024, "preview_pixels": 1024 * 768, "sample_frames": 41, "samples": True},
        ),
        (
            {
                "sample.width": 512,
                "sample.height": 512,
                "sample.num_frames": 1200,
                "sample.samples": [1],
                "sample.samples[0].width": 640,
                "sample.samples[0].height": 768,
                "sample.samples[0].num_frames": 9,
            },
            {"preview_side": 768, "preview_pixels": 640 * 768, "sample_frames": 1200},
        ),
        ({"sample.width": 1, "sample.height": 5}, {"preview_pixels": 5}),
        ({"sample.width": 0, "sample.height": 5}, {"preview_pixels": None}),
        ({"sample.width": 5, "sample.height": 0}, {"preview_pixels": None}),
        ({"sample.prompts": ["a mug"], "train.disable_sampling": True}, {"samples": False}),
        (
            {"sample.prompts": ["a mug"]},
            {"samples": True, "preview_side": None, "preview_pixels": None, "sample_frames": None},
        ),
        ({"sample.width": 512, "sample.height": "768"}, {"preview_side": 512, "preview_pixels": None}),
        ({A + "resolution": [512, 1024]}, {"max_pixels": 1024 * 1024}),
        ({}, {"max_pixels": None}),
    ],
)
def test_what_settings_amount_to(values: dict[str, Any], expected: dict[str, Any]) -> None:
    found = job(values)
    assert {key: found[key] for key in expected} == expected
    assert {type(found[key]) for key in expected if isinstance(expected[key], bool)} <= {bool}


def test_shapes_that_were_printed_count() -> None:
    table = (bucket("512x512", 3), bucket("512x768x41", 3, block=2), bucket("512x512", 9, block=2))
    found = job({A + "resolution": [1024]}, table)
    assert (found["shapes"], found["num_frames"], found["video"]) == (2, 41, True)
    # a table for each resolution: the batch of each is known, else of none
    both = {A + "resolution": [512, 1024], A + "batch_size": 4}
    assert job(both, table)["block_batches"] == (4, 4)
    assert job(both, table[:1])["block_batches"] is None
    assert job({A + "resolution": [1024]})["block_batches"] is None


def test_a_network_that_only_the_defaults_name_is_none() -> None:
    """A job without a network trains the whole model, whatever a network's rank would be."""
    for source, whole in (("default", True), ("log", False)):
        given = JobConfig({"network.linear": Value(4, source), "train.lr": Value(1e-4, "log")}, ("log",))
        assert facts.job_facts(given, (), None)["job.full_fine_tune"] is whole


def test_without_a_config_only_the_tables_speak(knowledge: Knowledge) -> None:
    nothing = JobConfig({}, ())
    assert facts.job_facts(nothing, (), None) == {
        "job.full_fine_tune": False,
        "job.shapes": None,
        "job.video": None,
        "job.num_frames": None,
    }
    found = facts.job_facts(nothing, (bucket("512x512x41", 3), bucket("512x768", 2)), None)
    assert (found["job.shapes"], found["job.video"], found["job.num_frames"]) == (2, True, 41)
    assert facts.job_facts(nothing, (bucket("512x512", 3),), None)["job.video"] is None
    assert facts.job_facts(nothing, (bucket("512x512x2", 3),), None)["job.video"] is True
    wan = next(family for family in knowledge.families if family.media == "video")
    assert facts.job_facts(nothing, (), wan)["job.video"] is True
    assert facts.job_facts(settings({}), (), wan)["job.video"] is True
    assert facts.job_facts(settings({A + "num_frames": 1}), (), wan)["job.video"] is False


@pytest.mark.parametrize(
    ("values", "blocks", "expected"),
    [
        (
            {"train.batch_size": 2, A + "resolution": [512, 768], B + "resolution": 1024, B + "batch_size": 4},
            3,
            (2, 2, 4),
        ),
        ({"train.batch_size": 2, A + "resolution": [512, 768]}, 3, None),
        ({A + "resolution": [512], A + "batch_size": 0}, 1, (1,)),
        ({A + "resolution": 512, A + "batch_size": 1, "train.batch_size": 4}, 1, (1,)),
        ({A + "resolution": []}, 1, (1,)),
        # how many tables the second has nobody knows
        ({A + "resolution": [512], B + "folder_path": "b"}, 1, None),
        ({}, 0, None),
    ],
)
def test_a_table_for_each_resolution_of_each_dataset(
    values: Any, blocks: int, expected: tuple[int, ...] | None
) -> None:
    assert facts.block_batches(settings(values), blocks) == expected


FAMILIES = (
    Family("one", "One", ("one", "one_b"), "s", flags=("is_one",), marker="Loading One"),
    Family(
        "two", "Two", ("two",), "s", flags=("is_two", "is_too"), marker="Loading (?:Two|Too)", media="video", edit=True
    ),
    Family("three", "Three", ("three",), "s", risk="a_risk", offloads=True, quantizes=False, te_first=True),
)


@pytest.mark.parametrize(
    ("values", "printed", "family", "arch"),
    [
        ({"model.arch": "one_b"}, [], "one", "one_b"),
        # a name that nobody knows: the model is that one, whatever else is said
        ({"model.arch": "four", "model.is_one": True}, [("load_model", "Loading One")], None, "four"),
        ({"model.arch": ""}, [], None, None),
        ({"model.arch": ["one"], "model.is_too": True}, [], "two", "two"),
        ({"model.is_two": "yes"}, [], None, None),
        ({"model.is_one": False, "model.is_two": True}, [("load_model", "Loading One")], "two", "two"),
        ({}, [("load_model", "Loading One model")], "one", None),
        ({}, [("status", "x"), ("status", "- Loading Too")], "two", None),
        ({}, [("bar_main", "Loading One")], None, None),
        ({}, [], None, None),
    ],
)
def test_which_model_it_is(
    values: dict[str, Any], printed: list[tuple[str, str]], family: str | None, arch: str | None, knowledge: Knowledge
) -> None:
    stages = [Stage(at(n + 1), "model_load", event, LogText(text)) for n, (event, text) in enumerate(printed)]
    known = msgspec.structs.replace(knowledge, families=FAMILIES)
    found, name = facts.family_of(settings(values), stages, known)
    assert (found.id if found else None, name) == (family, arch)


def test_what_conditions_are_told_of_the_model() -> None:
    def told(family: Family | None, arch: str | None = None) -> dict[str, Any]:
        found = facts.family_facts(family, arch)
        return {key: found[f"run.{key}"] for key in ("family", "arch", *plain)}

    plain = {"risk": None, "media": "image", "edit": False, "offloads": False, "quantizes": True, "te_first": False}
    assert told(FAMILIES[0], "one_b") == {"family": "one", "arch": "one_b", **plain}
    assert told(FAMILIES[1]) == {"family": "two", "arch": None, **plain, "media": "video", "edit": True}
    special = {"risk": "a_risk", "offloads": True, "quantizes": False, "te_first": True}
    assert told(FAMILIES[2]) == {"family": "three", "arch": None, **plain, **special}
    # of a model that nobody knows only what most are like
    nothing = {"family": None, "risk": None, "media": None, "edit": None, "offloads": None}
    assert told(None, "four") == {**nothing, "arch": "four", "quantizes": True, "te_first": False}


def test_only_a_whole_setting_is_a_fact() -> None:
    given = settings({"train.lr": 1e-4, A + "resolution": 512, "sample.samples[0].width": 5})
    assert facts.setting_facts(given) == {"train.lr": 1e-4}
