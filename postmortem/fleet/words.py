"""The table's values and the groups in words, for every form in which people read them."""

from __future__ import annotations

from math import fsum
from typing import Any

from postmortem.fleet.facts import Fact
from postmortem.fleet.fingerprint import SEVERAL, SHARED
from postmortem.fleet.groups import FixTotal, Group
from postmortem.fleet.row import MEMORY, Row
from postmortem.report.texts import Texts
from postmortem.text import printable

MAX_FAMILIES = 4
_PIXELS = ("max_resolution", "preview_side")
_TITLED = ("class", "kind", "phase")
_TEXTS = {
    "outcome": ("word.outcome",),
    "resource": ("word.resource",),
    # a run without an explanation has how it ended as its cause: a reason, or no more than its outcome
    "cause": ("fleet.cause", "fleet.reason", "word.outcome"),
    "exception": ("fleet.reason",),
}
"""Where a column's words stand, the first that is there."""
_SAID = (None, "environment", "refused", "incomplete", "failed")
"""Causes that add nothing to what failed."""
LEAST_HOURS = 0.005
"""What rounds to no hundredth of an hour is not worth a line."""


def count(key: str, number: int, texts: Texts, **values: Any) -> str:
    """The text of `key` for so many."""
    return texts(f"{key}.{'one' if number == 1 else 'many'}", {"count": number, **values})


def column(name: str, texts: Texts) -> str:
    """A column's name for people."""
    return texts(f"fleet.column.{name}", default=name)


def value(name: str, given: Any, texts: Texts) -> str:
    """A cell of column `name` as people read it; empty where the log does not say."""
    if given is None:
        return ""
    if isinstance(given, bool):
        return texts("fleet.switched_on" if given else "fleet.switched_off")
    if name == "first_fix":
        return fix_name(str(given), texts)
    if name == "card_gib":
        return texts("fleet.value.card", {"value": given})
    if name in _PIXELS:
        return texts("fleet.value.pixels", {"value": given})
    keys = [f"{key}.{given}" for key in _TEXTS.get(name, ())] or [f"fleet.value.{name}.{given}"]
    if name in _TITLED:
        keys = [f"{name}.{given}.title"]
    return next((texts(key) for key in keys if texts.has(key)), printable(str(given)))


def verdict(row: Row, texts: Texts) -> str:
    """What became of a run, in two or three words: its class, else its kind or its outcome."""
    if row.kind == "host_oom":
        return texts("fleet.short.host_oom")
    if row.class_ is not None:
        return texts(f"fleet.short.{row.class_}", default=row.class_)
    if row.kind == "none" or (row.kind == "unknown" and row.outcome is not None):
        return value("outcome", row.outcome, texts)
    if row.kind == "not_memory" and row.exception is not None:
        return value("exception", row.exception, texts)
    return texts(f"fleet.short.{row.kind}", default=row.kind) if row.kind is not None else ""


def title(group: Group, texts: Texts) -> str:
    """A group in a few words: what failed, and what brought it about."""
    what = _what(group, texts)
    if group.trainer is not None:
        what = texts("fleet.other_trainer", {"trainer": group.trainer, "what": what})
    if group.cause in _SAID:
        return what
    return texts("fleet.group_title", {"what": what, "cause": value("cause", group.cause, texts)})


def _what(group: Group, texts: Texts) -> str:
    if group.kind == "host_oom":
        loading = group.class_ == "startup" and group.resource in SHARED
        phase = texts("fleet.short.startup") if loading else value("phase", group.phase, texts)
        return f"{value('kind', group.kind, texts)}: {value('resource', group.resource, texts)}, {phase}"
    if group.class_ is not None:
        what = value("class", group.class_, texts)
        # of one class of phases the groups are several, and their titles must tell them apart
        several = group.class_ in SEVERAL and group.phase is not None
        return f"{what}: {value('phase', group.phase, texts)}" if several else what
    if group.kind == "not_memory" and group.exception is not None:
        error = value("exception", group.exception, texts)
        return texts("fleet.error_at", {"error": error, "place": group.place}) if group.place else error
    if group.kind == "unknown":
        key = "fleet.unclear" if group.cause == "incomplete" else "fleet.unclear_failed"
        return f"{texts(key)}: {value('phase', group.phase, texts)}"
    return value("kind", group.kind, texts)


