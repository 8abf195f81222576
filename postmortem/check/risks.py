"""Which of the known risky combinations a job has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.check.phases import PREVIEWS, TRAINING, Phase, find
from postmortem.diagnosis.conditions import all_hold
from postmortem.knowledge.schema import FirstTry, Knowledge, Risk
from postmortem.model import Diagnosis


def facts_of(training: Diagnosis, weighed: Sequence[Phase], *, stable: bool, proven: bool) -> dict[str, Any]:
    """What conditions of risks may ask: the job's facts, and the forecast's likely sizes."""
    known = dict(training.facts)
    step, preview = find(weighed, TRAINING), find(weighed, *PREVIEWS)
    if step is not None:
        known["memory.training"] = step.need.likely
        known.update(
            {f"memory.{part.id}": part.likely for part in step.parts if part.id in ("weights", "text_encoder")}
        )
    if preview is not None:
        known["memory.preview"] = preview.need.likely
    known["check.stable"] = stable
    known["check.proven"] = proven
    return known


def risks(known: Mapping[str, Any], knowledge: Knowledge) -> list[Risk]:
    """The risks whose conditions hold, severe ones first; what a more telling one covers is left out."""
    found = [risk for risk in knowledge.risks if all_hold(risk.when, known)]
    covered = {name for risk in found for name in risk.instead_of}
    left = [risk for risk in found if risk.id not in covered]
    return sorted(left, key=lambda risk: risk.severity != "high")


def first_try(known: Mapping[str, Any], knowledge: Knowledge) -> FirstTry | None:
    """The guide's safe first try for the job's family."""
    return next((item for item in knowledge.first_tries if all_hold(item.when, known)), None)
