"""What is worked out beside the cause: silence, the backend, previews, how sure a second-hand verdict is."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis import diagnose
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Diagnosis, Frame, JobConfig, Pace, Stage, Traceback
from postmortem.text import LogText
from tests.conftest import Analyse
from tests.diagnosis.build import at, attempt, event, oom
from tests.simulate import config, finished, head, training

NONE = JobConfig({}, ())


def verdict(
    knowledge: Knowledge, outcome: str = "failed", *, trainer: str | None = "ai-toolkit", **given: Any
) -> Diagnosis:
    return diagnose(attempt(outcome, **given), NONE, knowledge, trainer)


@pytest.mark.parametrize(
    ("outcome", "end", "silent", "crashed"),
    [
        ("incomplete", None, True, False),
        ("failed", None, False, False),
        ("failed", event("crash"), True, True),
        ("failed", event("exit"), True, False),
        ("failed", event("error"), False, False),
        # a kill that nobody explains
        ("killed", event("kill", reason="sigkill"), True, False),
        ("killed", event("kill", reason="kernel_oom"), False, False),
        ("completed", None, False, False),
    ],
)
def test_an_end_that_nobody_explains(outcome: str, end: Any, silent: bool, crashed: bool, knowledge: Knowledge) -> None:
    facts = verdict(knowledge, outcome, event=end).facts
    assert (facts["run.silent"], facts["run.crashed"]) == (silent, crashed)


@pytest.mark.parametrize(
    ("signature", "backend"),
    [
        ("torch.oom", "cuda"),
        ("cuda.error", "cuda"),
        ("toolkit.abort", "cuda"),
        ("torch.hip_oom", "hip"),
        ("torch.mps_oom", "mps"),
        ("torch.xpu_oom", "xpu"),
        ("host.bad_alloc", None),
    ],
)
def test_whose_message_it_is(signature: str, backend: str | None, knowledge: Knowledge) -> None:
    fatal = event("oom", pattern=signature)
    found = verdict(knowledge, event=fatal, ooms=(oom(5, pattern=signature),)).facts
    assert found["run.backend"] == backend
    assert verdict(knowledge, "completed").facts["run.backend"] is None


@pytest.mark.parametrize(
    ("steps", "previews", "after"),
    [
        ([250], (250,), True),
        ([252], (250,), True),
        ([253], (250,), False),
        ([249], (250,), False),
        # the first failed step counts
        ([None, 251, 400], (100, 250), True),
        # … wherever the log prints it
        ([300, 251], (250,), True),
        ([], (250,), False),
    ],
)
def test_right_behind_a_preview(
    steps: list[int | None], previews: tuple[int, ...], after: bool, knowledge: Knowledge
) -> None:
    ooms = (oom(250, "mid_sampling", caught=True), *(oom(step, caught=True) for step in steps))
    found = verdict(knowledge, "completed_with_skips", ooms=ooms, sample_steps=previews, good_steps=400).facts
    assert found["run.after_preview"] is after


def fatal(**given: Any) -> dict[str, Any]:
    """An OOM in a training step whose traceback says so."""
    one = oom(5, placed=True, line=900, **given)
    frames = (
        Frame(at(901), LogText("run.py"), "main", LogText("job.run()")),
        Frame(at(903), LogText("x.py"), "f", LogText("a + b")),
    )
    return {
        "event": event("oom", pattern="torch.oom"),
        "ooms": (one,),
        "traceback": Traceback(at(901), frames, None),
        "end_frame": frames[0],
        "trained": True,
    }


@pytest.mark.parametrize(
    ("given", "trainer", "confidence"),
    [
        ({}, "ai-toolkit", "high"),
        # a class that is inferred, or words that another file has
        ({"good_steps": 50}, "ai-toolkit", "medium"),
        ({"trained": False}, "ai-toolkit", "medium"),
        ({"source": "other"}, "ai-toolkit", "medium"),
        # a message without its log
        ({"has_header": False}, None, "low"),
        ({"has_header": False}, "ai-toolkit", "high"),
        ({}, None, "high"),
    ],
)
def test_how_sure(given: dict[str, Any], trainer: str | None, confidence: str, knowledge: Knowledge) -> None:
    assert verdict(knowledge, trainer=trainer, **{**fatal(), **given}).confidence == confidence


def test_whoever_did_the_killing_is_sure_without_a_log(knowledge: Knowledge) -> None:
    for reason, confidence in (("kernel_oom", "high"), ("sigkill", "low")):
        found = verdict(knowledge, "killed", trainer=None, event=event("kill", reason=reason), has_header=False)
        assert (found.kind, found.confidence) == ("host_oom", confidence)


def test_what_conditions_are_told_of_the_end(knowledge: Knowledge) -> None:
    stages = (Stage(at(3), "baseline_sampling", "baseline", LogText("")),)
    skips = (oom(1, caught=True), oom(None, "quantize", caught=True))
    usual = fatal(sizes_mib={"allowed": 20.0})
    found = verdict(
        knowledge, **{**usual, "ooms": (*skips, *usual["ooms"]), "stages": stages, "pace": Pace(silent_s=200.0)}
    ).facts
    expected = {
        "failure.call": "job.run()",
        "failure.inner_call": "a + b",
        "failure.step": 5,
        "failure.class": "early_step",
        "memory.allowed": 20.0,
        "run.skips": 1,
        "run.swallowed": True,
        "run.baseline_seen": True,
        "run.baseline_done": True,
        "run.minutes_still": 3,
        "run.unproven_steps": False,
        "run.consequence": None,
    }
    assert {key: found[key] for key in expected} == expected
    plain = verdict(
        knowledge, "failed", event=event("consequence"), ooms=(oom(1, caught=True),), end_step=1, skips_confirmed=False
    ).facts
    assert plain["run.consequence"] is not None and plain["run.unproven_steps"] is True
    assert (plain["failure.call"], plain["failure.inner_call"], plain["run.minutes_still"]) == (None, None, None)
    assert (plain["run.swallowed"], plain["run.baseline_seen"], plain["run.baseline_done"]) == (False, False, False)
    assert verdict(knowledge, ooms=(), skips_confirmed=False).facts["run.unproven_steps"] is False


def test_validation_has_a_class_but_no_training_fix(knowledge: Knowledge) -> None:
    found = verdict(knowledge, **{**fatal(), "ooms": (oom(5, "validation", placed=True),)})
    assert (found.class_, found.facts["failure.class"]) == ("early_step", None)


PREVIEW = (
    "\rGenerating Samples:   0%|          | 0/2 [00:00<?, ?it/s]\n"
    "Error running job: CUDA out of memory. Tried to allocate 2.00 GiB.\nTraceback (most recent call last):\n"
    '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2732, in run\n    self.sample(self.step_num)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


INSIDE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ai-toolkit/toolkit/models/base_model.py", line 650, in generate_images\n'
    "    img = self.generate_single_image(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


@pytest.mark.parametrize(
    ("before", "headline", "offered"),
    [
        (head(config(train__steps=20)) + training(20, []) + finished(), "sampling_finished", False),
        # until mid-2026 the last preview came before the last save
        (head(config(train__steps=20)) + training(20, []), "sampling_last", True),
        (
            head(config(train__steps=20)) + training(20, []) + finished().replace("mugs.safe", "mugs_000000010.safe"),
            "sampling_last",
            True,
        ),
        (head(config()) + training(400, [], until=20), "sampling", True),
        (head(config()) + training(400, {7}, until=20), "sampling_and_steps", True),
        (head(config()), "sampling_baseline", True),
        # a traceback alone does not tell which preview it was
        ("", "sampling_unplaced", True),
    ],
)
def test_which_preview_failed(before: str, headline: str, offered: bool, run: Analyse) -> None:
    found = run(before + PREVIEW if before else INSIDE)
    assert found.diagnosis.headline == f"gpu_oom.{headline}"
    ids = {item.id for item in found.suggestions}
    assert ("disable_sampling" in ids) is offered
    assert ("skip_first_sample" in ids) is (headline == "sampling_baseline")


# jobs/process/BaseSDTrainProcess.py as it was in January 2026
CALL = '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line {}, in run\n    self.sample(self.step_num)\n'


@pytest.mark.parametrize(
    ("line", "phase", "headline"),
    [
        (2026, "baseline_sampling", "sampling_baseline"),
        (2269, "mid_sampling", "sampling"),
        (2352, "mid_sampling", "sampling"),
        # no version had the call there
        (7, "baseline_sampling", "sampling_unplaced"),
    ],
)
def test_the_line_of_the_call_tells_which_preview(line: int, phase: str, headline: str, run: Analyse) -> None:
    """AI Toolkit asks for previews before the loop, in it and behind it, by the same words."""
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    found = run(f"Traceback (most recent call last):\n{CALL.format(line)}{error}")
    assert (found.diagnosis.phase, found.diagnosis.class_) == (phase, "sampling")
    assert found.diagnosis.headline == f"gpu_oom.{headline}"
    assert {one.phase for one in found.attempt.ooms} == {phase}
    assert ("skip_first_sample" in {item.id for item in found.suggestions}) is (headline == "sampling_baseline")
