"""The settings that were in force as a job config: each with the source and line that says so.

Of all that AI Toolkit ran with, this shows what the report knows: the settings that bear on memory, given or default,
and of the rest the numbers and switches. Free text (prompts, captions, names) that no setting of ours explains is not
shown unless `texts_too`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from postmortem.report.document import ConfigPart, quoted
from postmortem.report.encode import text_line
from postmortem.report.texts import Texts
from postmortem.text import LogText

Leaf = tuple[Any, str]
"""A value as a document holds it, and the remark behind it."""
_PARTS = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*")
_NOT_PLAIN = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})
DEFAULT = "default"
"""The source of a setting that nobody gave."""
MAX_ITEMS = 200


def render(config: ConfigPart, others: Mapping[str, Any], texts: Texts, *, texts_too: bool) -> str:
    """A YAML job config: what was given, with a remark behind each value; then, as comments, AI Toolkit's defaults.

    `config` and `others` are already redacted if they are to be.
    """
    if not config.sources:
        return f"# {texts('bundle.no_config')}\n"
    root: dict[Any, Any] = {}
    defaults: list[str] = []
    for path, item in config.values.items():
        if item.source.reveal() == DEFAULT:
            defaults.append(f"# {text_line(LogText(path), 200)}: {_value(item.value)}")
        else:
            _place(root, path, (item.value, _where(item.source, item.line)))
    for path, value in others.items():
        held = quoted(value)
        if texts_too or not _has_text(held):
            _place(root, path, (held, ""))
    kind = others.get("type")
    given = kind.reveal() if isinstance(kind, LogText) else ""
    shown = given if _PLAIN_KEY.fullmatch(given) else "sd_trainer"
    lines = [f"# {texts('bundle.config_head')}", "job: extension", "config:", "  process:", f"    - type: {shown}"]
    lines += _mapping({key: value for key, value in root.items() if key not in ("type", "name")}, "      ")
    return "\n".join([*lines, "", f"# {texts('bundle.defaults')}", *defaults]) + "\n"


def _where(source: LogText, line: int | None) -> str:
    name = source.reveal()[:120]
    return f"{name}:{line}" if line else name


def _has_text(value: Any) -> bool:
    if isinstance(value, LogText):
        return True
    if isinstance(value, list):
        return any(_has_text(item) for item in value)
    return isinstance(value, dict) and any(_has_text(item) for item in value.values())


def _place(root: dict[Any, Any], path: str, leaf: Leaf) -> None:
    """Put `leaf` at a dotted path; what contradicts an earlier path is left out."""
    parts = [int(index) if index else name for name, index in _PARTS.findall(path)]
    if not parts or any(isinstance(part, int) and part >= MAX_ITEMS for part in parts):
        return
    at: Any = root
    for part in parts[:-1]:
        at = at.setdefault(part, {})
        if not isinstance(at, dict):
            return
    if not isinstance(at.get(parts[-1]), dict):
        at[parts[-1]] = leaf


def _mapping(tree: dict[Any, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{_key(key)}:")
            lines += (
                _items(value, indent + "  ")
                if all(isinstance(one, int) for one in value)
                else _mapping(value, indent + "  ")
            )
        else:
            lines.append(f"{indent}{_key(key)}: {_value(value[0])}{_remark(value[1])}")
    return lines


def _items(tree: dict[Any, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for index in range(max(tree) + 1):
        value = tree.get(index, ({}, ""))
        if isinstance(value, dict):
            below = _mapping({str(key): one for key, one in value.items()}, indent + "  ") or [f"{indent}  {{}}"]
            lines += [f"{indent}- {below[0].strip()}", *below[1:]]
        else:
            lines.append(f"{indent}- {_value(value[0])}{_remark(value[1])}")
    return lines


def _key(key: Any) -> str:
    text = str(key)
    return text if _PLAIN_KEY.fullmatch(text) and text.lower() not in _NOT_PLAIN else _value(LogText(text))


def _value(value: Any) -> str:
    """A value in the flow style that YAML shares with JSON."""
    return msgspec.json.encode(value, enc_hook=lambda one: one.reveal()).decode()


def _remark(text: str) -> str:
    return f"  # {text}" if text else ""
