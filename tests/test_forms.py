"""Every form in which people hand logs over (tests/forms.py), applied to fixtures of all kinds.

An exact form changes no claim. One that loses something may make the report say less, never something else.
"""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from postmortem.intake import IntakeError, open_path, open_stream
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import NothingRecognised, Source, analyse
from postmortem.report import build, json_
from postmortem.scan import Lexicon
from tests.forms import LESS, SAME, retyped

FIXTURES = Path(__file__).parent.parent / "fixtures"
NAMES = (
    "after-sampling-zimage",
    "bucket-spike-fatal-wan-41-frames",
    "bucket-spike-lived-flux",
    "caching-text-chroma-pty",
    "early-step-batch-4-lumps",
    "early-step-exp-avg",
    "host-pinned-quantise-qwen",
    "host-shm-bus-error-ltx2",
    "ok-named-cuda-out-of-memory",
    "sampling-mid-run-hip-sdxl",
    "sizes-old-torch-message",
    "startup-quantise-other-process",
)
BLINDED = {
    "two threads, letter by letter": {"host-pinned-quantise-qwen"},
}
"""Where a form takes what a claim rests on: without the failing frame a bare CUDA error does not say which memory."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    found = {}
    for name in NAMES:
        opened = open_path(FIXTURES / name / "log.txt")
        found[name] = b"".join(opened.logs[-1].chunks()).decode("utf-8", "replace")
    return found


@pytest.fixture(scope="module")
def read(lexicon: Lexicon, knowledge: Knowledge) -> Any:
    def report(data: bytes) -> dict[str, Any]:
        opened = open_stream(io.BytesIO(data))
        logs = [Source(log.name, log.encoding, log.chunks(), log.repairs) for log in opened.logs]
        found: dict[str, Any] = json.loads(json_.render(build(analyse("-", logs, [], lexicon), knowledge)))
        return found

    return report


def claims(report: dict[str, Any]) -> dict[str, Any]:
    failure, run = report["failure"], report["run"]
    found = {key: failure[key] for key in ("kind", "resource", "class", "phase", "step", "signature")}
    found |= {f"run.{key}": run[key] for key in ("trainer", "job_name", "outcome", "total_steps", "arch")}
    found |= {f"memory.{key}": size for key, size in report["memory"].items()}
    found["ooms"] = [(event["step"], event["phase"], event["caught"]) for event in report["oom_events"]]
    return found


@pytest.mark.parametrize("form", SAME)
def test_an_exact_form_changes_no_claim(form: str, texts: dict[str, str], read: Any) -> None:
    for name, text in texts.items():
        assert claims(read(SAME[form](text))) == claims(read(text.encode())), name


@pytest.mark.parametrize("form", LESS)
def test_a_form_that_loses_something_claims_less(form: str, texts: dict[str, str], read: Any) -> None:
    for name, text in texts.items():
        if name in BLINDED.get(form, ()):
            blind = claims(read(LESS[form](text)))
            assert (blind["kind"], blind["resource"]) == ("gpu_oom", None), name
            continue
        whole = claims(read(text.encode()))
        try:
            part = claims(read(LESS[form](text)))
        except (NothingRecognised, IntakeError):
            pytest.fail(f"{name}: refused")
        if form == "the head":
            # it ends before the failure does
            assert part["kind"] in (whole["kind"], "unknown", "none"), name
            continue
        assert part["kind"] in (whole["kind"], "unknown"), name
        if part["kind"] == "unknown":
            continue
        assert part["resource"] in (whole["resource"], None), name
        if not form.startswith("the "):
            assert part["phase"] in (whole["phase"], "unknown"), name
        for key, size in part.items():
            if key.startswith("memory."):
                assert size in (whole[key], None), f"{name}: {key}"


def test_a_message_typed_by_hand_is_known_but_its_numbers_are_not(texts: dict[str, str], read: Any) -> None:
    report = read(retyped(texts["startup-quantise-other-process"]).encode())
    failure = report["failure"]
    assert (failure["kind"], failure["phase"], failure["class"]) == ("gpu_oom", "unknown", None)
    assert failure["confidence"] == "low"
    assert report["memory"]["pytorch_allocated"] is None


def test_a_status_line_of_the_ui_is_enough(read: Any) -> None:
    failure = read(b"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.53 GiB")[
        "failure"
    ]
    assert (failure["kind"], failure["phase"], failure["class"], failure["confidence"]) == (
        "gpu_oom",
        "unknown",
        None,
        "low",
    )


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.06 GiB is free.\n"
TRAINERS = {
    "kohya": 'import network module: networks.lora\nTraceback (most recent call last):\n  File "/w/sd-scripts/flux_train_network.py", line 12, in <module>\n    train()\n',
    "musubi-tuner": 'bucket: (480, 480, 61), count: 1\nTraceback (most recent call last):\n  File "/w/musubi-tuner/wan_train_network.py", line 449, in <module>\n    main()\n',
    "onetrainer": 'Traceback (most recent call last):\n  File "C:\\OneTrainer\\modules\\trainer\\GenericTrainer.py", line 700, in train\n    x()\n',
    "simpletuner": 'Traceback (most recent call last):\n  File "/w/SimpleTuner/train.py", line 2764, in <module>\n    x()\n',
    "diffusion-pipe": 'Traceback (most recent call last):\n  File "/w/diffusion-pipe/train.py", line 760, in <module>\n    x()\n',
    "diffusers": 'Traceback (most recent call last):\n  File "/w/diffusers/examples/dreambooth/train_dreambooth_lora_flux.py", line 1891, in <module>\n    main(args)\n',
    "axolotl": 'Traceback (most recent call last):\n  File "/w/axolotl/src/axolotl/cli/train.py", line 38, in do_train\n    x()\n',
}
NO_TRAINING = {
    "comfyui": 'got prompt\nRequested to load Flux\nTraceback (most recent call last):\n  File "/w/ComfyUI/execution.py", line 327, in execute\n    x()\n',
    "llm-server": '(EngineCore_0 pid=7) ERROR x\nTraceback (most recent call last):\n  File "/v/dist-packages/vllm/v1/worker/gpu_worker.py", line 180, in load_model\n    x()\n',
    "sd-webui": 'Traceback (most recent call last):\n  File "/w/stable-diffusion-webui/modules/processing.py", line 1000, in process\n    x()\n',
}


@pytest.mark.parametrize("name", [*TRAINERS, *NO_TRAINING])
def test_another_program_is_named_and_gets_no_advice(name: str, read: Any) -> None:
    report = read(((TRAINERS | NO_TRAINING)[name] + OOM).encode())
    assert report["run"]["trainer"] == name
    assert report["failure"]["kind"] == "gpu_oom"
    assert report["memory"]["tried_to_allocate"] == 2048
    assert report["remedies"] == []
    notice = "not_a_training_run" if name in NO_TRAINING else "foreign_trainer"
    assert notice in [warning["id"] for warning in report["warnings"]]


def test_pictures_made_well_are_no_training_run(read: Any) -> None:
    report = read(
        b"got prompt\nRequested to load Flux\n100%|##########| 20/20 [00:31<00:00,  1.58s/it]\nPrompt executed in 45.21 seconds\n"
    )
    assert report["failure"]["kind"] == "unknown"
    assert [warning["id"] for warning in report["warnings"]] == ["not_a_training_run"]


def test_a_boxed_traceback_gives_its_frames(read: Any) -> None:
    box = """╭───────────────── Traceback (most recent call last) ──────────────────╮
