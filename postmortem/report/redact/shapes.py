"""What gives itself away by how it looks: keys, addresses, home folders. The expressions are data: redaction.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from postmortem.knowledge.log_schema import Redaction
from postmortem.knowledge.schema import Knowledge
from postmortem.report.redact.labels import Hidden

Span = tuple[int, int, int, Hidden]
"""From, to, rank (the lowest names what several find), and what is hidden there."""


def compiled(source: str) -> Any:
    """`source`, by the standard engine if it can, else by `regex`."""
    try:
        return re.compile(source)
    except (re.error, DeprecationWarning):  # as knowledge.expressions has it
        import regex

        return regex.compile(source)


class KeptLists:
    """The lists of what is no secret, each compiled when it is first asked for."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._words = {item.id: item.words for item in knowledge.kept_words}
        self._known: dict[tuple[str, ...], Any] = {}

    def __call__(self, names: tuple[str, ...], text: str) -> bool:
        """Whether `text` is in one of the lists `names`."""
        if not names:
            return False
        found = self._known.get(names)
        if found is None:
            sources = [word for name in names for word in self._words.get(name, ())]
            found = self._known[names] = compiled("(?i:" + "|".join(f"(?:{word})" for word in sources) + ")")
        return found.fullmatch(text) is not None


class Shape:
    """One entry of redaction.yaml, compiled when a line first holds one of its anchors."""

    def __init__(self, entry: Redaction, rank: int, kept: KeptLists) -> None:
        self.entry = entry
        self.anchors = tuple(anchor.lower() for anchor in entry.anchors)
        self._rank = rank
        self._kept = kept
        self._expression: Any = None
        self._parts: Any = None
        self._tail: Any = None

    def may(self, lower: str) -> bool:
        """Whether a text (in lower case) holds one of the anchors, without which nothing can be found in it."""
        if not self.anchors:
            return True
        for anchor in self.anchors:  # noqa: SIM110 - asked for each line and entry, and twice as fast as any()
            if anchor in lower:
                return True
        return False

    def spans(self, line: str) -> Iterator[Span]:
        """What it finds in `line`."""
        self._compile()
        for found in self._expression.finditer(line):
            start, end = found.span("secret")
            if start == end:
                continue
            if self._parts is None:
                if not self._kept(self.entry.keep, line[start:end]):
                    yield start, end, self._rank, Hidden(self.entry.label, line[start:end], self.entry.exact)
            else:
                yield from self.cut(line, start, end)

    def _compile(self) -> None:
        if self._expression is None:
            self._expression = compiled(self.entry.regex)
            self._parts = compiled(self.entry.parts) if self.entry.parts else None
            self._tail = compiled(self.entry.tail) if self.entry.tail else None

    def cut(self, line: str, start: int, end: int) -> Iterator[Span]:
        """The parts of ``line[start:end]`` that are private, each by itself."""
        self._compile()
        at = start
        for stop, after in [*(found.span() for found in self._parts.finditer(line, start, end)), (end, end)]:
            part = line[at:stop]
            if part.strip() and not self._kept(self.entry.keep, part):
                tail = self._tail.search(part) if self._tail is not None and stop == end else None
                if tail is None or not tail.start():
                    yield at, stop, self._rank, Hidden(self.entry.label, part)
                elif not self._kept(self.entry.keep, part[: tail.start()]):
                    yield (
                        at,
                        at + tail.start(),
                        self._rank,
                        Hidden(self.entry.last or self.entry.label, part[: tail.start()]),
                    )
            at = after


class Shapes:
    """All entries, tried on the lines that hold one of their anchors."""

    def __init__(self, knowledge: Knowledge, kept: KeptLists) -> None:
        self._shapes = [Shape(entry, rank, kept) for rank, entry in enumerate(knowledge.redactions)]
        self._spreading = [shape for shape in self._shapes if shape.entry.spreads]
        self.paths = next((shape for shape in self._shapes if shape.entry.parts and shape.entry.last), None)

    def within(self, text: str) -> list[Shape]:
        """The entries that can find something in a text of many lines."""
        lower = text.lower()
        return [shape for shape in self._shapes if shape.may(lower)]

    def spans(self, line: str, shapes: Iterable[Shape] | None = None) -> Iterator[Span]:
        """All finds in one line, of all entries or of `shapes`."""
        lower = line.lower()
        for shape in self._shapes if shapes is None else shapes:
            if shape.may(lower):
                yield from shape.spans(line)

    def spreads(self, kind: str) -> bool:
        """Whether what a label of this kind stands for is hidden everywhere once it was seen."""
        return any(shape.entry.label == kind for shape in self._spreading)

    def spreading(self, line: str) -> Iterator[Hidden]:
        """The names in one line that are hidden everywhere once they were seen."""
        lower = line.lower()
        for shape in self._spreading:
            if shape.may(lower):
                for _, _, _, thing in shape.spans(line):
                    yield thing
