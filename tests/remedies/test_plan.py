"""What the fixes must obey, over many configs and failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.intake import open_path
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Source, analyse
from postmortem.remedies import plan
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.simulate import buckets, config, finished, head, training
from tests.timeline.test_attempts import FAILED, PREVIEW, SIZES

TABLE = buckets({"512x512": 30, "1024x1024": 6})


def first_steps(run: Analyse, **changes: Any) -> list[str]:
    return [item.id for item in run(head(config(**changes)) + training(400, {0, 1, 2, 3})).suggestions]


def test_checkpointing_off_comes_first_and_says_to_change_nothing_else(run: Analyse) -> None:
    analysis = run(head(config(train__gradient_checkpointing=False, train__batch_size=4)) + training(400, {0, 1, 2, 3}))
    first = analysis.suggestions[0]
    assert first.id == "enable_gradient_checkpointing"
    assert [(c.path, c.before, c.after) for c in first.changes] == [("train.gradient_checkpointing", False, True)]


def test_checkpointing_off_comes_before_a_version_with_a_known_fault(run: Analyse, knowledge: Knowledge) -> None:
    def ids(*, checkpointing: bool) -> list[str]:
        job = config(train__gradient_checkpointing=checkpointing, model__layer_offloading=True)
        analysis = run(head(job) + training(400, {0, 1, 2, 3}))
        known = {"regression.standing": "inside", "regression.id": "offload_float8_stays"}
        diagnosis = msgspec.structs.replace(analysis.diagnosis, facts={**analysis.diagnosis.facts, **known})
        return [item.id for item in plan(diagnosis, analysis.config, knowledge).suggestions]

    assert ids(checkpointing=False)[:2] == ["enable_gradient_checkpointing", "change_toolkit_version"]
    assert ids(checkpointing=True)[0] == "change_toolkit_version"


ENCODER = (
    "Loading text encoder\nError running job: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    'Traceback (most recent call last):\n  File "/a/jobs/process/BaseSDTrainProcess.py", line 1, in run\n'
    '    self.sd.load_model()\n  File "/a/x.py", line 2, in load_model\n    text_encoder.to(self.device_torch)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


@pytest.mark.parametrize(
    ("arch", "before", "low_vram", "wanted"),
    [
        ("qwen_image", "Loading transformer\n", False, {"enable_low_vram", "quantize_model"}),
        ("qwen_image", "Loading transformer\nMoving transformer to CPU\n", True, set()),
        # HiDream reads its largest text encoder first: nothing else is on the card
        ("hidream", "Loading llama 8b model\n", False, {"use_larger_gpu"}),
    ],
)
def test_a_text_encoder_that_has_the_card_for_itself(
    run: Analyse, arch: str, before: str, low_vram: bool, wanted: set[str]
) -> None:
    job = config(model__arch=arch, model__quantize=False, model__quantize_te=False, model__low_vram=low_vram)
    analysis = run(head(job) + before + ENCODER)
    assert analysis.diagnosis.phase == "text_encoder_load"
    ids = {item.id for item in analysis.suggestions}
    assert ids & {"enable_low_vram", "quantize_model", "lower_bit_quantization", "use_larger_gpu"} == wanted


def test_layer_offloading_is_for_cards_with_memory_of_their_own(run: Analyse) -> None:
    mps = "MPS backend out of memory (MPS allocated: 33.48 GB, other allocations: 2.45 GB, max allowed: 36.27 GB). Tried to allocate 600.15 MB on private pool."
    cuda = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    job = head(config(model__arch="zimage", model__layer_offloading=False))
    on_mps, on_cuda = (run(job + training(400, [], until=3) + f"Error running job: {text}\n") for text in (mps, cuda))
    assert "enable_layer_offloading" not in [item.id for item in on_mps.suggestions]
    assert "enable_layer_offloading" in [item.id for item in on_cuda.suggestions]


def test_with_checkpointing_on_batch_comes_before_the_largest_bucket(run: Analyse) -> None:
    ids = first_steps(run, train__batch_size=4)
    assert ids[:3] == ["reduce_batch_size", "use_gradient_accumulation", "drop_largest_resolution"]
    assert "enable_gradient_checkpointing" not in ids


def test_batch_of_one_cannot_be_lowered(run: Analyse) -> None:
    ids = first_steps(run)
    assert ids[0] == "drop_largest_resolution"
    assert "reduce_batch_size" not in ids
    assert "use_gradient_accumulation" not in ids


@pytest.mark.parametrize(
    ("resolutions", "edits"),
    [
        ([[768], [1280]], {"datasets[1].resolution": ([1280], [768])}),
        (
            [[512, 768, 1280], [1280]],
            {"datasets[0].resolution": ([512, 768, 1280], [512, 768]), "datasets[1].resolution": ([1280], [768])},
        ),
        ([[512, 768], [1024]], {"datasets[1].resolution": ([1024], [768])}),
        ([[1024], [1024]], None),
    ],
)
def test_a_dataset_that_has_only_the_largest_resolution_takes_the_next_smaller_one(
    run: Analyse, resolutions: list[Any], edits: dict[str, Any] | None
) -> None:
    datasets = [{"folder_path": f"/data/{n}", "resolution": value} for n, value in enumerate(resolutions)]
    analysis = run(head(config(datasets=datasets)) + training(400, {0, 1, 2, 3}))
    found = {item.id: {c.path: (c.before, c.after) for c in item.changes} for item in analysis.suggestions}
    assert found.get("drop_largest_resolution") == edits


def test_accumulation_keeps_the_effective_batch(run: Analyse) -> None:
    analysis = run(head(config(train__batch_size=4)) + training(400, {0, 1, 2, 3}))
    edits = {c.path: (c.before, c.after) for item in analysis.suggestions[:2] for c in item.changes}
    assert edits == {"train.batch_size": (4, 2), "train.gradient_accumulation": (1, 2)}


def test_accumulation_is_not_offered_beside_its_older_kind(run: Analyse) -> None:
    settings_ = config(train__batch_size=4, train__gradient_accumulation_steps=2)
    ids = [item.id for item in run(head(settings_) + training(400, {0, 1, 2, 3})).suggestions]
    assert ids[0] == "reduce_batch_size"
    assert "use_gradient_accumulation" not in ids


ODD: tuple[Any, ...] = ("auto", "2x", 1e20, "1e30", 10**30, [2], True, False, {"a": 1}, 1.5, -3, "", float("nan"))
"""What a number's setting may hold that is none."""
NUMBERS = (
    *("train__batch_size", "train__gradient_accumulation", "train__gradient_accumulation_steps", "train__steps"),
    *("sample__width", "sample__sample_every", "network__linear", "save__save_every", "datasets__resolution"),
    *("datasets__batch_size", "datasets__num_frames", "datasets__num_repeats", "datasets__num_workers"),
    *("sample__num_frames", "sample__guidance_scale", "model__layer_offloading_transformer_percent"),
)


