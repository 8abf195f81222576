"""Whether a report says the truth of a generated run; the differences in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis
from postmortem.report import build, json_
from tests.generate import MEMORY_KINDS, Case, Truth


def as_json(analysis: Analysis, knowledge: Knowledge) -> dict[str, Any]:
    """The report as a script gets it."""
    report: dict[str, Any] = json.loads(json_.render(build(analysis, knowledge)))
    return report


def differences(case: Case, report: dict[str, Any]) -> list[str]:
    """What the report says otherwise than the truth of `case`."""
    return [
        f"{what}: got {got!r}, true {want!r}" for what, ok, got, want in _checks(case, case.truth, report) if not ok
    ]


def _checks(case: Case, truth: Truth, report: dict[str, Any]) -> Iterator[tuple[str, bool, Any, Any]]:
    failure, run = report["failure"], report["run"]
    yield "kind", failure["kind"] in truth.kind, failure["kind"], truth.kind
    yield "class", failure["class"] in truth.class_, failure["class"], truth.class_
    yield "outcome", run["outcome"] in truth.outcome, run["outcome"], truth.outcome
    for key in ("phase", "resource", "step"):
        allowed = getattr(truth, key)
        yield key, allowed is None or failure[key] in allowed, failure[key], allowed
    if truth.oom_steps is not None:
        got = tuple(event["step"] for event in report["oom_events"] if event["phase"] == "training_step")
        yield "oom_steps", got == truth.oom_steps, got, truth.oom_steps
    done = run["last_completed_step"]
    yield "last_completed_step", done == truth.last_completed, done, truth.last_completed
    for key, size in truth.sizes.items():
        got = report["memory"][key]
        yield key, got is not None and abs(got - size) <= max(0.02, 0.0001 * size), got, size
    if truth.kind[0] in MEMORY_KINDS and not truth.sizes and truth.kind[0] != "gpu_oom":
        yield "no size", report["memory"]["gpu_total"] is None, report["memory"]["gpu_total"], None
    named = f"# Running job: {case.plan.name}" in case.log
    yield "job_name", run["job_name"] == (case.plan.name if named else None), run["job_name"], case.plan.name
    yield "remedies", bool(report["remedies"]) == (failure["kind"] in MEMORY_KINDS), len(report["remedies"]), truth.kind
