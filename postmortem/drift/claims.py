"""Which entries of the knowledge base claim a template, tried on lines as they may stand in a log."""

from __future__ import annotations

import itertools

from postmortem.drift.templates import Template, fillings
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Place
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.recognise import Recogniser

_MAX_LINE = 4000
_LIKELY = 24
"""Fillings that are all tried, since what varies may decide which entry claims the line (`512x512: 3 files`)."""
_PLACE = Place(1, 0)


class Claims:
    """Asks the same recogniser that reads logs."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._lexicon = Lexicon(knowledge)
        self._recogniser = Recogniser(self._lexicon, "")
        self._known: dict[tuple[str, Template], frozenset[str]] = {}

    def of(self, kind: str, template: Template) -> frozenset[str]:
        """The ids of the entries that claim the template in its likeliest fillings, else in any; empty if none."""
        key = (kind, template)
        if key not in self._known:
            ask = self._bar if kind == "bar" else self._message if kind == "raise" else self._line
            tried = (ask(text[:_MAX_LINE]) for text in fillings(template))
            likely = frozenset().union(*itertools.islice(tried, _LIKELY))
            self._known[key] = likely or next((found for found in tried if found), frozenset())
        return self._known[key]

    def _bar(self, text: str) -> frozenset[str]:
        name = text.strip().removesuffix(":").strip()
        return frozenset(item.pattern.id for item in self._lexicon.bar_names if item.match(name))

    def _message(self, text: str) -> frozenset[str]:
        """A raised message: a carrier only introduces it, so that only a statement counts."""
        return self._line("Error running job: " + text) - self._carriers

    def _line(self, text: str) -> frozenset[str]:
        raw = text.encode("utf-8", "replace")
        entries = {item for anchor, items in self._lexicon.anchored.items() if anchor in raw for item in items}
        found: set[str] = set()
        for event in self._recogniser(text, _PLACE, entries):
            if event.role != "trainer":
                found |= {event.pattern, *event.carriers}
        return frozenset(found)

    @property
    def _carriers(self) -> frozenset[str]:
        return frozenset(item.pattern.id for item in self._lexicon.carriers)