@pytest.mark.parametrize("odd", ODD, ids=repr)
@pytest.mark.parametrize("path", NUMBERS)
def test_a_setting_that_is_no_number_is_not_calculated_with(
    run: Analyse, knowledge: Knowledge, path: str, odd: Any
) -> None:
    text = head(config(**{"train__batch_size": 4, path: odd})) + TABLE + training(400, {0, 1, 2, 3, 90})
    for item in run(text).suggestions:
        for edit in item.changes:
            if edit.path != path.replace("__", "."):
                continue
            whole = isinstance(edit.before, int) and not isinstance(edit.before, bool)
            assert whole or edit.before == 1.5, edit
            assert isinstance(edit.after, int) and 0 < edit.after <= 1e6 and not isinstance(edit.after, bool), edit


def test_the_batch_is_lowered_although_the_accumulation_is_no_number(run: Analyse) -> None:
    found = run(head(config(train__batch_size=4, train__gradient_accumulation="auto")) + training(400, {0, 1, 2, 3}))
    assert {c.path: (c.before, c.after) for item in found.suggestions for c in item.changes}["train.batch_size"] == (
        4,
        2,
    )
    assert "use_gradient_accumulation" not in [item.id for item in found.suggestions]


def test_a_baseline_preview_is_not_checkpointings_fault(run: Analyse) -> None:
    settings_ = config(train__gradient_checkpointing=False)
    ids = [item.id for item in run(head(settings_) + PREVIEW + FAILED).suggestions]
    assert ids[0] == "shrink_preview"
    assert "enable_gradient_checkpointing" not in ids
    assert "reduce_batch_size" not in ids
    factors = [item.id for item in run(head(settings_) + PREVIEW + FAILED).diagnosis.factors]
    assert "gradient_checkpointing_off_later" in factors


