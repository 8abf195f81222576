"""What an attempt died of, rule by rule: kind, resource, phase, step, how sure, and the event it stands on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.diagnosis.cause import cause_of
from postmortem.model import Attempt, End, Event, Stage, StepTimes
from postmortem.text import LogText
from tests.conftest import Analyse
from tests.diagnosis.build import at, attempt, event, oom
from tests.simulate import config, head, training

TRACEBACK: Any = object()
"""Only whether there is one counts here."""
Verdict = tuple[str, str | None, str, int | None, str]


def verdict(of: Attempt, can_spill: bool | None = None) -> Verdict:
    found = cause_of(of, can_spill)
    return found.kind, found.resource, found.phase, found.step, found.confidence


def stage(phase: str, name: str = "status") -> Stage:
    return Stage(at(50), phase, name, LogText(phase))


FATAL = event("oom", pattern="torch.oom")
PLACED: dict[str, Any] = {"placed": True, "line": 900}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # proven: the frames say the phase
        ({"ooms": (oom(5, **PLACED),), "traceback": TRACEBACK}, ("gpu_oom", "vram", "training_step", 5, "high")),
        ({"ooms": (oom(5, line=900),), "traceback": TRACEBACK}, ("gpu_oom", "vram", "training_step", 5, "medium")),
        ({"ooms": (oom(5, **PLACED),)}, ("gpu_oom", "vram", "training_step", 5, "medium")),
        # no phase, no certainty
        (
            {"ooms": (oom(None, "unknown", **PLACED),), "traceback": TRACEBACK},
            ("gpu_oom", "vram", "unknown", None, "low"),
        ),
        # the last one of the event's own pattern that nobody caught
        (
            {"ooms": (oom(1), oom(2), oom(3, caught=True), oom(4, pattern="b"))},
            ("gpu_oom", "vram", "training_step", 2, "medium"),
        ),
        ({"ooms": (oom(1, pattern="b"), oom(4, pattern="b"))}, ("gpu_oom", "vram", "training_step", 4, "medium")),
        (
            {"ooms": (oom(None, "model_load", kind="host_oom", resource="pagefile"),)},
            ("host_oom", "pagefile", "model_load", None, "medium"),
        ),
    ],
)
def test_an_oom_that_ended_the_run(given: dict[str, Any], expected: Verdict) -> None:
    found = cause_of(attempt(event=FATAL, **given))
    assert (found.kind, found.resource, found.phase, found.step, found.confidence) == expected
    assert found.event is FATAL and found.oom in given["ooms"] and found.oom is not None
    assert (found.place, found.signature) == (found.oom.place, found.oom.pattern)


def test_an_abort_stands_on_the_failure_that_has_no_banner() -> None:
    skips = [oom(40 + n, caught=True, counter=n + 1) for n in range(3)]
    aborted: dict[str, Any] = {"event": event("abort"), "ooms": (*skips, oom(43, implied=True)), "end_step": 44}
    assert verdict(attempt(**aborted)) == ("gpu_oom", "vram", "training_step", 43, "high")
    # where the steps of the skips are not proven, the place of the abort is the better witness
    assert verdict(attempt(skips_confirmed=False, **aborted)) == ("gpu_oom", "vram", "training_step", 44, "high")
    fatal = attempt(event=FATAL, ooms=(*skips, oom(43, implied=True), oom(60)))
    assert verdict(fatal) == ("gpu_oom", "vram", "training_step", 60, "medium")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # the error of the step after the skip, or of the same one
        ({"end_step": 11}, ("gpu_oom", "vram", "training_step", 11, "high")),
        ({"end_step": 10}, ("gpu_oom", "vram", "training_step", 10, "high")),
        ({"end_step": 12}, ("not_memory", None, "saving", 12, "high")),
        # where a step is not known, the lines must be near
        ({}, ("gpu_oom", "vram", "training_step", 10, "high")),
        ({"event": event("consequence", 901)}, ("not_memory", None, "saving", None, "high")),
        ({"ooms": (oom(None, caught=True),), "end_step": 70}, ("gpu_oom", "vram", "training_step", 70, "high")),
        # the last skip counts; one of a preview is none
        (
            {"ooms": (oom(10, caught=True), oom(30, caught=True)), "end_step": 31},
            ("gpu_oom", "vram", "training_step", 31, "high"),
        ),
        ({"ooms": (oom(10, "saving", caught=True),), "end_step": 11}, ("not_memory", None, "saving", 11, "high")),
        ({"ooms": (), "end_step": 11}, ("not_memory", None, "saving", 11, "high")),
        # in a fragment what it follows from may be missing
        ({"end_step": 12, "has_header": False}, ("unknown", None, "saving", 12, "low")),
    ],
)
def test_an_error_that_a_skip_may_have_caused(given: dict[str, Any], expected: Verdict) -> None:
    usual: dict[str, Any] = {
        "event": event("consequence", 900),
        "ooms": (oom(10, caught=True, line=500),),
        "end_phase": "saving",
    }
    of = attempt(**{**usual, **given})
    assert verdict(of) == expected
    found = cause_of(of)
    assert found.event is of.end.event is not None
    stands: Any = of.ooms[-1] if expected[0] == "gpu_oom" else found.event
    assert (found.place, found.signature) == (stands.place, stands.pattern)
    assert found.oom is (stands if expected[0] == "gpu_oom" else None)


@pytest.mark.parametrize(
    ("outcome", "end", "expected"),
    [
        # whoever did the killing says so
        ("killed", event("kill", reason="kernel_oom"), ("host_oom", "host_ram", "setup", 7, "high")),
        ("killed", event("kill", reason="container_oom"), ("host_oom", "host_ram", "setup", 7, "high")),
        ("killed", event("kill", reason="sigkill"), ("host_oom", "host_ram", "setup", 7, "medium")),
        ("failed", event("kill", resource="shm"), ("host_oom", "shm", "setup", 7, "medium")),
        ("killed", event("exit"), ("host_oom", "host_ram", "setup", 7, "medium")),
        ("failed", event("exit"), ("unknown", None, "setup", 7, "medium")),
        ("failed", event("crash"), ("unknown", None, "setup", 7, "medium")),
        ("failed", event("error"), ("not_memory", None, "setup", 7, "high")),
        ("failed", None, ("unknown", None, "caching", 7, "low")),
        ("incomplete", None, ("unknown", None, "caching", 7, "low")),
        ("completed", None, ("none", None, "unknown", None, "high")),
        ("stopped", None, ("none", None, "unknown", None, "high")),
    ],
)
def test_ends_without_an_oom(outcome: str, end: Event | None, expected: Verdict) -> None:
    of = attempt(outcome, event=end, phase="caching", end_phase="setup", end_step=7)
    assert verdict(of) == expected
    found = cause_of(of)
    assert (found.event, found.oom) == (end, None)
    assert (found.place, found.signature) == ((end.place, end.pattern) if end else (None, None))


def test_the_place_of_an_end_without_an_event() -> None:
    for outcome in ("failed", "completed"):
        assert cause_of(msgspec.structs.replace(attempt(outcome), end=End(outcome, at(77)))).place == at(77)


def test_a_bad_alloc_of_nobody_knows_what_is_no_training_run() -> None:
    """Any program prints it: without a header or a phase it is not known to be AI Toolkit's memory."""
    bad = event("host_oom", reason="bad_alloc")
    fatal = oom(None, "model_load", kind="host_oom", resource="host_ram", line=900)
    alone = attempt(event=bad, ooms=(fatal,), has_header=False, end_phase="model_load")
    assert verdict(alone) == ("not_memory", None, "model_load", None, "medium")
    assert (cause_of(alone).place, cause_of(alone).signature) == (bad.place, bad.pattern)
    told: tuple[dict[str, Any], ...] = ({"has_header": True}, {"has_header": False, "phase": "model_load"})
    for known in told:
        assert verdict(attempt(event=bad, ooms=(fatal,), **known))[0] == "host_oom"
    other = attempt(event=event("host_oom", reason="mmap"), ooms=(fatal,), has_header=False)
    assert verdict(other)[0] == "host_oom"


