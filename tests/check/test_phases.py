"""Which phases are weighed, the verdict on the whole job, and what would make it fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.jobconfig import ConfigText, effective
from postmortem.vram import Card, Forecast, forecast
from tests.check.conftest import BASE, checked, job
from tests.simulate import config, head, training

WORST = ("does not fit", "borderline", "unknown", "fits")


def names(**changes: Any) -> set[str]:
    return {phase.phase for phase in job(**changes).phases}


def test_the_phases_are_those_that_the_job_goes_through() -> None:
    assert names() == {"training_step", "baseline_sampling", "cache_latents", "text_encoder_load"}
    assert "mid_sampling" in names(train__skip_first_sample=True)
    assert "baseline_sampling" not in names(train__skip_first_sample=True)
    assert not names(train__disable_sampling=True) & {"baseline_sampling", "mid_sampling"}
    assert not names(sample__samples=[]) & {"baseline_sampling", "mid_sampling"}
    assert "cache_latents" not in names(datasets__cache_latents_to_disk=False)


def test_a_model_that_is_not_quantised_is_not_weighed_while_quantising() -> None:
    flux: dict[str, Any] = {"model__arch": "flux", "model__low_vram": False}
    assert "quantize" in names(**flux)
    assert "quantize" not in names(**flux, model__quantize=False)


def test_the_worst_phase_leads() -> None:
    found = job(gpu_gib=24, train__gradient_checkpointing=False)
    assert found.fits == "does not fit"
    assert found.phases[0].phase == "training_step"
    order = [WORST.index(phase.forecast.fits) for phase in found.phases if phase.forecast]
    assert order == sorted(order)
    heavy = job(gpu_gib=24, sample__width=4096, sample__height=4096)
    assert heavy.phases[0].phase == "baseline_sampling"


def test_the_first_fix_of_a_step_without_checkpointing_is_to_turn_it_on_and_the_ladder_ends_in_a_fit() -> None:
    worst = job(gpu_gib=24, train__gradient_checkpointing=False).phases[0]
    first = worst.fixes[0]
    assert first.id == "enable_gradient_checkpointing"
    assert first.fits == "fits"
    assert first.saving is not None and first.saving.likely > 30 * 1024
    assert worst.ladder[-1].fits == "fits"
    assert worst.card_needed_gib is None


def test_no_fix_where_it_fits_or_where_the_card_is_not_known() -> None:
    for found in (job(gpu_gib=48), job(train__gradient_checkpointing=False)):
        assert [phase.fixes for phase in found.phases] == [[] for _ in found.phases]


def test_no_claim_that_all_fixes_are_not_enough_where_one_has_no_figure() -> None:
    found = job(gpu_gib=16, model__arch="flux", model__low_vram=False)
    quantise = next(phase for phase in found.phases if phase.phase == "quantize")
    assert "enable_low_vram" in [item.id for item in quantise.fixes]
    assert quantise.card_needed_gib is None


def test_the_smallest_card_class_surely_holds_every_phase_and_the_next_smaller_does_not() -> None:
    found = job()
    assert found.card_gib is not None
    assert {phase.forecast.fits for phase in job(gpu_gib=found.card_gib).phases if phase.forecast} == {"fits"}
    assert job(gpu_gib=found.card_gib * 0.75).fits != "fits"


def test_what_cannot_be_forecast_is_never_said_to_fit() -> None:
    found = job(gpu_gib=96, model__arch="sd3")
    assert (found.fits, found.card_gib) == ("unknown", None)
    assert {phase.forecast_missing.id for phase in found.phases if phase.forecast_missing} == {"not_measured"}
    assert "No memory forecast" in found.headline.reveal()


def test_the_forecast_is_the_one_of_the_report() -> None:
    found = next(phase for phase in job(gpu_gib=24).phases if phase.phase == "training_step").forecast
    assert found is not None

    settings_ = effective(None, [ConfigText("c", json.dumps({"config": {"name": "x", "process": [config()]}}))], BASE)
    same = forecast(settings_, "zimage", (), "training_step", Card(24 * 1024.0), BASE)
    assert isinstance(same, Forecast)
    assert (found.need.likely, found.fits) == (round(same.need.likely, 1), same.fits)


def test_every_process_of_a_job() -> None:
    found = checked(config(), config(model__arch="flux"), {"type": "extract"})
    assert [item.family for item in found.jobs] == ["Z-Image", "FLUX.1", None]
    assert [item.process for item in found.jobs] == [1, 2, 3]
    assert len(checked(*[config()] * 40).jobs) == 12


ARCHES = [model.arch[0] for model in BASE.memory_models]


@given(
    arch=st.sampled_from(ARCHES),
    checkpointing=st.booleans(),
    batch=st.integers(1, 8),
    side=st.sampled_from([256, 512, 1024, 1536]),
    frames=st.sampled_from([1, 17, 81]),
    cards=st.tuples(st.floats(4, 200), st.floats(4, 200)),
)
@settings(max_examples=25, deadline=None)
def test_a_smaller_card_never_turns_does_not_fit_into_fits(
    arch: str, checkpointing: bool, batch: int, side: int, frames: int, cards: tuple[float, float]
) -> None:
    changes: dict[str, Any] = {
        "model__arch": arch,
        "train__gradient_checkpointing": checkpointing,
        "train__batch_size": batch,
        "datasets__resolution": [side],
        "datasets__num_frames": frames,
    }
    small, large = (job(gpu_gib=size, **changes) for size in sorted(cards))
    if "unknown" not in (small.fits, large.fits):
        assert WORST.index(small.fits) <= WORST.index(large.fits)
    by_name = {phase.phase: phase for phase in large.phases}
    for phase in small.phases:
        other = by_name[phase.phase].forecast
        if phase.forecast is not None and other is not None:
            assert WORST.index(phase.forecast.fits) <= WORST.index(other.fits)


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 0, 1e308, True, [[]], "9" * 60])
@pytest.mark.parametrize(
    "path",
    [
        "train__batch_size",
        "datasets__resolution",
        "sample__width",
        "sample__samples",
        "sample__sample_every",
        "model__qtype",
    ],
)
def test_any_value_at_any_place_gives_a_check(path: str, value: Any) -> None:
    found = job(gpu_gib=24, **{path: value})
    assert found.fits in WORST
    assert len(found.trial.conditions) == 6


@pytest.mark.parametrize(
    "process", [{}, {"train": None}, {"datasets": "x", "train": [], "model": 3}, {"sample": {"samples": [1, None]}}]
)
def test_a_process_of_nothing_gives_a_check_without_a_forecast(process: dict[str, Any]) -> None:
    found = checked(process, gpu_gib=24).jobs[0]
    assert found.fits == "unknown"
    assert [phase.forecast for phase in found.phases] == [None] * len(found.phases)


def test_the_card_is_the_users_else_that_of_the_log_else_unknown() -> None:
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.99 GiB of which 1.00 GiB is free.\n"
    died = head(config()) + training(400, [], until=5) + f"\nTraceback (most recent call last):\n{message}"
    by_log = checked(config(), log=died)
    assert by_log.card.capacity == pytest.approx(23.99 * 1024, abs=0.1)
    assert by_log.card.source == "log"
    by_user = checked(config(), log=died, gpu_gib=12)
    assert (by_user.card.capacity, by_user.card.source) == (12 * 1024.0, "option")
    assert (checked(config()).card.capacity, checked(config()).card.source) == (None, None)