def test_a_preview_once_training_has_begun_is(run: Analyse) -> None:
    settings_ = config(train__gradient_checkpointing=False)
    preview = "\rGenerating Samples:   0%|          | 0/3 [00:00<?, ?it/s]\n"
    ids = [item.id for item in run(head(settings_) + training(400, [], until=251) + preview + FAILED).suggestions]
    assert ids[0] == "enable_gradient_checkpointing"


def test_preview_steps_come_last(run: Analyse) -> None:
    ids = [item.id for item in run(head(config()) + PREVIEW + FAILED).suggestions]
    assert ids[-1] == "reduce_preview_steps"


@pytest.mark.parametrize(
    "error",
    [
        "[enforce fail at alloc_cpu.cpp:117] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 44541587456 bytes.",
        "The paging file is too small for this operation to complete. (os error 1455)",
        "DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
    ],
)
def test_host_memory_gets_no_gpu_advice(run: Analyse, error: str) -> None:
    analysis = run(
        head(config(train__gradient_checkpointing=False, train__batch_size=4)) + f"Error running job: {error}\n"
    )
    assert analysis.diagnosis.kind == "host_oom"
    allowed = {
        "add_host_memory",
        "raise_shm",
        "reduce_dataloader_workers",
        "cache_latents_to_disk",
        "change_toolkit_version",
    }
    assert analysis.suggestions
    assert {item.id for item in analysis.suggestions} <= allowed


def test_another_process_on_the_card_comes_first(run: Analyse) -> None:
    crowded = SIZES.replace("Including", "Process 4410 has 20.00 GiB memory in use. Including").replace(
        "30.68 GiB", "10.68 GiB"
    )
    ids = [
        item.id
        for item in run(
            head(config(train__gradient_checkpointing=False)) + f"Error running job: {crowded}\n"
        ).suggestions
    ]
    assert ids[:2] == ["free_other_gpu_processes", "restart_worker"]


def test_no_advice_where_memory_did_not_fail(run: Analyse) -> None:
    assert run(head(config()) + training(60, []) + finished()).suggestions == ()
    assert run(head(config()) + "Error running job: [Errno 28] No space left on device\n").suggestions == ()


def test_no_advice_of_ai_toolkit_for_another_trainer(run: Analyse) -> None:
    log = (
        "import network module: networks.lora\nprepare optimizer, data loader etc.\n" + "RuntimeError: " + SIZES + "\n"
    )
    analysis = run(log)
    assert (analysis.diagnosis.kind, analysis.diagnosis.trainer) == ("gpu_oom", "kohya")
    assert analysis.suggestions == ()


CHANGES = st.fixed_dictionaries(
    {
        "train__gradient_checkpointing": st.booleans(),
        "train__batch_size": st.sampled_from([1, 2, 3, 8]),
        "train__cache_text_embeddings": st.booleans(),
        "train__disable_sampling": st.booleans(),
        "train__optimizer": st.sampled_from(["adamw", "adamw8bit", "prodigy"]),
        "datasets__resolution": st.sampled_from([[512], [512, 768], [512, 768, 1024], 1024]),
        "datasets__num_frames": st.sampled_from([1, 33, 81]),
        "model__quantize": st.booleans(),
        "model__low_vram": st.booleans(),
        "model__layer_offloading": st.booleans(),
        "model__qtype": st.sampled_from(["qfloat8", "uint4", "uint3|adapter"]),
        "sample__width": st.sampled_from([256, 512, 1024]),
        "sample__height": st.sampled_from([256, 768, 1344]),
        "network__linear": st.sampled_from([4, 16, 32, 128]),
    }
)
ENDS = st.sampled_from(
    [
        training(400, {0, 1, 2, 3}),
        TABLE + training(400, {20, 33, 71}, until=100),
        training(400, [], until=200) + f"Error running job: {SIZES}\n",
        PREVIEW + FAILED,
        f"Error running job: {SIZES}\n",
        training(400, [], until=50) + "Killed\n",
    ]
)


