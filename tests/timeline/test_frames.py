"""Whether the frames of a bare CUDA error tell which memory it was about."""

from __future__ import annotations

import pytest

from tests.conftest import Analyse
from tests.simulate import config, head, training

ERROR = "CUDA error: out of memory"
MAIN = '  File "/app/run.py", line 120, in main\n    job.run()\n'
RUN = '  File "/app/jobs/process/BaseSDTrainProcess.py", line 2565, in run\n    self.sd.load_model()\n'
COPY = '  File "/app/toolkit/util/quantize.py", line 308, in quantize_model\n    block.to("cpu", non_blocking=True)\n'
MOVE = '  File "/app/toolkit/util/quantize.py", line 290, in quantize_model\n    block.to(device)\n'
TORCH = (
    '  File "/v/site-packages/torch/nn/modules/module.py", line 1371, in to\n    return self._apply(convert)\n'
    '  File "/v/site-packages/torch/nn/modules/module.py", line 1357, in convert\n    return t.to(\n'
)
INNER = TORCH[TORCH.index("\n", TORCH.index("\n") + 1) + 1 :]
CALLED = (
    '  File "/app/toolkit/models/flux.py", line 20, in forward\n    x = self.block(x)\n'
    '  File "/v/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl\n    return self._call_impl(*args)\n'
)


@pytest.mark.parametrize(
    ("frames", "kind", "resource"),
    [
        (MAIN + RUN + COPY + TORCH, "host_oom", "pinned_host"),
        (MAIN + RUN + MOVE + TORCH, "gpu_oom", "vram"),
        (MAIN + RUN + CALLED, "gpu_oom", "vram"),
        # the frame that called is gone: the copy may have been to either memory
        (TORCH, "gpu_oom", None),
        (MAIN + TORCH, "gpu_oom", None),
        (MAIN + RUN + INNER, "gpu_oom", None),
    ],
    ids=["copy", "move", "module", "no frame of its own", "only the first", "the last one missing"],
)
def test_a_bare_error_needs_the_frame_that_called(run: Analyse, frames: str, kind: str, resource: str | None) -> None:
    log = f"{head(config())}Error running job: {ERROR}\nTraceback (most recent call last):\n{frames}"
    diagnosis = run(f"{log}torch.AcceleratorError: {ERROR}\n").diagnosis
    assert (diagnosis.kind, diagnosis.resource) == (kind, resource)


@pytest.mark.parametrize(
    ("frames", "phase"),
    [
        (
            '  File "/app/extensions_built_in/sd_trainer/SDTrainer.py", line 1893, in train_single_accumulation\n'
            "    noise_pred = self.predict_noise(\n"
            '  File "/app/toolkit/models/base_model.py", line 874, in predict_noise\n'
            "    noise_pred = self.get_noise_prediction(\n",
            "training_step",
        ),
        (
            '  File "/v/site-packages/torch/_tensor.py", line 648, in backward\n    torch.autograd.backward(\n'
            '  File "/v/site-packages/torch/autograd/__init__.py", line 353, in backward\n    _engine_run_backward(\n',
            "training_step",
        ),
        (
            '  File "/v/site-packages/diffusers/pipelines/flux/pipeline_flux.py", line 912, in __call__\n'
            "    noise_pred = self.transformer(\n",
            "baseline_sampling",
        ),
        (TORCH, "unknown"),
    ],
    ids=["step", "backward", "pipeline", "any module"],
)
def test_a_traceback_without_its_head(run: Analyse, frames: str, phase: str) -> None:
    log = f"it stops with\n{frames}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert run(log).diagnosis.phase == phase


def test_a_logger_that_takes_the_indentation_away(run: Analyse) -> None:
    """As fluxgym writes what its trainer prints: a time and a level in front, then the bare text."""
    lines = [
        "Traceback (most recent call last):",
        r'File "F:\fluxgym\sd-scripts\train_network.py", line 1110, in train',
        "accelerator.backward(loss)",
        r'File "F:\fluxgym\env\lib\site-packages\torch\cuda\memory.py", line 90, in <frozen x>',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB.",
    ]
    diagnosis = run("".join(f"[2024-09-09 17:43:57] [INFO] {line}\n" for line in lines)).diagnosis
    assert (diagnosis.kind, diagnosis.phase, diagnosis.trainer) == ("gpu_oom", "training_step", "kohya")


