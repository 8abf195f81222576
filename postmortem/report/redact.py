"""Hide what is personal or secret in a report that leaves the machine. What to hide is data: redaction.yaml."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
import regex

from postmortem.knowledge.schema import Knowledge
from postmortem.report.excerpt import Excerpt
from postmortem.text import LogText, Words

T = TypeVar("T", bound=msgspec.Struct)


class Redactor:
    """Replaces secrets by stable labels: the same thing always gets the same label in one report."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._expressions = [(regex.compile(item.regex), item.label) for item in knowledge.redactions]
        self._labels: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def text(self, raw: str) -> str:
        """`raw` with every secret replaced."""
        for expression, label in self._expressions:
            raw = expression.sub(lambda found, label=label: self._replaced(found, label), raw)
        return raw

    def _replaced(self, found: Any, label: str) -> str:
        secret = found["secret"]
        if secret.startswith("<") and secret.endswith(">"):
            return str(found[0])
        key = (label, secret)
        if key not in self._labels:
            self._counts[label] = self._counts.get(label, 0) + 1
            self._labels[key] = f"<{label}-{self._counts[label]}>"
        start = found.start("secret") - found.start()
        whole = str(found[0])
        return whole[:start] + self._labels[key] + whole[start + len(secret) :]

    def walk(self, value: Any) -> Any:
        """A copy of any part of a report with its log text, and our words around it, redacted."""
        if isinstance(value, LogText):
            return LogText(self.text(value.reveal()))
        if isinstance(value, Words):
            return Words(*(self.walk(part) for part in value.parts))
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.walk(item) for item in value]
        if isinstance(value, dict):
            return {key: self.walk(item) for key, item in value.items()}
        if isinstance(value, msgspec.Struct):
            return type(value)(**{name: self.walk(getattr(value, name)) for name in value.__struct_fields__})
        return value

    def document(self, document: T) -> T:
        """A report, or another document of its kind, redacted; what names the tool and the language stays."""
        parts = {}
        for name in document.__struct_fields__:
            value = getattr(document, name)
            parts[name] = value if name in ("tool", "schema_version", "lang") else self.walk(value)
        return type(document)(**parts)

    def mapping(self) -> dict[str, str]:
        """What each label stands for."""
        return {label: original for (_, original), label in self._labels.items()}

    def excerpt(self, excerpt: Excerpt) -> Excerpt:
        """The lines of the log, redacted with the same labels."""
        walked: Excerpt = self.walk(excerpt)
        return walked


def redact(document: T, knowledge: Knowledge) -> T:
    """The report, or another document of its kind, without user names in paths, tokens, addresses and the like."""
    return Redactor(knowledge).document(document)