@pytest.mark.parametrize(
    ("outcome", "ooms", "expected"),
    [
        # it lived: the first step that was skipped
        (
            "completed_with_skips",
            (oom(3, caught=True), oom(9, caught=True)),
            ("gpu_oom", "vram", "training_step", 3, "high"),
        ),
        ("stopped", (oom(3, caught=True),), ("gpu_oom", "vram", "training_step", 3, "high")),
        # the log breaks off behind an OOM that nobody caught: the last one
        ("incomplete", (oom(3), oom(6), oom(9)), ("gpu_oom", "vram", "training_step", 9, "medium")),
        # rather than one that was swallowed
        ("incomplete", (oom(3), oom(8, "saving", caught=True)), ("gpu_oom", "vram", "training_step", 3, "medium")),
        # swallowed: quantising one layer, saving the optimiser
        ("completed", (oom(None, "quantize", caught=True),), ("gpu_oom", "vram", "quantize", None, "high")),
        (
            "incomplete",
            (oom(None, "quantize", caught=True), oom(8, "saving", caught=True)),
            ("gpu_oom", "vram", "saving", 8, "high"),
        ),
        ("stopped", (oom(8, "saving", caught=True),), ("none", None, "unknown", None, "high")),
        ("stopped", (oom(8),), ("none", None, "unknown", None, "high")),
    ],
)
def test_an_oom_that_did_not_end_the_run(outcome: str, ooms: tuple[Any, ...], expected: Verdict) -> None:
    assert verdict(attempt(outcome, ooms=ooms)) == expected


