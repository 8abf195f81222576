"""The words of one language out of the knowledge base, with placeholders filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from postmortem.knowledge.schema import Knowledge
from postmortem.text import LogText

FALLBACK = "en"
_PLACE = re.compile(r"\{([\w.]+)\}")


class Texts:
    """Texts by key, in `lang`; a key that it lacks is taken from English (the tests allow no such key)."""

    def __init__(self, knowledge: Knowledge, lang: str) -> None:
        self.lang = lang
        self._texts = knowledge.texts.get(lang, {})
        self._fallback = knowledge.texts.get(FALLBACK, {})

    def has(self, key: str) -> bool:
        """Whether there is such a text."""
        return key in self._texts or key in self._fallback

    def __call__(self, key: str, values: Mapping[str, Any] | None = None, default: str | None = None) -> str:
        """The text of `key` with its placeholders filled; `default` (or the key itself) where there is none."""
        found = self._texts.get(key) or self._fallback.get(key)
        if found is None:
            found = default if default is not None else key
        return _PLACE.sub(lambda place: self._shown(place[1], values or {}), found)

    def _shown(self, name: str, values: Mapping[str, Any]) -> str:
        value = values.get(name)
        if value is None:
            return self("word.unknown_value", default="?")
        if name.startswith("memory."):
            return size(value)
        if name in ("phase", "resource", "outcome") and isinstance(value, str):
            return self(f"{name}.{value}.title" if name == "phase" else f"word.{name}.{value}", default=value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return f"{value:g}"
        if isinstance(value, LogText):
            return value.reveal()[:200]
        if isinstance(value, (list, tuple)):
            return ", ".join(str(item) for item in value)
        return str(value)


def size(mib: float) -> str:
    """A size with the unit and the digits that it deserves: ``13.6 GiB``, ``378 MiB``, ``256 bytes``."""
    if mib >= 100 * 1024:
        return f"{mib / 1024:.0f} GiB"
    if mib >= 1024:
        return f"{mib / 1024:.1f} GiB"
    if mib >= 10:
        return f"{mib:.0f} MiB"
    if mib >= 1:
        return f"{mib:.1f} MiB"
    if mib >= 1 / 1024:
        return f"{mib * 1024:.0f} KiB"
    return f"{mib * 1048576:.0f} bytes"
