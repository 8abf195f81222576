"""What the fixes save: never less than nothing, sized as far as they have to go, one variable a rung."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.knowledge.load import load
from postmortem.model import ConfigChange, JobConfig, Suggestion
from postmortem.remedies.edited import edited, merged
from postmortem.remedies.numbers import with_numbers
from postmortem.text import LogText
from postmortem.vram import Card, Forecast, forecast
from tests.vram.conftest import job

BASE = load(cache=False)
GIB = 1024.0


def estimate_on(card_gib: float, arch: str = "zimage") -> Any:
    def estimate(config: JobConfig) -> Forecast | None:
        found = forecast(config, arch, (), "training_step", Card(capacity=card_gib * GIB), BASE)
        return found if isinstance(found, Forecast) else None

    return estimate


def suggestion(ident: str, *changes: ConfigChange) -> Suggestion:
    return Suggestion(1, ident, changes, "", None, None, "")


CHECKPOINTING = suggestion("enable_gradient_checkpointing", ConfigChange("train.gradient_checkpointing", False, True))
BATCH = suggestion("reduce_batch_size", ConfigChange("train.batch_size", 8, 4))
RANK = suggestion("reduce_network_rank", ConfigChange("network.linear", 32, 16))
EMBEDDINGS = suggestion("cache_text_embeddings", ConfigChange("train.cache_text_embeddings", False, True))


def wanted(*idents: str) -> dict[str, Any]:
    return {remedy.id: remedy.changes for remedy in BASE.remedies if remedy.id in idents}


def test_checkpointing_dwarfs_the_rest_and_fits() -> None:
    config = job(BASE, "zimage", train__gradient_checkpointing=False, network__linear=32, train__batch_size=2)
    numbers = with_numbers([CHECKPOINTING, RANK], config, estimate_on(24), BASE, wanted("reduce_network_rank"))
    first = numbers.suggestions[0]
    assert first.saving is not None and first.saving.likely / GIB > 80
    assert first.fits == "fits"
    assert [rung.id for rung in numbers.ladder] == ["enable_gradient_checkpointing"]
    # the rank saves a fifth of a GiB of the ninety that are missing
    assert [item.id for item in numbers.too_small] == ["reduce_network_rank"]
    assert numbers.too_small[0].saving is not None and numbers.too_small[0].saving.likely < GIB


def test_the_batch_goes_as_far_down_as_it_has_to() -> None:
    config = job(BASE, "zimage", train__batch_size=8)
    halved = estimate_on(14)(job(BASE, "zimage", train__batch_size=4))
    assert halved is not None and halved.fits == "does not fit"
    found = with_numbers([BATCH], config, estimate_on(14), BASE, wanted("reduce_batch_size")).suggestions[0]
    assert found.changes[0].before == 8 and found.changes[0].after < 4
    assert found.fits == "borderline"


def test_accumulation_makes_up_for_the_whole_cut() -> None:
    config = job(BASE, "zimage", train__batch_size=8)
    more = suggestion("use_gradient_accumulation", ConfigChange("train.gradient_accumulation", 1, 2))
    numbers = with_numbers(
        [BATCH, more], config, estimate_on(16), BASE, wanted("reduce_batch_size", "use_gradient_accumulation")
    )
    batch, accumulation = (item.changes[0] for item in numbers.suggestions)
    assert batch.after * accumulation.after == batch.before * (accumulation.before or 1)


@pytest.mark.parametrize("before", [LogText("auto"), LogText("1e+20"), [2], True, 1.5])
def test_no_number_is_left_alone_where_the_batch_is_cut(before: Any) -> None:
    config = job(BASE, "zimage", train__batch_size=8)
    edit = ConfigChange("train.gradient_accumulation", before, 2)
    more = suggestion("use_gradient_accumulation", edit)
    ids = ("reduce_batch_size", "use_gradient_accumulation")
    found = with_numbers([BATCH, more], config, estimate_on(16), BASE, wanted(*ids)).suggestions
    assert [item.changes for item in found if item.id == more.id] == [(edit,)]


def test_without_a_forecast_the_guide_s_steps_stand() -> None:
    config = job(BASE, "zimage", network__type="lokr", train__batch_size=8)
    numbers = with_numbers([BATCH], config, estimate_on(24), BASE, wanted("reduce_batch_size"))
    assert numbers.suggestions[0].changes == BATCH.changes
    assert numbers.suggestions[0].saving is None and numbers.ladder == ()


def test_each_rung_saves_on_top_of_the_last() -> None:
    config = job(BASE, "zimage", train__batch_size=8)
    numbers = with_numbers(
        [BATCH, EMBEDDINGS], config, estimate_on(15), BASE, wanted("reduce_batch_size", "cache_text_embeddings")
    )
    peaks = [rung.peak.likely for rung in numbers.ladder]
    assert peaks == sorted(peaks, reverse=True) and len(peaks) == len(set(peaks)) > 1


@pytest.mark.parametrize("arch", ["flux", "zimage", "qwen_image", "sdxl", "wan22_14b", "chroma"])
@pytest.mark.parametrize("checkpointing", [True, False])
def test_no_fix_raises_the_peak(arch: str, checkpointing: bool) -> None:
    config = job(BASE, arch, train__gradient_checkpointing=checkpointing, train__batch_size=4, network__linear=64)
    offered = [
        suggestion(ident, *changes)
        for ident, changes in {
            "enable_gradient_checkpointing": [ConfigChange("train.gradient_checkpointing", checkpointing, True)],
            "reduce_batch_size": [ConfigChange("train.batch_size", 4, 2)],
            "lower_bit_quantization": [ConfigChange("model.qtype", "qfloat8", "uint4")],
            "enable_layer_offloading": [ConfigChange("model.layer_offloading", False, True)],
            "cache_text_embeddings": [ConfigChange("train.cache_text_embeddings", False, True)],
            "reduce_network_rank": [ConfigChange("network.linear", 64, 32)],
        }.items()
    ]
    numbers = with_numbers(offered, config, estimate_on(24, arch), BASE, {})
    for item in numbers.suggestions:
        assert item.saving is None or item.saving.likely > 0, item.id


def test_an_edit_carries_what_follows_it() -> None:
    config = job(BASE, "flux", model__quantize=False)
    assert edited(config, [ConfigChange("model.quantize", False, True)], BASE).get("model.quantize_te") is True
    lowered = edited(job(BASE, "flux", train__batch_size=4), [ConfigChange("train.batch_size", 4, 2)], BASE)
    assert lowered.get("datasets[0].batch_size") in (2, None)


def test_two_edits_of_one_path_are_one() -> None:
    assert merged([ConfigChange("a", 8, 4)], [ConfigChange("a", 4, 2)]) == (ConfigChange("a", 8, 2),)


def test_only_the_datasets_that_set_the_peak_are_lowered() -> None:
    import msgspec

    from postmortem.model import Value
    from postmortem.remedies.changes import work_out

    config = job(BASE, "wan22_5b", datasets__num_frames=17)
    values = {**config.values, "datasets[1].num_frames": Value(81, "config.yaml")}
    two = msgspec.structs.replace(config, values=values)
    frames = next(remedy for remedy in BASE.remedies if remedy.id == "reduce_num_frames")
    edits = work_out(frames.changes[:1], two)
    assert [(edit.path, edit.before, edit.after) for edit in edits] == [("datasets[1].num_frames", 81, 41)]


@pytest.mark.parametrize("arch", ["zimage", "flux2_klein_4b"])
def test_a_fix_that_may_raise_the_peak_is_not_offered(arch: str) -> None:
    # bf16 without checkpointing: quantised layers would keep their dequantised weights for the backward pass
    config = job(BASE, arch, model__quantize=False, train__gradient_checkpointing=False)
    quantize = suggestion("quantize_model", ConfigChange("model.quantize", False, True))
    numbers = with_numbers([quantize], config, estimate_on(48, arch), BASE, {})
    for item in numbers.suggestions:
        assert item.saving is not None and item.saving.low >= 0


def test_what_a_fix_leaves_is_counted_as_the_forecast_counts_it() -> None:
    config = job(BASE, "zimage", train__batch_size=8)
    numbers = with_numbers([BATCH], config, estimate_on(24), BASE, wanted("reduce_batch_size"))
    first, rung = numbers.suggestions[0], numbers.ladder[0]
    after = estimate_on(24)(edited(config, first.changes, BASE))
    assert after is not None and first.need == after.need and rung.need.likely >= rung.peak.likely
    assert first.peak is not None and first.need is not None and first.need.low > first.peak.low


def test_the_first_fix_is_the_first_retry_and_a_later_trifle_is_none() -> None:
    config = job(BASE, "zimage", train__batch_size=8, network__linear=32)
    lower = suggestion("reduce_network_rank", ConfigChange("network.linear", 32, 31))
    ids = wanted("reduce_batch_size", "reduce_network_rank")

    def rungs(*given: Suggestion) -> list[str]:
        return [rung.id for rung in with_numbers(given, config, _without_card, BASE, ids).ladder]

    assert rungs(lower, BATCH)[0] == "reduce_network_rank"
    assert "reduce_network_rank" not in rungs(BATCH, lower)


def _without_card(config: JobConfig) -> Forecast | None:
    """Without one nothing counts as too small."""
    found = forecast(config, "zimage", (), "training_step", Card(), BASE)
    return found if isinstance(found, Forecast) else None
