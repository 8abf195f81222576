"""The shortest part of the log that shows the evidence in place: its lines with a few around them.

The scan keeps no text that it does not need, so this reads the log a second time, and only for the forms that show it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from postmortem.report.document import EvidenceItem, Report
from postmortem.text import LogText

BEFORE, AFTER = 3, 2
"""Lines shown before and after one that is evidence."""
MAX_LINES = 80
MAX_CHARACTERS = 500
"""Longest line shown."""
KEEP = 8 * 1024
"""Bytes kept of a line's start and of its end: what lies between is progress bars, or no log."""
REDRAWS = re.compile(r"\r+")

Read = Callable[[str], Iterable[bytes] | None]
"""The UTF-8 chunks of the log of that name once more; None where it cannot be read twice."""


class ExcerptLine(msgspec.Struct, frozen=True):
    """One line of the log; `what` is the evidence's id and `says` what it proves, None for a line around it."""

    line: int
    text: LogText
    what: str | None = None
    says: str | None = None


class Passage(msgspec.Struct, frozen=True):
    """Lines of one log that stand together."""

    source: LogText
    lines: list[ExcerptLine]


class Excerpt(msgspec.Struct, frozen=True):
    """What to show of the logs, in the order of the files; between two passages of one log lines are left out."""

    passages: list[Passage]


def cut(report: Report, read: Read, before: int = BEFORE, after: int = AFTER, most: int = MAX_LINES) -> Excerpt:
    """The evidence of `report` with the lines around it. Evidence that stands in no log (but in the UI's database, say)
    is shown by itself; of `most` lines the ones nearest to the evidence are kept."""
    passages: list[Passage] = []
    by_source: dict[LogText, list[EvidenceItem]] = {}
    for item in report.failure.evidence:
        by_source.setdefault(item.source, []).append(item)
    for source, items in by_source.items():
        found = lines_around(items, before, after, most)
        raw = dict(lines_of(read(source.reveal()) or (), found))
        passages += _passages(source, items, raw)
    return Excerpt(passages)


def lines_around(items: Sequence[EvidenceItem], before: int, after: int, most: int) -> list[int]:
    """The numbers of the lines to show, in order."""
    chosen = {item.line for item in items}
    near = {
        line: abs(line - item.line)
        for item in items
        for line in range(max(1, item.line - before), item.line + after + 1)
        if line not in chosen
    }
    room = max(0, most - len(chosen))
    chosen |= set(sorted(near, key=lambda line: (near[line], line))[:room])
    return sorted(chosen)


def _passages(source: LogText, items: Sequence[EvidenceItem], raw: dict[int, bytes]) -> Iterator[Passage]:
    proofs: dict[int, list[EvidenceItem]] = {}
    for item in items:
        proofs.setdefault(item.line, []).append(item)
    together: list[ExcerptLine] = []
    for line in sorted({*raw, *proofs}):
        if together and line > together[-1].line + 1:
            yield Passage(source, together)
            together = []
        said = [
            ExcerptLine(line, _shown(raw.get(line), item.text), item.what, item.says) for item in proofs.get(line, ())
        ]
        together = [*together, *(said or [ExcerptLine(line, _shown(raw.get(line), None))])]
    if together:
        yield Passage(source, together)


def _shown(raw: bytes | None, proof: LogText | None) -> LogText:
    """A line as a reader would have seen it: of the redraws in it the last, or the one that holds the proof."""
    text = raw.decode("utf-8", "replace") if raw is not None else ""
    drawn = [piece for piece in REDRAWS.split(text) if piece.strip()]
    if proof is not None:
        start = proof.reveal()[:60]
        holding = [piece for piece in drawn if start and start in LogText(piece).reveal()]
        if not holding and (len(drawn) > 1 or not drawn):
            return _short(proof.reveal())
        drawn = holding or drawn
    return _short(LogText(drawn[-1] if drawn else "").reveal())


def _short(text: str) -> LogText:
    return LogText(text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…")


def lines_of(chunks: Iterable[bytes], wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """The lines of those numbers (sorted), each cut to its start and end where it is endless."""
    line, held = 1, bytearray()
    for chunk in chunks:
        if not wanted or line > wanted[-1]:
            return
        breaks = chunk.count(b"\n")
        first = bisect_left(wanted, line)
        if first == len(wanted) or wanted[first] > line + breaks:
            line += breaks
            continue
        at = 0
        while True:
            end = chunk.find(b"\n", at)
            want = wanted[bisect_left(wanted, line)] == line if line <= wanted[-1] else False
            if want:
                held += chunk[at : end if end >= 0 else len(chunk)]
                if len(held) > 2 * KEEP:
                    del held[KEEP:-KEEP]
            if end < 0:
                break
            if want:
                yield line, bytes(held)
                held.clear()
            line, at = line + 1, end + 1
    if held:
        yield line, bytes(held)
