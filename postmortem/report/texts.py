"""The words of one language out of the knowledge base, with placeholders filled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from postmortem.knowledge.schema import Knowledge
from postmortem.text import LogText, Words, harmless

FALLBACK = "en"
_PLACE = re.compile(r"\{([\w.]+)\}")
_NUMBER = re.compile(r"\{([\w.]+)\?([^{}|]*)\|([^{}|]*)\}")
"""``{count?batch|batches}``: the word for one, and for any other number."""


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
        """The text of `key`, filled with values of our own; `default` or the key where there is none."""
        return self.words(key, values, default).reveal()

    def words(self, key: str, values: Mapping[str, Any] | None = None, default: str | None = None) -> Words:
        """The same, for texts whose values come from a log or a config: those keep their own type."""
        found = self._texts.get(key) or self._fallback.get(key)
        if found is None:
            found = default if default is not None else key
        found = harmless(found)
        if "?" in found:
            found = _NUMBER.sub(lambda hit: hit[2] if (values or {}).get(hit[1]) == 1 else hit[3], found)
        parts: list[str | LogText] = []
        at = 0
        for place in _PLACE.finditer(found):
            parts += [found[at : place.start()], self._shown(place[1], values or {})]
            at = place.end()
        return Words(*parts, found[at:])

    def problem(self, why: str) -> str | LogText:
        """What the system says of a file that it does not let us read; its own words where no text knows them."""
        key = f"word.problem.{re.sub('[^a-z]+', '_', why)}"
        return self(key) if self.has(key) else LogText(why[:200])

    def _shown(self, name: str, values: Mapping[str, Any]) -> str | LogText:
        value = values.get(name)
        if value is None:
            return self("word.unknown_value", default="?")
        if name in ("regression.what", "regression.when", "regression.do"):
            return self(f"regression.{value}.{name.removeprefix('regression.')}")
        if name in ("regression.program", "program"):
            return self(f"word.program.{value}")
        if name == "hours" and isinstance(value, (int, float)):
            return self(
                "word.hours" if value >= 1 else "word.minutes", {"count": value if value >= 1 else round(value * 60)}
            )
        if name.startswith("memory."):
            return size(value)
        if name in ("phase", "resource", "outcome") and isinstance(value, str):
            return self(f"{name}.{value}.title" if name == "phase" else f"word.{name}.{value}", default=value)
        if name == "problem":
            return self.problem(value.reveal() if isinstance(value, LogText) else str(value))
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return f"{value:g}"
        if isinstance(value, int):
            return str(value) if abs(value) < 10**18 else "…"
        if isinstance(value, LogText):
            return LogText(value.reveal()[:200])
        if isinstance(value, (list, tuple)):
            return LogText(", ".join(item.reveal() if isinstance(item, LogText) else str(item) for item in value)[:200])
        return LogText(str(value)[:200])


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