│ /w/ai-toolkit/jobs/process/BaseSDTrainProcess.py:2732 in run          │
│                                                                      │
│   2731 │   │   │   if self.is_sampling_step():                         │
│ ❱ 2732 │   │   │   │   self.sample(self.step_num)                      │
│   2733 │   │   │   │                                                   │
│                                                                      │
│ /w/ai-toolkit/venv/lib/python3.10/site-packages/diffusers/pipelines/f │
│ lux/pipeline_flux.py:945 in __call__                                  │
│                                                                      │
│ ❱ 945 │   │   noise_pred = self.transformer(                           │
╰──────────────────────────────────────────────────────────────────────╯
OutOfMemoryError: CUDA out of memory. Tried to allocate 3.38 GiB. GPU 0
has a total capacity of 23.53 GiB of which 1.94 GiB is free.
"""
    report = read(box.encode())
    assert report["failure"]["phase"] == "mid_sampling" or report["failure"]["phase"] == "baseline_sampling"
    assert report["memory"]["tried_to_allocate"] == pytest.approx(3461.1, abs=1)
    assert report["memory"]["free"] == pytest.approx(1986.6, abs=1)


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory comes from the resource module")
def test_memory_does_not_grow_with_the_log() -> None:
    from benchmarks.memory import peak_mib

    assert peak_mib("bars", 12_000_000)[0] < peak_mib("bars", 2_000_000)[0] + 24
