"""The encoders: the only places where log text becomes characters, each harmless in its own sink."""

from __future__ import annotations

from typing import Any

from postmortem.text import LogText, Words, printable


def terminal(text: LogText, limit: int = 400) -> str:
    """One line of visible characters; for Rich it must still be given as text, never as markup."""
    return _cut(text.reveal(), limit)


def plain(words: Words) -> str:
    """A sentence for the terminal, on one line, without anything that acts."""
    return printable("".join(_cut(part.reveal(), 300) if isinstance(part, LogText) else part for part in words.parts))


def json_hook(value: Any) -> Any:
    """For msgspec: log text as a string of visible characters."""
    if isinstance(value, LogText):
        return value.reveal()
    if isinstance(value, Words):
        return printable(value.reveal())
    raise TypeError(f"{type(value).__name__} is not part of a report")


def value(item: Any) -> str:
    """A config value as people read it."""
    if isinstance(item, LogText):
        return _cut(item.reveal(), 300)
    if item is None:
        return "—"
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, list):
        return ", ".join(value(part) for part in item)
    if isinstance(item, dict):
        return ", ".join(f"{key}: {value(part)}" for key, part in item.items())
    return str(item)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def text_line(text: LogText, limit: int = 1500) -> str:
    """One line of visible characters for a plain text file."""
    return _cut(text.reveal(), limit)
