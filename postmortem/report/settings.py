"""The handful of settings that a reader of a memory report wants to see, with where each comes from."""

from __future__ import annotations

import re
from typing import Any

from postmortem.knowledge.schema import Knowledge
from postmortem.model import JobConfig, Value
from postmortem.pipeline import Analysis

MAX_ROWS = 12
Row = tuple[str, Any, str, int | None, bool]


def that_matter(analysis: Analysis, knowledge: Knowledge) -> list[Row]:
    """Rows of (path, value, source, line, touched by the first fix), those of the first fix on top."""
    config = analysis.config
    if not config.known:
        return []
    touched = {change.path for item in analysis.suggestions[:1] for change in item.changes}
    rows: list[Row] = []
    on_the_card = analysis.diagnosis.kind in ("gpu_oom", "vram_spill")
    for setting in knowledge.settings:
        if not setting.shown or not on_the_card:
            continue
        for path, value in _found(setting.path, config):
            rows.append((path, value.value, value.source, value.line, _touches(path, touched)))
    shown = {row[0] for row in rows}
    for path in sorted(touched if on_the_card else touched | _later(analysis)):
        changed = config.values.get(path)
        if path not in shown and changed is not None and not any(_touches(row[0], {path}) for row in rows):
            rows.append((path, changed.value, changed.source, changed.line, path in touched))
    later = _later(analysis)
    rows.sort(key=lambda row: (not row[4], not _touches(row[0], later)))
    return rows[:MAX_ROWS]


def defaults_of(config: JobConfig, knowledge: Knowledge) -> dict[str, Any]:
    """What AI Toolkit would take at each path of `config` that the knowledge base knows, were it not given."""
    settings = {setting.path: setting for setting in knowledge.settings}
    found: dict[str, Any] = {}
    for path, value in config.values.items():
        setting = settings.get(re.sub(r"\[\d+\]", "[]", path))
        if value.source == "default":
            found[path] = value.value
        elif setting is not None:
            index = re.search(r"\[\d+\]", path)
            at = (setting.follows or "").replace("[]", index[0] if index else "[]", 1)
            followed = config.values.get(at)
            usual = followed.value if followed is not None else setting.default
            found[path] = [usual] if setting.type == "int_list" and isinstance(usual, int) else usual
    return found


def _later(analysis: Analysis) -> set[str]:
    """Paths that the fixes after the first one change."""
    return {change.path for item in analysis.suggestions[1:] for change in item.changes}


def _touches(path: str, touched: set[str]) -> bool:
    return path in touched or ("[]" in path and any(re.sub(r"\[\d+\]", "[]", item) == path for item in touched))


def _found(pattern: str, config: JobConfig) -> list[tuple[str, Value]]:
    """The values at a setting's path; the same value in every dataset is one row."""
    if "[]" not in pattern:
        value = config.values.get(pattern)
        return [(pattern, value)] if value is not None and value.value is not None else []
    head, tail = pattern.split("[]", 1)
    expression = re.compile(re.escape(head) + r"\[\d+\]" + re.escape(tail))
    found = [
        (path, value) for path, value in config.values.items() if expression.fullmatch(path) and value.value is not None
    ]
    if len(found) > 1 and all(value.value == found[0][1].value for _, value in found):
        return [(pattern, found[0][1])]
    return found[:4]