@pytest.mark.parametrize(
    ("outcome", "factor", "can_spill", "expected"),
    [
        ("incomplete", 2.0, True, "medium"),
        ("stopped", 2.0, True, "medium"),
        ("completed", 9.0, True, None),
        ("incomplete", 9.0, False, None),
        # where nothing tells the system, only what little else explains
        ("incomplete", 4.0, None, "low"),
        ("incomplete", 3.9, None, None),
    ],
)
def test_steps_that_became_slow(outcome: str, factor: float, can_spill: bool | None, expected: str | None) -> None:
    times = StepTimes(2.0, 2.0 * factor, 60, at(300))
    found = cause_of(attempt(outcome, step_times=times), can_spill)
    if expected is None:
        assert found.kind == ("none" if outcome == "completed" else "unknown")
        return
    assert (found.kind, found.resource, found.phase, found.step) == ("vram_spill", "vram", "training_step", 60)
    assert (found.confidence, found.place, found.signature) == (expected, at(300), None)


def test_an_oom_at_the_end_of_a_slow_run_is_the_verdict() -> None:
    slow: dict[str, Any] = {"step_times": StepTimes(2.0, 20.0, 60, at(300))}
    assert verdict(attempt("incomplete", ooms=(oom(90),), **slow), True)[0] == "gpu_oom"
    # one that was swallowed long before is not what the run suffers from
    assert verdict(attempt("incomplete", ooms=(oom(None, "quantize", caught=True),), **slow), True)[0] == "vram_spill"


@pytest.mark.parametrize(
    ("given", "step", "confidence"),
    [
        ({"has_header": False}, None, "medium"),
        ({"has_header": True}, 0, "high"),
        ({"has_header": False, "trained": True}, 0, "high"),
        ({"has_header": False, "stages": (stage("baseline_sampling", "baseline"),)}, 0, "high"),
        ({"has_header": False, "stages": (stage("setup"),)}, None, "medium"),
        ({"has_header": False, "traceback": None}, None, "medium"),
    ],
)
def test_a_preview_in_a_fragment_may_be_of_any_step(given: dict[str, Any], step: int | None, confidence: str) -> None:
    preview = oom(0, "baseline_sampling", **PLACED)
    found = cause_of(attempt(event=FATAL, ooms=(preview,), **{"traceback": TRACEBACK, **given}))
    assert (found.phase, found.step, found.confidence) == ("baseline_sampling", step, confidence)


def test_a_semaphore_that_finds_no_space_is_shared_memory(run: Analyse) -> None:
    fatal = (
        "Error running job: [Errno 28] No space left on device\nTraceback (most recent call last):\n"
        '  File "/a/jobs/process/BaseSDTrainProcess.py", line 1, in run\n    dataloader_iterator = iter(dataloader)\n'
        '  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in __init__\n'
        "    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device\n"
    )
    found = run(head(config()) + training(400, set(), until=20) + fatal).diagnosis
    assert (found.kind, found.resource, found.phase) == ("host_oom", "shm", "training_step")
    disk = fatal.replace("synchronize.py", "queues.py").replace("_multiprocessing.SemLock(", "ctx.Lock()")
    assert run(head(config()) + disk).diagnosis.kind == "not_memory"


def test_a_card_that_cannot_be_opened_is_full(run: Analyse) -> None:
    fatal = (
        "Error running job: CUDA error: out of memory\nTraceback (most recent call last):\n"
        '  File "/a/run.py", line 1, in main\n    job.run()\n'
        '  File "/v/lib/python3.12/site-packages/torch/cuda/__init__.py", line 412, in _lazy_init\n'
        "    torch._C._cuda_init()\ntorch.AcceleratorError: CUDA error: out of memory\n"
    )
    found = run(head(config()) + fatal).diagnosis
    assert (found.kind, found.resource) == ("gpu_oom", "vram")
    elsewhere = fatal.replace("_lazy_init", "synchronize").replace("_cuda_init()", "_cuda_synchronize()")
    assert run(head(config()) + elsewhere).diagnosis.resource is None


@pytest.mark.parametrize(
    ("free", "root", "room"), [("21.90", "D:\\a", True), ("1.90", "D:\\a", False), ("21.90", "/a", True)]
)
def test_a_card_with_room_was_not_what_ran_out(run: Analyse, free: str, root: str, room: bool) -> None:
    message = (
        f"CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.99 GiB of which {free} GiB "
        "is free. Of the allocated memory 512.10 MiB is allocated by PyTorch, and 3.50 MiB is reserved by PyTorch but "
        "unallocated."
    )
    windows = "\\" in root
    path = f"{root}\\jobs\\process\\BaseSDTrainProcess.py" if windows else f"{root}/jobs/process/BaseSDTrainProcess.py"
    fatal = (
        f"Error running job: {message}\nTraceback (most recent call last):\n"
        f'  File "{path}", line 1, in run\n    self.sd.load_model()\ntorch.OutOfMemoryError: {message}\n'
    )
    analysis = run(head(config()) + fatal)
    assert analysis.diagnosis.facts["memory.had_room"] is room
    factors = {factor.id for factor in analysis.diagnosis.factors}
    assert ("room_on_card" in factors) is room
    assert ("add_host_memory" in [item.id for item in analysis.suggestions]) is (room and windows)
    assert not (room and "use_larger_gpu" in [item.id for item in analysis.suggestions])
