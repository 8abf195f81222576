"""The encoder for web pages: log text becomes visible characters, escaped, and isolated from what stands around it.

Log text goes into elements only, never into an attribute, a style, a script or an address.
"""

from __future__ import annotations

import json
import re
from typing import Any

from markupsafe import Markup, escape

from postmortem.report import encode
from postmortem.text import LogText, Words, printable

MAX_CHARACTERS = 600
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_WORDS = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")


def log(text: LogText, limit: int = MAX_CHARACTERS) -> Markup:
    """Text out of a log or a config, isolated so that its letters' direction cannot turn ours."""
    return Markup("<bdi>{}</bdi>").format(_cut(text.reveal(), limit))


def words(sentence: Words) -> Markup:
    """A sentence of ours, the values in it out of a log isolated."""
    return Markup("").join(
        log(part, 200) if isinstance(part, LogText) else escape(printable(part)) for part in sentence.parts
    )


def breakable(path: str) -> Markup:
    """A dotted path that may be broken after its dots and underscores, and nowhere else."""
    return Markup(re.sub(r"(?<=[._])(?=.)", "<wbr>", str(escape(printable(path)))))  # noqa: S704 (escaped before)


def value(item: Any, limit: int = 160) -> Markup:
    """A config value as people read it."""
    return log(LogText(encode.value(item)), limit)


def shown(item: Any) -> Any:
    """What a template prints: our own words without anything invisible, log text through its encoder.

    Escaping our own words is the template engine's part. Nothing is ever printed for lack of a value: that raises.
    """
    if isinstance(item, Markup):
        return item
    if isinstance(item, LogText):
        return log(item)
    if isinstance(item, Words):
        return words(item)
    if isinstance(item, str):
        return printable(item)
    if isinstance(item, (int, float)) and not isinstance(item, bool):
        return str(item)
    raise TypeError(f"{type(item).__name__} is nothing that a page prints")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def config_line(key: str, item: Any, limit: int = 4000) -> Markup:
    """``key: value`` as it stands in a YAML config, for a reader and for the clipboard."""
    return log(LogText(f"{key}: {_yaml(item)}"), limit)


def _yaml(item: Any) -> str:
    """A value as YAML takes it; what could be read as anything but text is quoted, which JSON and YAML do alike."""
    if isinstance(item, LogText):
        raw = item.reveal()
        return raw if _PLAIN.fullmatch(raw) and raw.lower() not in _WORDS else json.dumps(raw, ensure_ascii=False)
    if isinstance(item, list):
        return "[" + ", ".join(_yaml(part) for part in item) + "]"
    if isinstance(item, dict):
        return "{" + ", ".join(f"{_yaml(LogText(key))}: {_yaml(part)}" for key, part in item.items()) + "}"
    if item is None or isinstance(item, bool):
        return {None: "null", True: "true", False: "false"}[item]
    return str(item)
