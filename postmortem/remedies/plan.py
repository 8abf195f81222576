"""Which fixes apply to this failure, in which order, and which popular ones cannot touch it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from postmortem.diagnosis.conditions import all_hold
from postmortem.knowledge.schema import Change, Knowledge, Remedy, Rule
from postmortem.model import Diagnosis, JobConfig, NotHelping, Rung, Suggestion
from postmortem.remedies.changes import work_out
from postmortem.remedies.numbers import with_numbers
from postmortem.vram import Estimate

TOOLKIT = "ai-toolkit"
_MEMORY = ("gpu_oom", "host_oom", "vram_spill")


class Plan(msgspec.Struct, frozen=True):
    """The fixes, best first, the popular ones that will not help, and the ladder of retries (empty without figures)."""

    suggestions: tuple[Suggestion, ...] = ()
    not_helping: tuple[NotHelping, ...] = ()
    ladder: tuple[Rung, ...] = ()


def plan(diagnosis: Diagnosis, config: JobConfig, knowledge: Knowledge, estimate: Estimate | None = None) -> Plan:
    """The fixes for `diagnosis`, with figures where `estimate` (the memory forecast of a config) gives any.

    Another trainer's run gets none: these are AI Toolkit's settings. Neither does a failure that is not
    memory, or whose phase the log does not tell.
    """
    if diagnosis.kind not in _MEMORY or diagnosis.trainer not in (TOOLKIT, None):
        return Plan()
    offers: list[tuple[int, str, Remedy, Rule]] = []
    useless: list[NotHelping] = []
    for remedy in knowledge.remedies:
        rule = _rule(remedy, diagnosis.facts)
        if rule is not None:
            offers.append((rule.rank, remedy.id, remedy, rule))
            continue
        for other in remedy.will_not_help:
            if all_hold(other.when, diagnosis.facts):
                useless.append(NotHelping(remedy.id, other.why))
                break
    offers.sort(key=lambda offer: offer[:2])
    found: list[Suggestion] = []
    wanted: dict[str, tuple[Change, ...]] = {}
    for _, _, remedy, rule in offers:
        wanted[remedy.id] = tuple(
            change for change in remedy.changes if all_hold(change.when, diagnosis.facts, unknown_ok=True)
        )
        edits = work_out(wanted[remedy.id], config)
        if remedy.changes and config.known and not edits:
            continue
        found.append(
            Suggestion(
                rank=len(found) + 1,
                id=remedy.id,
                changes=edits,
                why=rule.why,
                guide=remedy.guide,
                url=remedy.url,
                source=remedy.source,
                facts=diagnosis.facts,
            )
        )
    numbers = with_numbers(found, config, estimate or _no_estimate, knowledge, wanted)
    return Plan(numbers.suggestions, (*useless, *numbers.too_small), numbers.ladder)


def _no_estimate(config: JobConfig) -> None:
    return None


def _rule(remedy: Remedy, facts: Mapping[str, Any]) -> Rule | None:
    """The first offer that holds. `requires` must hold too; where no config is known, a rule may accept that."""
    for rule in remedy.offer:
        if not all_hold(rule.when, facts, unknown_ok=rule.unknown_ok):
            continue
        if all_hold(remedy.requires, facts, unknown_ok=rule.unknown_ok):
            return rule
    return None