@settings(max_examples=150, deadline=None)
@given(CHANGES, ENDS)
def test_nothing_on_is_turned_on_and_nothing_minimal_lowered(run: Analyse, changes: dict[str, Any], end: str) -> None:
    analysis = run(head(config(**changes)) + end)
    config_ = analysis.config
    ranks = [item.rank for item in analysis.suggestions]
    assert ranks == list(range(1, len(ranks) + 1))
    for item in analysis.suggestions:
        for change in item.changes:
            assert change.before == (config_.get(change.path))
            assert change.after != change.before
            if (
                isinstance(change.before, int)
                and not isinstance(change.before, bool)
                and item.id
                not in (
                    "use_gradient_accumulation",
                    "sample_less_often",
                )
            ):
                assert 0 < change.after < change.before
    ids = {item.id for item in analysis.suggestions}
    if changes["train__gradient_checkpointing"]:
        assert "enable_gradient_checkpointing" not in ids
    if changes["model__low_vram"]:
        assert "enable_low_vram" not in ids
    assert not ids & {item.id for item in analysis.not_helping}


@pytest.mark.parametrize(
    ("fixture", "half"),
    [
        ("sampling-baseline-ltx2-121-frames", "sample"),
        ("caching-latents-wan-81-frames", "datasets[0]"),
        ("bucket-spike-fatal-wan-41-frames", "datasets[0]"),
    ],
)
def test_frames_are_lowered_only_where_they_failed(fixture: str, half: str, lexicon: Lexicon) -> None:
    opened = open_path(Path(__file__).parents[2] / "fixtures" / fixture / "log.txt")
    logs = [Source(log.name, log.encoding, log.chunks()) for log in opened.logs]
    analysis = analyse("-", logs, opened.configs, lexicon)
    found = next(item for item in analysis.suggestions if item.id == "reduce_num_frames")
    assert [change.path for change in found.changes] == [f"{half}.num_frames"]


LOADING = (
    "Error running job: CUDA out of memory. Tried to allocate 2.00 GiB.\nTraceback (most recent call last):\n"
    '  File "/a/jobs/process/BaseSDTrainProcess.py", line 1, in run\n    self.sd.load_model()\n'
    '  File "/a/x.py", line 2, in load_model\n    transformer.to(self.device_torch, dtype=dtype)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


@pytest.mark.parametrize(
    ("arch", "reads"),
    [("flux", True), ("qwen_image", True), ("chroma", False), ("flux_kontext", False), ("sdxl", False)],
)
def test_low_vram_is_offered_where_the_family_reads_it(run: Analyse, arch: str, reads: bool) -> None:
    analysis = run(head(config(model__arch=arch, model__low_vram=False)) + "Loading transformer\n" + LOADING)
    assert analysis.diagnosis.class_ == "startup"
    assert ("enable_low_vram" in [item.id for item in analysis.suggestions]) is reads


def test_ema_that_fails_while_it_is_set_up_goes_first(run: Analyse) -> None:
    job = config(train__ema_config={"use_ema": True}, model__low_vram=False, train__optimizer="adamw")
    lines = LOADING.replace("self.sd.load_model()", "self.setup_ema()").replace("in load_model", "in setup_ema")
    lines = lines.replace("transformer.to(self.device_torch, dtype=dtype)", "self.ema = ExponentialMovingAverage(")
    analysis = run(head(job) + lines)
    assert analysis.diagnosis.phase == "setup"
    assert analysis.suggestions[0].id == "disable_ema"