def fix_name(fix: str | None, texts: Texts) -> str:
    """A fix in two or three words."""
    if fix is None:
        return ""
    own, name = f"fleet.fix_name.{fix}", f"remedy.{fix}.name"
    return texts(own) if texts.has(own) else texts(name, default=fix)


def fix_title(fix: str | None, texts: Texts) -> str:
    """A fix as an instruction."""
    return texts(f"remedy.{fix}.title", default=fix) if fix is not None else ""


def setting(item: Fact, texts: Texts) -> str:
    """A setting with its value, or with its side: ``batch size 2 or more``."""
    shown = value(item.column, item.value, texts)
    if item.relation != "=":
        shown = texts("fleet.at_least" if item.relation == ">=" else "fleet.at_most", {"value": shown})
    return texts("fleet.setting", {"column": column(item.column, texts), "value": shown})


def fact(item: Fact, texts: Texts) -> str:
    """What a group shares, with its counts."""
    values = {"runs": item.runs, "of": item.of, "others": item.others, "others_of": item.others_of}
    return texts("fleet.fact", {"setting": setting(item, texts), **values})


def families(group: Group, texts: Texts) -> str:
    """The models of a group, most runs first."""
    names = ", ".join(group.families[:MAX_FAMILIES])
    more = len(group.families) - MAX_FAMILIES
    return texts("fleet.more_families", {"names": names, "count": more}) if more > 0 else names


def hours(group: Group | FixTotal, texts: Texts) -> str:
    """The GPU hours lost, and of how many runs that is known; empty where no log tells, or it is next to nothing."""
    if group.hours is None or group.hours < LEAST_HOURS:
        return ""
    shown = amount(group.hours)
    if group.timed < group.runs:
        return texts("fleet.hours_some", {"hours": shown, "timed": group.timed})
    return texts("fleet.hours", {"hours": shown})


def amount(hours: float) -> str:
    """Hours with the digits that they deserve."""
    if hours == 0:
        return "0"
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 0.1 else f"{hours:.2f}"


def followed(one: Group | FixTotal, texts: Texts) -> str:
    """What became of those who took the fix."""
    if one.tried == 1:
        return texts("fleet.followed.passed" if one.helped else "fleet.followed.stuck")
    return texts("fleet.followed.many", {"count": one.tried, "helped": one.helped}) if one.tried else ""


def totals(rows: list[Row], texts: Texts) -> str:
    """How many runs there are and what became of them, in one line."""
    failed = sum(row.kind in MEMORY for row in rows)
    parts = [count("fleet.runs", len(rows), texts)]
    for key, number in (
        ("failed", failed),
        ("other", sum(row.kind == "not_memory" for row in rows)),
        ("unclear", sum(row.kind == "unknown" for row in rows)),
        ("errors", sum(row.status == "error" for row in rows)),
    ):
        if number or key == "failed":
            parts.append(texts(f"fleet.total.{key}.{'one' if number == 1 else 'many'}", {"count": number}))
    lost = [row.hours_lost for row in rows if row.hours_lost is not None and row.duplicate_of is None]
    if fsum(lost) >= LEAST_HOURS:
        failures = sum(row.fingerprint is not None and row.duplicate_of is None for row in rows)
        key = "fleet.total.hours" if len(lost) == failures else "fleet.hours_some"
        parts.append(texts(key, {"hours": amount(fsum(lost)), "timed": len(lost)}))
    return ", ".join(parts) + "."
