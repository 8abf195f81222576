"""The guide's risk table on jobs that are just inside and just outside of each entry."""

from __future__ import annotations

from typing import Any

import pytest

from tests.check.conftest import BASE, job, stable

OFF: dict[str, Any] = {"train__gradient_checkpointing": False}
FLUX = {"model__arch": "flux"}
EDIT = {"model__arch": "qwen_image_edit_plus"}
TWO = {"datasets__control_path_1": "/a", "datasets__control_path_2": "/b"}
WAN = {"model__arch": "wan21", "model__name_or_path": "Wan-AI/Wan2.1-T2V-14B-Diffusers"}
CLIP = {"datasets__num_frames": 17, "sample__num_frames": 41}


def found(**changes: Any) -> set[str]:
    return {item.id for item in job(**changes).risks}


@pytest.mark.parametrize(
    ("risk", "inside", "outside"),
    [
        ("z_image_large_batch", {**OFF, "train__batch_size": 4}, {"train__batch_size": 4}),
        (
            "z_image_large_batch",
            {**OFF, "train__batch_size": 4},
            {**OFF, "train__batch_size": 4, "datasets__resolution": [768]},
        ),
        ("z_image_large_batch", {**OFF, "train__batch_size": 8}, {**OFF, "train__batch_size": 2}),
        ("qwen_edit_batch", {**OFF, **EDIT, "train__batch_size": 2}, {**OFF, **EDIT}),
        ("qwen_edit_controls", {**OFF, **EDIT, **TWO}, {**OFF, **EDIT, "datasets__control_path_1": "/a"}),
        (
            "qwen_edit_controls",
            {**OFF, **EDIT, "datasets__control_path": ["/a", "/b"]},
            {**OFF, **EDIT, "datasets__control_path": ["/a"]},
        ),
        ("flux_large_batch", {**OFF, **FLUX, "train__batch_size": 4}, {**FLUX, "train__batch_size": 4}),
        ("flux_buckets", {**OFF, **FLUX}, {**OFF, **FLUX, "datasets__resolution": [1024]}),
        ("heavy_family", OFF, {}),
        ("heavy_family", OFF, {**OFF, "train__batch_size": 4}),
        ("first_run_off", {**OFF, "model__arch": "sdxl"}, {"model__arch": "sdxl"}),
        ("full_precision", {"train__dtype": "fp32"}, {}),
        ("full_precision", {"train__dtype": None}, {"train__dtype": "bf16"}),
        ("unquantized", {**FLUX, "model__quantize": False}, FLUX),
        ("unquantized", {**FLUX, "model__quantize": False}, {"model__quantize": False}),
        ("text_encoder_resident", {}, {"train__cache_text_embeddings": True}),
        ("latents_not_cached", {"datasets__cache_latents_to_disk": False}, {}),
        ("preview_heavier", {"sample__width": 4096, "sample__height": 4096}, {}),
        ("preview_larger", {"model__arch": "sd3", "datasets__resolution": [512]}, {"model__arch": "sd3"}),
        ("preview_longer", {**WAN, **CLIP}, {**WAN, **CLIP, "sample__num_frames": 17}),
        ("preview_longer", {**WAN, **CLIP}, {**WAN, **CLIP, "train__disable_sampling": True}),
        ("preview_longer", {**WAN, **CLIP}, {**WAN, **CLIP, "datasets__auto_frame_count": True}),
        ("preview_often", {"sample__sample_every": 5}, {"sample__sample_every": 250}),
        ("batch_and_buckets", {"train__batch_size": 2}, {"train__batch_size": 2, "datasets__resolution": [512]}),
    ],
)
def test_inside_and_outside(risk: str, inside: dict[str, Any], outside: dict[str, Any]) -> None:
    assert risk in found(**inside)
    assert risk not in found(**outside)


def test_every_risk_is_tested() -> None:
    cases: Any = test_inside_and_outside.pytestmark[0].args[1]
    assert {case[0] for case in cases} == {risk.id for risk in BASE.risks}


def test_a_stable_run_is_no_first_run() -> None:
    changes: dict[str, Any] = {**OFF, "model__arch": "sdxl"}
    assert "first_run_off" not in {item.id for item in job(log=stable(model__arch="sdxl"), **changes).risks}


def test_what_the_log_proves_stable_is_not_called_too_sensitive() -> None:
    assert "heavy_family" in {item.id for item in job(log=stable(), **OFF).risks}
    assert "heavy_family" not in {item.id for item in job(log=stable(**OFF), **OFF).risks}


def test_severe_ones_come_first_and_what_a_more_telling_one_covers_is_left_out() -> None:
    risks = job(**OFF, train__batch_size=4).risks
    assert [item.severity for item in risks] == sorted((item.severity for item in risks), key=["high", "medium"].index)
    assert not {"heavy_family", "first_run_off"} & {item.id for item in risks}


@pytest.mark.parametrize(
    ("arch", "first"), [("zimage", "z_image"), ("qwen_image_edit", "qwen_edit"), ("flex2", "flux_flex"), ("sdxl", None)]
)
def test_the_first_try_of_the_family(arch: str, first: str | None) -> None:
    advice = job(model__arch=arch).first_try
    assert (advice.id if advice else None) == first
