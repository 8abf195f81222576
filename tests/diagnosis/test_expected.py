"""Before a run: what a failure in a phase would mean."""

from __future__ import annotations

import pytest

from postmortem.diagnosis.expected import expected
from postmortem.knowledge.load import load
from postmortem.model import JobConfig, Value
from tests.diagnosis.build import bucket
from tests.vram.conftest import job

BASE = load(cache=False)


@pytest.mark.parametrize(
    ("phase", "class_"),
    [
        ("model_load", "startup"),
        ("quantize", "startup"),
        ("text_encoder_load", "startup"),
        ("cache_latents", "caching"),
        ("baseline_sampling", "sampling"),
        ("mid_sampling", "sampling"),
        ("training_step", "early_step"),
        ("unknown", None),
    ],
)
def test_a_run_that_has_not_proven_anything(phase: str, class_: str | None) -> None:
    found = expected(
        job(BASE, "zimage", train__batch_size=4), phase, BASE, (bucket("512x512", 3), bucket("768x768", 2))
    )
    assert (found.kind, found.resource, found.phase, found.class_) == ("gpu_oom", "vram", phase, class_)
    assert (found.arch, found.trainer, found.confidence, found.outcome) == ("zimage", "ai-toolkit", "low", "incomplete")
    assert found.family is not None
    assert (found.step, found.signature, found.device, found.headline) == (None, None, None, "")
    assert (found.evidence, found.factors, found.memory_mib, found.headline_values) == ((), (), {}, {})
    told = {
        "failure.kind": "gpu_oom",
        "failure.resource": "vram",
        "failure.phase": phase,
        "failure.class": class_,
        "run.trainer": "ai-toolkit",
        "run.config_known": True,
        "run.arch": "zimage",
        "train.batch_size": 4,
        "job.batch_size": 4,
        "job.shapes": 2,
    }
    assert {key: found.facts[key] for key in told} == told


def test_what_is_known_of_a_family_is_told() -> None:
    wan = next(family for family in BASE.families if family.media == "video" and not family.edit)
    given = JobConfig({"model.arch": Value(wan.arch[0], "log")}, ("log",))
    found = expected(given, "training_step", BASE)
    assert (found.family, found.arch) == (wan.name, wan.arch[0])
    assert (found.facts["run.family"], found.facts["run.media"], found.facts["job.video"]) == (wan.id, "video", True)


def test_a_family_that_nobody_knows() -> None:
    found = expected(JobConfig({}, ()), "training_step", BASE)
    assert (found.family, found.arch, found.facts["run.config_known"]) == (None, None, False)
