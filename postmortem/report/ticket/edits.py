"""Edits of a config as a diff that a person can apply: YAML with its nesting, as AI Toolkit's process has it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from postmortem.report.ticket.blocks import Verbatim
from postmortem.text import LogText, printable

MAX_VALUE = 120
_PATH = re.compile(r"[\w-]+(?:\[\d+\])*(?:\.[\w-]+(?:\[\d+\])*)*")
_KEY = re.compile(r"[\w-]+|\[\d+\]")
_BARE = re.compile(r"[A-Za-z_./][\w./+-]*")
_NO_STRING = re.compile(r"(?:true|false|yes|no|on|off|null|y|n|\.inf|\.nan|\.\.\.)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Edit:
    """One setting: None where it is not in the config; `note` stands behind the new value."""

    path: str
    before: Any
    after: Any
    note: str = ""


def diff(edits: Iterable[Edit], most: int, limit: int = MAX_VALUE) -> Verbatim:
    """A diff of the first `most` edits, values cut to `limit` characters."""
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for edit in list(edits)[:most]:
        path = printable(edit.path)[:160]
        keys = tuple(_KEY.findall(path)) if _PATH.fullmatch(path) else (path,)
        shared = 0
        while shared < min(len(above), len(keys) - 1) and above[shared] == keys[shared]:
            shared += 1
        lines += [f" {_line(keys, depth)}" for depth in range(shared, len(keys) - 1)]
        above = keys[:-1]
        last = _line(keys, len(keys) - 1)
        if edit.before is not None:
            lines.append(f"-{last} {scalar(edit.before, limit)}")
        if edit.after is not None:
            lines.append(f"+{last} {scalar(edit.after, limit)}" + (f"  # {edit.note}" if edit.note else ""))
        elif edit.before is None:
            lines.append(f" {last} null")
    return Verbatim(tuple(map(LogText, lines)), diff=True)


def _line(keys: tuple[str, ...], depth: int) -> str:
    """The key at `depth` as a line of YAML without its value; an element of a list is named beside its dash."""
    indent = "  " * depth
    key = keys[depth]
    if not key.startswith("["):
        return f"{indent}{key}:"
    return f"{indent}-" if depth == len(keys) - 1 else f"{indent}- # {_named(keys, depth)}"


def _named(keys: tuple[str, ...], depth: int) -> str:
    start = depth
    while start and keys[start].startswith("["):
        start -= 1
    return "".join(keys[start : depth + 1])


def scalar(value: Any, limit: int = MAX_VALUE) -> str:
    """A config value as YAML on one line, cut to about `limit` characters."""
    if isinstance(value, LogText):
        return _string(value.reveal(), limit)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return _cut("[" + ", ".join(scalar(item, limit) for item in value[:100]) + "]", limit)
    if isinstance(value, dict):
        pairs = (f"{_string(str(key), limit)}: {scalar(item, limit)}" for key, item in list(value.items())[:100])
        return _cut("{" + ", ".join(pairs) + "}", limit)
    return _cut(str(value), limit)


def _string(text: str, limit: int) -> str:
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text if _BARE.fullmatch(text) and not _NO_STRING.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
