"""Two reports, key by key: the one that was sent, and the one that the log gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

MAX_ITEMS = 20_000
"""Items of one list that are compared one by one; no report has as many."""
ABSENT = "\x00absent"
"""Stands for a key that one side does not have."""
_LABEL = re.compile(r"(?:<|&lt;)([a-z][a-z0-9-]{0,30})-(\d{1,9})(?:>|&gt;)")
_SIGNS = re.compile(r"(<|&lt;)([a-z][a-z0-9-]{0,30})-\d{1,9}(>|&gt;)")
_NUMBERLESS = r"\1\2\3"
_IDENTITY = ("id", "path", "bucket", "line", "what", "event", "step", "phase")
_RELATIVE = 1e-9
"""Floats come out alike on every machine but for their last digit."""


class Pair(msgspec.Struct, frozen=True):
    """What both sides say at one path; `ABSENT` where a side has no such key or item."""

    path: str
    sent: Any
    found: Any
    same: bool


class Labels:
    """Which label of the one report stands for which of the other: numbers may differ, what they tell apart may not."""

    def __init__(self) -> None:
        self._to: dict[str, str] = {}
        self._from: dict[str, str] = {}

    def same(self, sent: str, found: str) -> bool:
        """Whether two texts are the same but for the numbers of their labels, and the numbers tell the same apart."""
        if sent == found:
            ones = others = _LABEL.findall(sent) if "<" in sent or "&lt;" in sent else []
        elif _LABEL.search(sent) and _SIGNS.sub(_NUMBERLESS, sent) == _SIGNS.sub(_NUMBERLESS, found):
            ones, others = _LABEL.findall(sent), _LABEL.findall(found)
        else:
            return False
        if len(ones) != len(others):
            return False
        for (kind, number), (_, other) in zip(ones, others, strict=True):
            one, two = f"{kind}-{number}", f"{kind}-{other}"
            if self._to.setdefault(one, two) != two or self._from.setdefault(two, one) != one:
                return False
        return True


def pairs(sent: Any, found: Any, path: str, labels: Labels) -> Iterator[Pair]:
    """Each leaf at which both were compared, and each at which one side has nothing."""
    if isinstance(sent, dict) and isinstance(found, dict):
        for key in found:
            yield from pairs(sent.get(key, ABSENT), found[key], below(path, key), labels)
        for key in sent:
            if key not in found:
                yield Pair(below(path, key), sent[key], ABSENT, False)
    elif isinstance(sent, list) and isinstance(found, list):
        yield from _lists(sent, found, path, labels)
    else:
        yield Pair(path, sent, found, equal(sent, found, labels))


def below(path: str, key: str) -> str:
    """The path of `key` in the object at `path`; a key that holds dots stands in brackets."""
    if not path:
        return key
    return f"{path}[{key}]" if "." in key or "[" in key else f"{path}.{key}"


def _lists(sent: list[Any], found: list[Any], path: str, labels: Labels) -> Iterator[Pair]:
    if len(sent) == len(found):
        for index, (one, other) in enumerate(zip(sent, found, strict=True)):
            yield from pairs(one, other, f"{path}[{index}]", labels)
        return
    if len(sent) > MAX_ITEMS:
        yield Pair(path, len(sent), len(found), False)
        return
    waiting: dict[str, list[Any]] = {}
    for other in found:
        waiting.setdefault(_identity(other), []).append(other)
    for index, one in enumerate(sent):
        alike = waiting.get(_identity(one))
        if alike:
            yield from pairs(one, alike.pop(0), f"{path}[{index}]", labels)
        else:
            yield Pair(f"{path}[{index}]", one, ABSENT, False)
    for others in waiting.values():
        for other in others:
            yield Pair(f"{path}[]", ABSENT, other, False)


def _identity(item: Any) -> str:
    """What tells an item of a list from the others."""
    if isinstance(item, dict):
        return repr([item.get(key) for key in _IDENTITY if isinstance(item.get(key), (str, int, type(None)))])
    return repr(item)


def equal(sent: Any, found: Any, labels: Labels) -> bool:
    """Whether two leaves say the same. A truth value is no number."""
    if isinstance(sent, str) and isinstance(found, str):
        return labels.same(sent, found)
    if isinstance(sent, bool) or isinstance(found, bool):
        return sent is found
    if isinstance(sent, (int, float)) and isinstance(found, (int, float)):
        return sent == found or abs(sent - found) <= _RELATIVE * max(abs(sent), abs(found))
    return type(sent) is type(found) and bool(sent == found)
