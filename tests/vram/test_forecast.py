"""Predicted peaks against published ones, and what must hold of any prediction."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.knowledge.load import load
from postmortem.model import Bucket
from postmortem.text import LogText
from postmortem.vram import Card, Forecast, Refusal, anchored, forecast
from tests.vram.conftest import job

BASE = load(cache=False)
GIB = 1024.0
GB_MIB = 1e9 / 1024**2
MODELS = {model.arch[0]: model for model in BASE.memory_models if model.name is None}


def of(arch: str, phase: str = "training_step", card: Card = Card(), **changes: Any) -> Forecast:
    found = forecast(job(BASE, arch, **changes), arch, (), phase, card, BASE)
    assert isinstance(found, Forecast), found
    return found


def refused(arch: str, phase: str = "training_step", **changes: Any) -> str:
    found = forecast(job(BASE, arch, **changes), arch, (), phase, Card(), BASE)
    assert isinstance(found, Refusal), found
    return found.id


@pytest.mark.parametrize(
    ("arch", "changes", "reported_gb", "source"),
    [
        (
            "hidream",
            {"network__linear": 32, "model__quantize_te": True},
            35.2,
            "AI Toolkit config/examples/train_lora_hidream_48.yaml, the author's comment",
        ),
        (
            "flux",
            {
                "network__linear": 4,
                "model__quantize": False,
                "datasets__resolution": [627],
                "train__cache_text_embeddings": True,
            },
            26.0,
            "https://huggingface.co/blog/flux-qlora, bf16 LoRA at 512 x 768",
        ),
        (
            "flux",
            {"model__quantize": False, "datasets__resolution": [512], "train__cache_text_embeddings": True},
            24.7,
            "https://github.com/unslothai/unsloth/pull/6839, FLUX bf16 at 512",
        ),
    ],
)
def test_published_peaks(arch: str, changes: dict[str, Any], reported_gb: float, source: str) -> None:
    found = of(arch, **changes)
    reported = reported_gb * GB_MIB
    assert abs(found.peak.likely - reported) <= 0.15 * reported, source
    assert found.peak.low * 0.97 <= reported <= found.need.high, source


def test_the_worked_example() -> None:
    # FLUX.1, qfloat8, T5 on the card, checkpointing off, 1024: 16.5 GiB resident and 57.5 GiB of activations
    off = of("flux", train__gradient_checkpointing=False)
    on = of("flux")
    parts = {part.id: part.likely / GIB for part in off.parts}
    assert parts["weights"] == pytest.approx(11.09, abs=0.1)
    assert parts["text_encoder"] == pytest.approx(4.71, abs=0.1)
    assert parts["activations"] == pytest.approx(57.5, rel=0.02)
    assert (off.peak.likely - on.peak.likely) / GIB == pytest.approx(54.7, rel=0.02)


def test_the_author_s_24_gb_example_is_not_called_hopeless() -> None:
    found = of("flux", card=Card(capacity=23.6 * GIB), datasets__resolution=[512, 768, 1024])
    assert found.fits in ("fits", "borderline")
    assert of("flux", card=Card(capacity=23.6 * GIB), train__gradient_checkpointing=False).fits == "does not fit"


@pytest.mark.parametrize("arch", sorted(MODELS))
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_more_never_needs_less(arch: str, data: st.DataObject) -> None:
    draw = data.draw
    checkpointing = draw(st.booleans())
    side, more_side = sorted(draw(st.lists(st.integers(256, 1600), min_size=2, max_size=2)))
    batch, more_batch = sorted(draw(st.lists(st.integers(1, 8), min_size=2, max_size=2)))
    rank, more_rank = sorted(draw(st.lists(st.integers(1, 128), min_size=2, max_size=2)))
    frames, more_frames = sorted(draw(st.lists(st.integers(1, 121), min_size=2, max_size=2)))
    common: dict[str, Any] = {"train__gradient_checkpointing": checkpointing, "model__quantize": draw(st.booleans())}
    small = of(
        arch,
        **common,
        train__batch_size=batch,
        network__linear=rank,
        datasets__resolution=[side],
        datasets__num_frames=frames,
    )
    for larger in (
        {"train__batch_size": more_batch},
        {"network__linear": more_rank},
        {"datasets__resolution": [more_side]},
        {"datasets__num_frames": more_frames},
    ):
        values: dict[str, Any] = {
            "train__batch_size": batch,
            "network__linear": rank,
            "datasets__resolution": [side],
            "datasets__num_frames": frames,
            **larger,
        }
        large = of(arch, **common, **values)
        for end in ("low", "likely", "high"):
            assert getattr(large.peak, end) >= getattr(small.peak, end) - 1e-6, larger


@pytest.mark.parametrize("arch", sorted(MODELS))
def test_a_prediction_is_a_range_and_the_sum_of_its_parts(arch: str) -> None:
    for phase in ("training_step", "baseline_sampling", "cache_latents"):
        found = forecast(job(BASE, arch), arch, (), phase, Card(), BASE)
        if isinstance(found, Refusal):
            continue
        for part in found.parts:
            assert 0 <= part.low <= part.likely <= part.high, part
        for end in ("low", "likely", "high"):
            assert sum(getattr(part, end) for part in found.parts) == pytest.approx(getattr(found.peak, end))
        assert found.need.low > found.peak.low and found.need.high > found.peak.high


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"network__type": "lokr"}, "network"),
        ({"train__dtype": "fp32"}, "dtype"),
        ({"train__train_text_encoder": True}, "trains_text_encoder"),
        ({"train__attention_backend": "sage"}, "attention"),
        ({"model__compile": True}, "compile"),
        ({"model__qtype": "uint8"}, "qtype"),
        ({"datasets__control_path": "/c"}, "controls"),
        ({"datasets__auto_frame_count": True}, "frames"),
    ],
)
def test_no_number_rather_than_a_bad_one(changes: dict[str, Any], reason: str) -> None:
    assert refused("flux", **changes) == reason


def test_an_unknown_model_gets_no_number() -> None:
    assert refused("cogview4") == "not_measured"
    assert refused("wan21", model__name_or_path="/models/my-wan") == "which_size"
    assert of("wan21", model__name_or_path="Wan-AI/Wan2.1-T2V-1.3B-Diffusers").model == "Wan 2.1 1.3B"


def test_a_full_fine_tune_gets_no_number() -> None:
    config = job(BASE, "flux")
    values = {path: value for path, value in config.values.items() if not path.startswith("network.")}
    import msgspec

    found = forecast(msgspec.structs.replace(config, values=values), "flux", (), "training_step", Card(), BASE)
    assert isinstance(found, Refusal) and found.id == "full_fine_tune"


def test_low_vram_leaves_the_step_as_it_is_but_for_two_experts() -> None:
    assert of("flux", model__low_vram=True).peak == of("flux").peak
    both = of("wan22_14b").peak.likely - of("wan22_14b", model__low_vram=True).peak.likely
    assert both / GIB == pytest.approx(13.31, abs=0.1)


def test_quantising_sdxl_changes_nothing_because_its_loader_does_not_quantise() -> None:
    assert of("sdxl", model__quantize=True).peak == of("sdxl", model__quantize=False).peak


def test_without_checkpointing_packed_weights_come_back_in_full() -> None:
    # uint and float8 layers keep the dequantised weight for the backward pass
    packed = of("zimage", model__qtype="uint4", train__gradient_checkpointing=False)
    quanto = of("zimage", model__qtype="qfloat8", train__gradient_checkpointing=False)
    activations = [next(part.likely for part in one.parts if part.id == "activations") for one in (packed, quanto)]
    assert activations[0] > activations[1]


def test_the_log_s_buckets_bound_the_batch() -> None:
    buckets = (Bucket(LogText("/d"), 512, 768, 1, 4, 1, 1),)
    config = job(BASE, "flux")
    small = forecast(config, "flux", buckets, "training_step", Card(), BASE)
    assert isinstance(small, Forecast)
    assert small.peak.likely < of("flux").peak.likely


def test_a_failure_proves_that_the_need_exceeded_the_card() -> None:
    config = job(BASE, "sdxl")
    card = Card(capacity=24 * GIB)
    plain = forecast(config, "sdxl", (), "training_step", card, BASE)
    assert isinstance(plain, Forecast) and plain.fits == "fits"
    gap = anchored(plain, {"pytorch_allocated": None, "tried_to_allocate": None})
    after = forecast(config, "sdxl", (), "training_step", card, BASE, gap)
    assert isinstance(after, Forecast) and after.fits != "fits"
    assert after.need.likely == pytest.approx(24 * GIB)


def test_what_the_message_shows_moves_the_forecast() -> None:
    plain = of("flux")
    seen = {"pytorch_allocated": plain.peak.high + 900.0, "tried_to_allocate": 100.0}
    assert anchored(plain, seen) == pytest.approx(1000.0)
    assert anchored(plain, {"pytorch_allocated": 10.0, "tried_to_allocate": 5.0}) == 0.0


def test_a_cap_of_the_process_is_the_card_it_has() -> None:
    card = Card(capacity=24 * GIB, others=2 * GIB, allowed=12 * GIB)
    assert card.usable == 12 * GIB
    assert Card(capacity=24 * GIB, others=2 * GIB).usable == 22 * GIB
    assert of("flux", card=card).fits == "does not fit"
