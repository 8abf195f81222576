"""What the fixes save: never less than nothing, sized as far as they have to go, one variable a rung."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.knowledge.load import load
from postmortem.model import ConfigChange, JobConfig, Range, Suggestion, Value
from postmortem.remedies.edited import EDIT, edited, merged
from postmortem.remedies.numbers import saved, with_numbers
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
    assert lowered.values["train.batch_size"] == Value(2, EDIT)
    assert lowered.values["datasets[0].batch_size"] == Value(2, "default")
    # again, and however often
    again = edited(lowered, [ConfigChange("train.batch_size", 2, 1)], BASE)
    assert again.values["datasets[0].batch_size"] == Value(1, "default")
    # what the job itself says follows nothing
    own = job(BASE, "flux", train__batch_size=4, datasets__batch_size=4)
    kept = edited(own, [ConfigChange("train.batch_size", 4, 2)], BASE)
    assert (kept.get("train.batch_size"), kept.get("datasets[0].batch_size")) == (2, 4)
    # one edit does not undo another of the same plan
    both = edited(own, [ConfigChange("datasets[0].batch_size", 4, 3), ConfigChange("train.batch_size", 4, 2)], BASE)
    assert (both.get("train.batch_size"), both.get("datasets[0].batch_size")) == (2, 3)


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


def at(
    likely: float, *, usable: float | None, phase: str = "training_step", low: float = 10, high: float = 20
) -> Forecast:
    """A forecast out of the air: the need is half a GiB above the peak."""
    peak = Range(likely - low, likely, likely + high)
    need = Range(peak.low + 512, peak.likely + 512, peak.high + 512)
    if usable is None:
        fits = "unknown"
    else:
        fits = "fits" if need.high <= usable else "does not fit" if need.low > usable else "borderline"
    return Forecast(phase, "", (), peak, need, usable, fits)


PLAIN = JobConfig({"train.batch_size": Value(8, "log"), "network.linear": Value(32, "log")}, ("log",))


def by_batch(usable: float | None, per_batch: float = 1000.0, per_rank: float = 1.0, **given: Any) -> Any:
    """A peak that grows with batch size and rank alone."""

    def estimate(config: JobConfig) -> Forecast:
        batch, rank = config.get("train.batch_size"), config.get("network.linear")
        return at(per_batch * batch + per_rank * rank, usable=usable, **given)

    return estimate


HALVED = Suggestion(1, "reduce_batch_size", (ConfigChange("train.batch_size", 8, 4),), "", None, None, "")
LOWER = Suggestion(2, "reduce_network_rank", (ConfigChange("network.linear", 32, 16),), "", None, None, "")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # the errors of one model are the same: ends are taken from ends, and kept in order
        ((90.0, 100.0, 120.0), (80.0, 85.0, 100.0), (10.0, 15.0, 20.0)),
        ((100.0, 100.0, 100.0), (95.0, 90.0, 80.0), (5.0, 10.0, 20.0)),
        ((90.0, 100.0, 120.0), (50.0, 70.0, 80.0), (30.0, 30.0, 40.0)),
        ((90.0, 100.0, 120.0), (85.0, 60.0, 115.0), (5.0, 40.0, 40.0)),
    ],
)
def test_the_difference_of_two_forecasts(before: Any, after: Any, expected: Any) -> None:
    forecasts = [at(0, usable=None)] * 2
    first, second = (msgspec.structs.replace(one, peak=Range(*peak)) for one, peak in zip(forecasts, (before, after)))
    assert saved(first, second) == Range(*expected)


@pytest.mark.parametrize(
    ("per_rank", "usable", "spread", "kept"),
    [
        # 16 ranks: it would raise the peak, or its errors say that it may by more than a retry is worth
        (-1.0, None, 0.0, None),
        (1.0, None, 80.0, True),
        (1.0, None, 81.0, None),
        # less than a MiB is nothing, whatever is missing
        (0.0, None, 0.0, False),
        (0.06, None, 0.0, False),
        (0.0625, None, 0.0, True),
        # below a tenth of what is missing (8000 + 512 + 32 per_rank - usable), and below a GiB
        (20.0, 6000.0, 0.0, True),
        (19.9, 5965.0, 0.0, True),
        (19.9, 5940.0, 0.0, False),
        (64.0, 1.0, 0.0, True),
        (63.9, -9999.0, 0.0, False),
    ],
)
def test_what_counts_as_a_saving(per_rank: float, usable: float | None, spread: float, kept: bool | None) -> None:
    def estimate(config: JobConfig) -> Forecast:
        rank = config.get("network.linear")
        low = 0.0 if rank == 32 else -spread  # the low end comes down less than the likely one
        return at(8000 + per_rank * rank, usable=usable, low=low, high=0)

    found = with_numbers([LOWER], PLAIN, estimate, BASE, {})
    assert [item.id for item in found.suggestions] == (["reduce_network_rank"] if kept else [])
    assert [(item.id, item.why) for item in found.too_small] == (
        [("reduce_network_rank", "too_small")] if kept is False else []
    )
    whole = 16 * per_rank
    for saving in (item.saving for one in (found.suggestions, found.too_small) for item in one):
        assert saving is not None
        assert (saving.low, saving.likely, saving.high) == pytest.approx((max(0.0, whole - spread), whole, whole))


def test_a_fix_has_the_figures_of_the_config_as_edited() -> None:
    found = with_numbers([LOWER, HALVED], PLAIN, by_batch(6000.0, per_rank=100.0), BASE, wanted("reduce_batch_size"))
    assert [(item.rank, item.id) for item in found.suggestions] == [
        (1, "reduce_network_rank"),
        (2, "reduce_batch_size"),
    ]
    rank, batch = found.suggestions
    after = at(9600.0, usable=6000.0)
    assert (rank.saving, rank.peak, rank.need, rank.fits) == (
        Range(1600, 1600, 1600),
        after.peak,
        after.need,
        "does not fit",
    )
    # 8 → 4 leaves 7200, 8 → 2 leaves 5200 and with the context 5732 at most
    assert batch.changes == (ConfigChange("train.batch_size", 8, 2),)
    assert (batch.saving, batch.fits) == (Range(6000, 6000, 6000), "fits")


def test_a_fix_that_no_step_makes_fit_stays_at_its_first() -> None:
    found = with_numbers([HALVED], PLAIN, by_batch(100.0), BASE, wanted("reduce_batch_size")).suggestions[0]
    assert found.changes == HALVED.changes
    assert (found.saving, found.fits) == (Range(4000, 4000, 4000), "does not fit")
    # nor does one go on that saves no more, or that cannot be measured further down
    for unknown in (True, False):

        def estimate(config: JobConfig, unknown: bool = unknown) -> Forecast | None:
            batch = config.get("train.batch_size")
            return None if unknown and batch < 4 else at(1000.0 * max(4, batch), usable=2000.0)

        again = with_numbers([HALVED], PLAIN, estimate, BASE, wanted("reduce_batch_size")).suggestions[0]
        assert again.changes == HALVED.changes


def test_what_is_not_measured_stays_as_the_guide_has_it() -> None:
    def estimate(config: JobConfig) -> Forecast | None:
        return None if config.get("train.batch_size") < 8 else at(9000, usable=6000.0)

    found = with_numbers([HALVED], PLAIN, estimate, BASE, {}).suggestions
    assert found == (HALVED,)
    # another phase than those that the fix is worked out for; nothing to edit
    saving = by_batch(6000.0, phase="saving")
    assert with_numbers([HALVED], PLAIN, saving, BASE, {}).suggestions == (HALVED,)
    bare = msgspec.structs.replace(HALVED, changes=())
    assert with_numbers([bare], PLAIN, by_batch(6000.0), BASE, {}).suggestions == (bare,)


OTHERS = Suggestion(1, "free_other_gpu_processes", (), "", None, None, "", {"memory.other_processes": 3000.0})
ALLOCATOR = Suggestion(1, "set_allocator_config", (), "", None, None, "", {"memory.reserved_unallocated": 800.0})


@pytest.mark.parametrize("forecast_there", [True, False])
def test_what_the_message_itself_says_can_be_freed(forecast_there: bool) -> None:
    def estimate(config: JobConfig) -> Forecast | None:
        return at(8000, usable=6000.0) if forecast_there else None

    nothing = [msgspec.structs.replace(OTHERS, facts={"memory.other_processes": value}) for value in (0.0, None, "3")]
    found = with_numbers([OTHERS, ALLOCATOR, *nothing], PLAIN, estimate, BASE, {}).suggestions
    # other processes give back what they hold; of reserved memory nobody knows how much
    assert [item.saving for item in found] == [Range(3000, 3000, 3000), Range(0, 800, 800), None, None, None]
    # the need stays, the card gets larger
    peak, need = (at(8000, usable=None).peak, at(8000, usable=None).need) if forecast_there else (None, None)
    assert [(item.peak, item.need) for item in found] == [(peak, need)] + [(None, None)] * 4
    assert found[0].fits == ("borderline" if forecast_there else None)


@pytest.mark.parametrize(
    ("phase", "clip", "width", "order"),
    [
        ("baseline_sampling", 100.0, 500.0, ["shrink_preview", "reduce_num_frames"]),
        ("mid_sampling", 100.0, 401.0, ["shrink_preview", "reduce_num_frames"]),
        ("mid_sampling", 100.0, 400.0, ["reduce_num_frames", "shrink_preview"]),
        ("training_step", 100.0, 500.0, ["reduce_num_frames", "shrink_preview"]),
    ],
)
def test_shorter_clips_go_behind_what_saves_far_more_in_a_preview(
    phase: str, clip: float, width: float, order: list[str]
) -> None:
    config = JobConfig({"sample.num_frames": Value(81, "log"), "sample.width": Value(1024, "log")}, ("log",))
    frames = suggestion("reduce_num_frames", ConfigChange("sample.num_frames", 81, 41))
    smaller = suggestion("shrink_preview", ConfigChange("sample.width", 1024, 704))

    def estimate(edited_: JobConfig) -> Forecast:
        peak = 9000 - clip * (edited_.get("sample.num_frames") == 41) - width * (edited_.get("sample.width") == 704)
        return at(peak, usable=None, phase=phase)

    found = with_numbers([frames, smaller], config, estimate, BASE, {}).suggestions
    assert [item.id for item in found] == order
    assert [item.rank for item in found] == [1, 2]


def test_a_ladder_takes_one_variable_a_rung_until_it_fits() -> None:
    ids = wanted("reduce_batch_size", "reduce_network_rank")
    found = with_numbers([LOWER, HALVED], PLAIN, by_batch(4500.0, per_rank=60.0), BASE, ids).ladder
    # batch 2 alone leaves 3920, with the lower rank 2960; nothing comes after what fits
    assert [(rung.id, rung.changes, rung.peak.likely, rung.fits) for rung in found] == [
        ("reduce_network_rank", (ConfigChange("network.linear", 32, 16),), 8960.0, "does not fit"),
        ("reduce_batch_size", (ConfigChange("train.batch_size", 8, 2),), 2960.0, "fits"),
    ]
    other = with_numbers([HALVED, LOWER], PLAIN, by_batch(4600.0, per_rank=30.0), BASE, ids).ladder
    assert [rung.id for rung in other] == ["reduce_batch_size"]


@pytest.mark.parametrize(("per_rank", "rungs"), [(4.0, 2), (3.9, 1)])
def test_a_rung_is_worth_a_retry(per_rank: float, rungs: int) -> None:
    """64 MiB; what comes first is tried whatever it saves."""
    found = with_numbers([HALVED, LOWER], PLAIN, by_batch(None, per_rank=per_rank), BASE, {}).ladder
    assert len(found) == rungs
    turned = with_numbers([LOWER, HALVED], PLAIN, by_batch(None, per_rank=per_rank), BASE, {}).ladder
    assert [rung.id for rung in turned] == ["reduce_network_rank", "reduce_batch_size"]


def test_the_batch_and_its_accumulation_are_one_rung() -> None:
    config = msgspec.structs.replace(PLAIN, values={**PLAIN.values, "train.gradient_accumulation": Value(2, "log")})
    more = suggestion("use_gradient_accumulation", ConfigChange("train.gradient_accumulation", 2, 4))
    ids = wanted("reduce_batch_size", "use_gradient_accumulation")
    found = with_numbers([HALVED, more], config, by_batch(3000.0), BASE, ids)
    kept = ConfigChange("train.gradient_accumulation", 2, 8)
    assert [item.changes for item in found.suggestions] == [(ConfigChange("train.batch_size", 8, 2),), (kept,)]
    assert [rung.changes for rung in found.ladder] == [(ConfigChange("train.batch_size", 8, 2), kept)]


def test_an_edit_that_a_rung_before_made_is_not_made_again() -> None:
    both = suggestion("disable_ema", ConfigChange("network.linear", 32, 16), ConfigChange("train.batch_size", 8, 4))
    found = with_numbers([LOWER, both], PLAIN, by_batch(None, per_rank=30.0), BASE, {}).ladder
    assert [rung.changes for rung in found] == [LOWER.changes, (ConfigChange("train.batch_size", 8, 4),)]
    assert [
        rung.id for rung in with_numbers([LOWER, LOWER], PLAIN, by_batch(None, per_rank=30.0), BASE, {}).ladder
    ] == ["reduce_network_rank"]


def test_every_fix_is_worked_out_for_itself() -> None:
    """One that nobody measures, one that raises the peak, one that is too small, one without an edit: the rest goes on."""
    changes = {"disable_ema": "a", "reduce_network_rank": "b", "use_8bit_optimizer": "c", "reduce_batch_size": "d"}
    config = JobConfig({path: Value(2, "log") for path in changes.values()}, ("log",))
    offered = [suggestion(ident, ConfigChange(path, 2, 1)) for ident, path in changes.items()]

    def estimate(made: JobConfig) -> Forecast | None:
        a, b, c, d = (2 - made.get(path) for path in "abcd")
        return None if a else at(9000 + 50 * b - 0.5 * c - 2000 * d, usable=None)

    found = with_numbers([OTHERS, *offered, LOWER], config, estimate, BASE, {})
    assert [(item.rank, item.id, item.saving is None) for item in found.suggestions] == [
        (1, "free_other_gpu_processes", False),
        (2, "disable_ema", True),
        (3, "reduce_batch_size", False),
    ]
    assert [item.id for item in found.too_small] == ["use_8bit_optimizer", "reduce_network_rank"]