def test_a_traceback_that_breaks_off_tells_the_phase(run: Analyse) -> None:
    error = "Error running job: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    log = f"{error}Traceback (most recent call last):\n{MAIN}{RUN}"
    assert (run(log).diagnosis.phase, run(log).diagnosis.class_) == ("model_load", "startup")
    bare = f"Error running job: {ERROR}\nTraceback (most recent call last):\n{MAIN}{RUN}{COPY}"
    assert (run(bare).diagnosis.phase, run(bare).diagnosis.resource) == ("quantize", None)


def test_a_notebook_s_traceback(run: Analyse) -> None:
    log = (
        "OutOfMemoryError                          Traceback (most recent call last)\nCell In[7], line 3\n"
        "      1 from toolkit.job import run_job\n----> 3 run_job(job_to_run)\n\n"
        "File ~/ai-toolkit/jobs/process/BaseSDTrainProcess.py:2025, in BaseSDTrainProcess.run(self)\n"
        "   2023 try:\n-> 2025     loss_dict = self.hook_train_loop(batch_list)\n\n"
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB.\n"
    )
    diagnosis = run(log).diagnosis
    assert (diagnosis.kind, diagnosis.phase, diagnosis.trainer) == ("gpu_oom", "training_step", "ai-toolkit")


def test_a_batch_that_cannot_be_page_locked(run: Analyse) -> None:
    """The error of the thread that hands batches over stands inside the one that training died of."""
    inner = (
        "Caught RuntimeError in pin memory thread for device 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/v/site-packages/torch/utils/data/_utils/pin_memory.py", line 60, in pin_memory\n'
        f"    return data.pin_memory(device)\nRuntimeError: {ERROR}\n\n"
    )
    step = (
        '  File "/app/jobs/process/BaseSDTrainProcess.py", line 2025, in run\n    batch = next(dataloader_iterator)\n'
    )
    before = head(config()) + training(400, [], until=20)
    log = f"{before}Error running job: {inner}Traceback (most recent call last):\n{MAIN}{step}"
    diagnosis = run(f"{log}RuntimeError: {inner}").diagnosis
    assert (diagnosis.kind, diagnosis.resource, diagnosis.phase) == ("host_oom", "pinned_host", "training_step")


def test_a_notebook_s_traceback_before_ipython_8(run: Analyse) -> None:
    """The file stands without a line number, which the arrow has; Colab makes a link of it."""
    plain = (
        "OutOfMemoryError                          Traceback (most recent call last)\n"
        "<ipython-input-7-2c1d5c4f0a11> in <module>\n----> 1 run_job(job_to_run)\n\n"
        "/content/ai-toolkit/jobs/process/BaseSDTrainProcess.py in run(self)\n"
        "   1739             # flush()\n   1740             ### HOOK ###\n"
        "-> 1741             loss_dict = self.hook_train_loop(batch_list)\n   1742             self.timer.stop('train_loop')\n\n"
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB.\n"
    )
    link = plain.replace(
        "/content/ai-toolkit/jobs/process/BaseSDTrainProcess.py",
        "[/content/ai-toolkit/jobs/process/BaseSDTrainProcess.py](https://localhost:8080/#)",
    ).replace("<ipython-input-7-2c1d5c4f0a11> in <module>", "<ipython-input-7-2c1d5c4f0a11> in <cell line: 1>()")
    for log in (plain, link):
        analysis = run(log)
        found = analysis.diagnosis
        assert (found.kind, found.phase, found.trainer) == ("gpu_oom", "training_step", "ai-toolkit")
        traceback = analysis.attempt.end.traceback
        assert traceback is not None
        assert [(frame.function, frame.number) for frame in traceback.frames][-1] == ("run", 1741)


def test_prose_that_names_a_file_and_a_function_is_no_frame(run: Analyse) -> None:
    log = head(config()) + training(400, [], until=20) + "I changed run.py in main(): see run.py in main()\n"
    assert run(log).attempt.end.outcome == "incomplete"
