"""The small language in which the knowledge base says when something applies. See docs/knowledge.md.

Three-valued: a comparison on something that the log does not say is unknown (None), neither true nor false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_COMPARISON = re.compile(r"^([\w.\[\]-]+)\s*(!=|>=|<=|=|>|<|\bnot in\b|\bin\b|\bcontains\b)\s*([^=<>\s].*)$")
_KNOWN = re.compile(r"^(known|unknown)\s+([\w.\[\]-]+)$")


class ConditionError(ValueError):
    """A condition is not in the language; the message quotes it."""


@lru_cache(maxsize=4096)
def parse(condition: str) -> tuple[str, str, Any]:
    """(path, operator, value). Raises ConditionError."""
    found = _KNOWN.match(condition.strip())
    if found:
        return found[2], found[1], None
    found = _COMPARISON.match(condition.strip())
    if not found:
        raise ConditionError(f"not a condition: {condition!r}")
    path, operator, value = found.groups()
    if operator in ("in", "not in"):
        inner = value.strip()
        if not (inner.startswith("[") and inner.endswith("]")):
            raise ConditionError(f"`in` takes a [list]: {condition!r}")
        return path, operator, tuple(_literal(part) for part in inner[1:-1].split(","))
    return path, operator, _literal(value)


def _literal(text: str) -> Any:
    text = text.strip().strip("'\"")
    if text in ("true", "false"):
        return text == "true"
    if text == "null":
        return None
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def holds(condition: str, facts: Mapping[str, Any]) -> bool | None:
    """Whether `condition` holds on `facts`; None when a value that it needs is not known."""
    path, operator, value = parse(condition)
    have = facts.get(path)
    if operator == "=" and have is not None and value is not None and (value.__class__ is not str or value[:1] != "@"):
        return bool(have == value)  # most of them, and hundreds are asked of each run
    if isinstance(value, str) and value.startswith("@"):
        value = facts.get(value[1:])
        if value is None:
            return None
    if value is None:
        # `= null` and `unknown`, or `!= null` and `known`
        return (have is None) == (operator in ("=", "unknown"))
    if have is None:
        # the verdict is ours: what it leaves open is known to be open, and equal to nothing
        return operator in ("!=", "not in") if path.startswith("failure.") else None
    if operator == "contains":
        return str(value) in str(have)
    if operator == "in":
        return have in value
    if operator == "not in":
        return have not in value
    if operator == "=":
        return bool(have == value)
    if operator == "!=":
        return bool(have != value)
    if isinstance(have, bool) or not isinstance(have, (int, float)) or not isinstance(value, (int, float)):
        return None
    return {">": have > value, ">=": have >= value, "<": have < value, "<=": have <= value}[operator]


def all_hold(conditions: Iterable[str], facts: Mapping[str, Any], *, unknown_ok: bool = False) -> bool:
    """Whether all conditions hold; an unknown one counts as `unknown_ok` says."""
    for condition in conditions:
        result = holds(condition, facts)
        if result is False or (result is None and not unknown_ok):
            return False
    return True
