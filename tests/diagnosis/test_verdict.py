"""What is worked out beside the cause: silence, the backend, previews, how sure a second-hand verdict is."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis import diagnose
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Diagnosis, Frame, JobConfig, Pace, Stage, Traceback, Value
from postmortem.text import LogText
from tests.conftest import Analyse
from tests.diagnosis.build import at, attempt, event, oom
from tests.simulate import buckets, config, finished, head, training

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
    stages = (
        Stage(at(2), "quantize", "quantize", LogText("")),
        Stage(at(3), "baseline_sampling", "baseline", LogText("")),
    )
    skips = (oom(1, caught=True), oom(None, "quantize", caught=True))
    usual = fatal(sizes_mib={"allowed": 20.0})
    found = verdict(
        knowledge,
        **{**usual, "ooms": (*skips, *usual["ooms"]), "stages": stages, "pace": Pace(silent_s=7200.0), "good_steps": 4},
        resumed=True,
    ).facts
    expected = {
        "failure.call": "job.run()",
        "failure.inner_call": "a + b",
        "failure.functions": "main f",
        "failure.signature": "torch.oom",
        "failure.step": 5,
        "failure.class": "early_step",
        "memory.allowed": 20.0,
        "run.trainer": "ai-toolkit",
        "run.outcome": "failed",
        "run.good_steps": 4,
        "run.trained": True,
        "run.resumed": True,
        "run.bucket_fits": False,
        "run.quantizing_seen": True,
        "run.last_event": "baseline",
        "run.skips": 1,
        "run.swallowed": True,
        "run.baseline_seen": True,
        "run.baseline_done": True,
        "run.minutes_still": 120,
        "run.unproven_steps": False,
        "run.consequence": None,
    }
    assert {key: found[key] for key in expected} == expected
    plain = verdict(
        knowledge, "failed", event=event("consequence"), ooms=(oom(1, caught=True),), end_step=1, skips_confirmed=False
    ).facts
    assert plain["run.consequence"] is not None and plain["run.unproven_steps"] is True
    assert (plain["failure.call"], plain["failure.inner_call"], plain["run.minutes_still"]) == (None, None, None)
    assert (plain["failure.functions"], plain["run.quantizing_seen"]) == (None, False)
    assert (plain["run.swallowed"], plain["run.baseline_seen"], plain["run.baseline_done"]) == (False, False, False)
    assert verdict(knowledge, ooms=(), skips_confirmed=False).facts["run.unproven_steps"] is False


@pytest.mark.parametrize(
    ("header", "trained", "events", "seen", "done", "unplaced"),
    [
        (True, False, [], False, False, False),
        (True, True, [], False, False, False),
        (True, False, ["bar_sampling"], True, False, False),
        (True, True, ["bar_sampling"], True, True, False),
        # an excerpt: the bar of a preview is of any preview, the line that announces those before training is not
        (False, False, ["bar_sampling"], False, False, True),
        (False, False, ["baseline", "bar_sampling"], True, False, False),
        (False, True, ["bar_sampling"], False, False, False),
        (False, False, [], False, False, True),
    ],
)
def test_previews_before_training(
    header: bool, trained: bool, events: list[str], seen: bool, done: bool, unplaced: bool, knowledge: Knowledge
) -> None:
    stages = (
        Stage(at(2), "quantize", "quantize", LogText("")),
        *(Stage(at(3), "baseline_sampling", name, LogText("")) for name in events),
    )
    one = oom(None, "baseline_sampling", line=900)
    given = {**fatal(), "ooms": (one,), "stages": stages, "has_header": header, "trained": trained}
    facts = verdict(knowledge, **given).facts
    told = (facts["run.baseline_seen"], facts["run.baseline_done"], facts["run.preview_unplaced"])
    assert told == (seen, done, unplaced)
    # of a preview only
    other = verdict(knowledge, **{**given, "ooms": (oom(None, "cache_latents", line=900),)})
    assert other.facts["run.preview_unplaced"] is False


@pytest.mark.parametrize(
    ("events", "parked"),
    [
        ([], False),
        (["transformer_parked"], True),
        (["transformer_to_gpu", "transformer_parked", "status"], True),
        (["transformer_parked", "transformer_to_gpu"], False),
        (["status"], False),
    ],
)
def test_where_the_transformer_waits(events: list[str], parked: bool, knowledge: Knowledge) -> None:
    stages = tuple(Stage(at(3 + n), "model_load", name, LogText("")) for n, name in enumerate(events))
    found = verdict(knowledge, **{**fatal(), "stages": stages}).facts
    assert (found["run.parked"], found["run.quantizing_seen"]) == (parked, False)


def test_what_a_diagnosis_says_beside_its_facts(knowledge: Knowledge) -> None:
    stages = (Stage(at(4), "training_step", "status", LogText("")), Stage(at(950), "saving", "status", LogText("")))
    bar: dict[str, Any] = {"main_bar_place": at(890), "main_bar_text": LogText("mugs: 12%")}
    job = JobConfig(
        {"model.arch": Value("wan21", "log"), "train.gradient_checkpointing": Value(False, "log")}, ("log",)
    )
    died = attempt("failed", **{**fatal(device=1), "stages": stages, **bar})
    found = diagnose(died, job, knowledge, "ai-toolkit")
    assert (found.signature, found.device, found.arch, found.outcome) == ("torch.oom", 1, "wan21", "failed")
    assert found.family is not None and "Wan" in found.family
    assert [(one.line, one.what) for one in found.evidence] == [
        (4, "phase"),
        (890, "bar"),
        (900, "oom"),
        (901, "frame"),
    ]
    assert (found.resource, found.step, found.suspects) == ("vram", 5, ())
    told = ("family", "arch", "config_known", "unified")
    assert [found.facts[f"run.{name}"] for name in told] == ["wan21", "wan21", True, False]
    assert found.facts["failure.resource"] == "vram"
    # a family of videos, where nothing says how many frames
    assert found.facts["job.video"] is True
    assert found.factors and all(factor.values is found.facts for factor in found.factors)
    assert "config" not in found.missing
    ended = verdict(knowledge, "completed", **bar)
    assert (ended.kind, ended.evidence, ended.device, ended.family, ended.arch) == ("none", (), None, None, None)


def test_whose_run_it_was(knowledge: Knowledge) -> None:
    """Another trainer's, or a program's that trains nothing."""
    for trainer, notice, config_missing in (
        ("ai-toolkit", None, True),
        (None, None, True),
        ("kohya", "foreign_trainer", False),
        ("comfyui", "not_a_training_run", False),
    ):
        found = verdict(knowledge, trainer=trainer, **fatal())
        told = {one.id for one in found.warnings} & {"foreign_trainer", "not_a_training_run"}
        assert told == ({notice} if notice else set())
        assert ("config" in found.missing) is config_missing
        assert (found.trainer, found.facts["run.trainer"]) == (trainer, trainer)


def test_only_memory_has_a_class(knowledge: Knowledge) -> None:
    killed = verdict(knowledge, "killed", event=event("kill", reason="kernel_oom"), end_phase="cache_latents")
    assert (killed.kind, killed.class_) == ("host_oom", "caching")
    other = verdict(knowledge, event=event("error"), end_phase="training_step")
    assert (other.kind, other.class_, other.confidence) == ("not_memory", None, "high")


def test_whether_the_skips_fit_their_bucket_is_a_fact(run: Analyse) -> None:
    table = buckets({"512x512": 40, "768x768": 30, "1024x1024": 8})
    skipped = {3, 17, 20, 38, 44, 52, 61, 77, 80, 93}
    found = run(head(config()) + table + training(100, skipped) + finished()).diagnosis
    assert found.skips is not None
    assert found.facts["run.bucket_fits"] is found.skips.fits is True


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
        # neither a traceback alone nor the bar of a preview tells which preview it was
        ("", "sampling_unplaced", True),
        ("\rGenerating Samples:   0%|          | 0/2 [00:00<?, ?it/s]\n", "sampling_unplaced", True),
        ("Generating baseline samples before training\n", "sampling_baseline", True),
    ],
)
def test_which_preview_failed(before: str, headline: str, offered: bool, run: Analyse) -> None:
    found = run(before + (PREVIEW if "Running" in before or "baseline" in before else INSIDE))
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
    trace = f"Traceback (most recent call last):\n{CALL.format(line)}{error}"
    found = run(trace)
    assert (found.diagnosis.phase, found.diagnosis.class_) == (phase, "sampling")
    assert found.diagnosis.headline == f"gpu_oom.{headline}"
    assert {one.phase for one in found.attempt.ooms} == {phase}
    barred = run(f"\rGenerating Samples:   0%|          | 0/2 [00:00<?, ?it/s]\n{trace}")
    assert (barred.diagnosis.phase, barred.diagnosis.headline) == (phase, f"gpu_oom.{headline}")
    assert ("skip_first_sample" in {item.id for item in found.suggestions}) is (headline == "sampling_baseline")
