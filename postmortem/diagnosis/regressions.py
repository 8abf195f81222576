"""Which known regressions fit a failure, and whether the log's version is surely, perhaps or not one of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmortem.diagnosis import conditions
from postmortem.diagnosis.dating import NEWEST, TOOLKIT, bounds, release
from postmortem.knowledge.history import History, Range
from postmortem.knowledge.schema import Knowledge, Regression
from postmortem.model import Dated, RegressionFound

_MEMORY = ("gpu_oom", "host_oom", "vram_spill")


def fitting(
    facts: Mapping[str, Any], dated: Dated | None, torch: Dated | None, knowledge: Knowledge, history: History
) -> tuple[RegressionFound, ...]:
    """The regressions whose symptoms hold and whose versions the dating does not exclude; the sure ones first."""
    if facts.get("failure.kind") not in _MEMORY or facts.get("run.trainer") not in (TOOLKIT, None):
        return ()
    found: list[RegressionFound] = []
    for entry in knowledge.regressions:
        if not any(conditions.all_hold(symptoms, facts) for symptoms in entry.symptoms):
            continue
        ours = dated if entry.program == TOOLKIT else torch
        bad = _range(entry, history) if ours is not None and ours.span is not None else None
        if bad is not None and ours is not None and ours.span is not None:
            start, end = ours.span
            if max(start, bad[0]) >= min(end, bad[1]):
                continue
            inside = bad[0] <= start and end <= bad[1]
        else:
            inside = False
        found.append(
            RegressionFound(
                id=entry.id,
                program=entry.program,
                inside=inside,
                from_=entry.from_,
                until=entry.until,
                from_commit=entry.from_commit,
                until_commit=entry.until_commit,
                source=entry.source,
                url=entry.url,
            )
        )
    return tuple(sorted(found, key=lambda item: not item.inside))


def regression_facts(found: tuple[RegressionFound, ...]) -> dict[str, Any]:
    """`regression.*`, on which the remedy's rules and texts stand: those of the first that fits."""
    if not found:
        return {}
    first = found[0]
    facts: dict[str, Any] = {
        "regression.standing": "inside" if first.inside else "possible",
        "regression.id": first.id,
        "regression.program": first.program,
    }
    facts.update({f"regression.{part}": first.id for part in ("what", "when", "do")})
    return facts


def _range(entry: Regression, history: History) -> Range:
    if entry.program == TOOLKIT:
        return bounds(entry.from_, entry.from_commit, entry.until, entry.until_commit, history)
    return release(entry.from_) if entry.from_ else 0, release(entry.until) if entry.until else NEWEST
