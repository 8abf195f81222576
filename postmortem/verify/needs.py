"""Which claims may depend on what: on files beside the log, and on the version of tool and patterns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_BY_SETTINGS = (
    *("config", "settings", "remedies", "will_not_help", "forecast", "forecast_missing", "ladder", "card_needed_gib"),
    *("warnings", "suspects", "suspects_fit", "skips", "regressions", "capture", "buckets"),
    *("failure.class", "failure.confidence", "failure.headline", "failure.factors"),
    *("run.job_name", "run.arch", "run.family", "run.total_steps"),
)
_BY_STEPS = (
    *(
        "oom_events",
        "skips",
        "suspects",
        "suspects_fit",
        "buckets",
        "warnings",
        "remedies",
        "will_not_help",
        "timeline",
    ),
    *("failure.step", "failure.class", "failure.confidence", "failure.headline", "failure.factors"),
    *("run.last_completed_step", "run.outcome", "ladder", "forecast"),
)
_BY_DATABASE = (*(*_BY_SETTINGS, *_BY_STEPS, "failure", "memory", "ledger", "forecast", "run.trainer"),)
DEPENDS: dict[str, tuple[str, ...]] = {
    "config": _BY_SETTINGS,
    "dataset": _BY_SETTINGS,
    "loss_log": _BY_STEPS,
    "folder": (
        "run.safe_step",
        "run.safe_checkpoint",
        "run.safe_source",
        "warnings",
        "input.attempts",
        "input.attempt",
    ),
    "database": _BY_DATABASE,
}
"""Claims (by the start of their path) that may come out otherwise without a file that the report was made with."""

NO_CLAIMS = (*("schema_version", "tool", "input.source", "input.options", "input.beside"),)
"""What is no claim about the run: how the report was made, and what its input was called."""

_FACTS = ("input.bytes", "input.lines", "memory", "ledger")
"""What any version reads from the same log alike, where both read it at all."""


def missing(sent: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What the report was made with and this analysis was not; both are `input.beside`."""
    lacks = [name for name in ("loss_log", "folder") if sent.get(name) is True and not found.get(name)]
    if sent.get("database") is not None and found.get("database") is None:
        lacks.append("database")
    for key, name in (("configs", "config"), ("datasets", "dataset")):
        if _count(sent.get(key)) > _count(found.get(key)):
            lacks.append(name)
    return lacks


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def under(path: str, prefixes: Iterable[str]) -> bool:
    """Whether `path` is one of `prefixes` or lies below one."""
    return any(path == prefix or path.startswith((prefix + ".", prefix + "[")) for prefix in prefixes)


def needed(path: str, lacking: Iterable[str]) -> str | None:
    """What of `lacking` the claim at `path` may depend on."""
    source = path.startswith("failure.evidence[") and path.endswith(".source")
    for name in lacking:
        if under(path, DEPENDS[name]) or (name == "folder" and source):
            return name
    return None


def by_version(path: str, sent: Any, found: Any) -> bool:
    """Whether another version of the tool may say something else at `path`: what stands in the log it may not."""
    known = isinstance(sent, (int, float)) and isinstance(found, (int, float))
    return not (known and under(path, _FACTS))
