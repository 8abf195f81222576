"""Where each line of evidence stands on the page: the excerpt's lines, their anchors, and the most telling one."""

from __future__ import annotations

import msgspec

from postmortem.report.document import EvidenceItem, Report
from postmortem.report.excerpt import Excerpt, ExcerptLine, Passage
from postmortem.text import LogText

WEIGHT = (
    *("oom", "host_oom", "abort", "swallowed", "skip", "slowdown", "kill", "crash", "exception", "other_error"),
    *("consequence", "exit", "stop", "frame", "bar", "phase"),
)
"""What a line proves, the most telling first."""


class Group(msgspec.Struct, frozen=True):
    """Lines that prove the same."""

    says: str
    lines: list[EvidenceItem]


class Shown(msgspec.Struct, frozen=True):
    """One line of the excerpt; `anchor` is None for a second proof on the same line."""

    line: int
    text: LogText
    says: str | None
    anchor: str | None


class Block(msgspec.Struct, frozen=True):
    """Lines that stand together, of one log."""

    source: LogText
    lines: list[Shown]


class Proof:
    """The evidence as the page shows it."""

    def __init__(self, report: Report, excerpt: Excerpt | None) -> None:
        evidence = report.failure.evidence
        self._anchors: dict[tuple[LogText, int], str] = {}
        self._sources: list[LogText] = []
        self.blocks = [self._block(passage) for passage in (excerpt or _bare(evidence)).passages]
        self.several = len(self._sources) > 1
        self.groups = [
            Group(says, [item for item in evidence if item.says == says])
            for says in dict.fromkeys(item.says for item in evidence)
        ]
        ranked = sorted(evidence, key=lambda item: WEIGHT.index(item.what) if item.what in WEIGHT else len(WEIGHT))
        self.best = ranked[0] if ranked else None

    def anchor(self, source: LogText, line: int | None) -> str | None:
        """The anchor of a line, None where the excerpt does not hold it."""
        return None if line is None else self._anchors.get((source, line))

    def of(self, line: int | None) -> str | None:
        """The anchor of a line of the attempt's own log, where no other log can be meant."""
        return None if self.several or not self._sources else self.anchor(self._sources[0], line)

    def _block(self, passage: Passage) -> Block:
        if passage.source not in self._sources:
            self._sources.append(passage.source)
        return Block(passage.source, [self._shown(passage.source, line) for line in passage.lines])

    def _shown(self, source: LogText, line: ExcerptLine) -> Shown:
        anchor: str | None = None
        if (source, line.line) not in self._anchors:
            number = self._sources.index(source)
            anchor = f"L{line.line}" if number == 0 else f"F{number + 1}L{line.line}"
            self._anchors[source, line.line] = anchor
        return Shown(line.line, line.text, line.says, anchor)


def _bare(evidence: list[EvidenceItem]) -> Excerpt:
    """The lines of evidence alone."""
    by_source: dict[LogText, list[EvidenceItem]] = {}
    for item in evidence:
        by_source.setdefault(item.source, []).append(item)
    return Excerpt(
        [
            Passage(source, [ExcerptLine(i.line, i.text, i.what, i.says) for i in sorted(items, key=lambda i: i.line)])
            for source, items in by_source.items()
        ]
    )
