"""Attempts in one log, phases, and how attempts end."""

from __future__ import annotations

import pytest

from postmortem.pipeline import NoSuchAttempt
from tests.conftest import Analyse
from tests.simulate import BANNER, bar, config, finished, head, training

SIZES = (
    "CUDA out of memory. Tried to allocate 5.06 GiB. GPU 0 has a total capacity of 31.36 GiB of which 336.62 MiB is free. "
    "Including non-PyTorch memory, this process has 30.68 GiB memory in use. Of the allocated memory 27.17 GiB is allocated by "
    "PyTorch, and 2.92 GiB is reserved by PyTorch but unallocated."
)
PREVIEW = "Generating baseline samples before training\n\rGenerating Samples:   0%|          | 0/3 [00:00<?, ?it/s]\n"
FAILED = f"Error running job: {SIZES}\n\n========================================\nResult:\n - 0 completed jobs\n - 1 failure\n"


def test_a_later_attempt_of_the_same_job_supersedes(run: Analyse) -> None:
    analysis = run(head(config()) + PREVIEW + FAILED + head(config()) + training(60, []) + finished())
    assert len(analysis.attempts) == 2
    assert (analysis.diagnosis.kind, analysis.diagnosis.outcome) == ("none", "completed")
    assert "superseded_attempt" in [notice.id for notice in analysis.warnings]


def test_another_job_does_not_supersede(run: Analyse) -> None:
    second = head(config(), name="cups").removeprefix("Running 1 job\n")
    analysis = run(
        head(config())
        + PREVIEW
        + f"Error running job: {SIZES}\n"
        + second
        + training(60, [], name="cups")
        + finished("cups")
    )
    assert len(analysis.attempts) == 2
    assert analysis.attempt.index == 1
    assert (analysis.diagnosis.kind, analysis.diagnosis.phase) == ("gpu_oom", "baseline_sampling")


def test_an_attempt_can_be_asked_for(run: Analyse) -> None:
    log = head(config()) + PREVIEW + FAILED + head(config()) + training(60, []) + finished()
    assert run(log, attempt=1).diagnosis.phase == "baseline_sampling"
    with pytest.raises(NoSuchAttempt):
        run(log, attempt=3)


def test_the_old_handler_prints_one_failure_three_times(run: Analyse) -> None:
    trace = (
        "Traceback (most recent call last):\n"
        '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2136, in run\n'
        "    loss_dict = self.hook_train_loop(batch_list)\n"
        f"torch.OutOfMemoryError: {SIZES}\n"
    )
    log = (
        head(config())
        + training(60, [], until=30)
        + trace
        + "Batch Items:\n - /data/mugs/7.png\n"
        + FAILED
        + trace
        + trace
    )
    analysis = run(log)
    assert len(analysis.attempt.ooms) == 1
    assert analysis.diagnosis.step == 30
    assert analysis.diagnosis.memory_mib["tried_to_allocate"] == pytest.approx(5.06 * 1024)


@pytest.mark.parametrize(
    ("tail", "outcome", "kind"),
    [
        (
            "\n========================================\nJob stopped\n========================================\n",
            "stopped",
            "none",
        ),
        (
            "train.sh: line 3: 20534 Killed                  python run.py x.yaml\nexit code: 137\n",
            "killed",
            "host_oom",
        ),
        ("\nJob process terminated with signal SIGKILL.\n", "killed", "host_oom"),
        ("", "incomplete", "unknown"),
        ("Error running job: DataLoader worker (pid 1) is killed by signal: Killed. \n", "failed", "host_oom"),
        ("Error running job: [Errno 28] No space left on device\n", "failed", "not_memory"),
        ("Error running job: Triton Error [CUDA]: out of memory\n", "failed", "gpu_oom"),
        ('earlyoom: sending SIGTERM to process 9 uid 0 "python": badness 1309, VmRSS 5821 MiB\n', "killed", "host_oom"),
        ("Job process terminated with exit code 3221225773.\n", "killed", "host_oom"),
    ],
)
def test_endings(run: Analyse, tail: str, outcome: str, kind: str) -> None:
    analysis = run(head(config()) + training(60, [], until=20) + tail)
    assert (analysis.diagnosis.outcome, analysis.diagnosis.kind) == (outcome, kind)


def test_a_crash_that_a_skipped_batch_caused_is_the_oom(run: Analyse) -> None:
    log = head(config()) + training(60, {0}, until=1) + "Error running job: 'exp_avg'\n" + "KeyError: 'exp_avg'\n"
    analysis = run(log)
    assert (analysis.diagnosis.kind, analysis.diagnosis.class_) == ("gpu_oom", "early_step")
    alone = run(head(config()) + training(60, [], until=1) + "Error running job: 'exp_avg'\nKeyError: 'exp_avg'\n")
    assert alone.diagnosis.kind == "not_memory"


@pytest.mark.parametrize(
    "message",
    [
        "local variable 'loss_dict' referenced before assignment",
        "cannot access local variable 'loss_dict' where it is not associated with a value",
    ],
)
def test_a_first_step_that_was_skipped_had_no_losses_to_show(run: Analyse, message: str) -> None:
    end = f"Error running job: {message}\nUnboundLocalError: {message}\n"
    analysis = run(head(config()) + bar("mugs", 0, 60, 0, "") + BANNER.format(1) + end)
    assert (analysis.diagnosis.kind, analysis.diagnosis.class_) == ("gpu_oom", "early_step")
    assert [oom.step for oom in analysis.attempt.ooms] == [0]


def test_a_swallowed_layer_is_reported_though_the_run_completed(run: Analyse) -> None:
    log = head(config()) + f"Failed to quantize blocks.3.attn: {SIZES}\n" + training(60, []) + finished()
    analysis = run(log)
    assert (analysis.diagnosis.kind, analysis.diagnosis.phase, analysis.diagnosis.outcome) == (
        "gpu_oom",
        "quantize",
        "completed",
    )
    assert analysis.attempt.ooms[0].caught


def test_step_time_collapse_without_an_error(run: Analyse) -> None:
    lines = [
        f"mugs: {n}%|#| {n}/100 [{n * 2 // 60:02d}:{n * 2 % 60:02d}<10:00, 2.00s/it, lr: 1.0e-04 loss: 1.{n:03d}]\n"
        for n in range(1, 41)
    ]
    clock = 80
    for n in range(41, 61):
        clock += 60
        lines.append(
            f"mugs: {n}%|#| {n}/100 [{clock // 60:02d}:{clock % 60:02d}<10:00, 60.0s/it, lr: 1.0e-04 loss: 1.{n:03d}]\n"
        )
    windows = head(config(datasets__folder_path="D:\\mugs"))
    analysis = run(windows + "".join(lines))
    assert analysis.diagnosis.kind == "vram_spill"
    assert analysis.attempt.step_times is not None
    assert analysis.attempt.step_times.from_step == 40
    assert analysis.attempt.step_times.after_s == pytest.approx(60)
    steady = run(windows + "".join(lines[:40]))
    assert steady.attempt.step_times is None


def test_another_job_in_the_input_is_named(run: Analyse) -> None:
    second = head(config(), name="cups").removeprefix("Running 1 job\n")
    log = head(config()) + PREVIEW + f"Error running job: {SIZES}\n" + second + training(60, [], name="cups")
    told = [notice for notice in run(log + finished("cups")).warnings if notice.id == "other_job"]
    assert [(notice.values["attempt"], notice.values["outcome"]) for notice in told] == [(2, "completed")]


def test_the_first_step_is_not_known_where_a_resume_may_be_missing(run: Analyse) -> None:
    """A log without its head may have resumed; one that names a resume without its step did."""
    load = "Loading ZImage model\nLoading transformer\n"
    error = "Error running job: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
    whole = head(config()) + error
    resumed = head(config()) + "#### IMPORTANT RESUMING FROM output/mugs/mugs_000000250.safetensors ####\n"
    found = "Found step 250 in metadata, starting from there\n"
    assert run(whole).diagnosis.step == 0
    assert run(load + error).diagnosis.step is None
    assert run(resumed + error).diagnosis.step is None
    assert run(resumed + found + error).diagnosis.step == 250


@pytest.mark.parametrize(
    "line",
    [
        "Job process terminated with exit code 137.",
        "ffmpeg: exited with code 139",
        "Killed",
        "Segmentation fault (core dumped)",
        "[1]    1234 killed     python run.py",
    ],
)
@pytest.mark.parametrize("where", ["before", "loading", "training"])
def test_a_process_that_ended_while_the_run_went_on_was_another(run: Analyse, line: str, where: str) -> None:
    begun = head(config()) + training(60, [], until=30)
    at = {"before": 0, "loading": len(head(config())), "training": len(begun)}[where]
    log = f"{begun[:at]}\n{line}\n{begun[at:]}" + training(60, [], start=30) + finished()
    found = run(log).diagnosis
    assert (found.kind, found.outcome) == ("none", "completed")
    assert run(f"{begun}\n{line}\n").diagnosis.outcome in ("failed", "killed")


def test_what_mail_quotes_is_of_another_run(run: Analyse) -> None:
    told = f"Error running job: {SIZES}\n"
    whole = head(config()) + training(60, [], until=30) + "\n"
    assert run(whole + told).diagnosis.kind == "gpu_oom"
    assert run(f"{whole}> {told}").diagnosis.kind != "gpu_oom"
    assert run(f"> {told}").diagnosis.kind == "gpu_oom"
    quoted = "".join(f"> {line}\n" for line in (head(config()) + told).splitlines())
    assert run(quoted).diagnosis.kind == "gpu_oom"
