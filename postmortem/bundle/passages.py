"""The log excerpt of a bundle: its head with versions and config, every line that the report cites with those around
it, and its end. More than a report shows, but bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from postmortem.report.document import Report
from postmortem.report.encode import text_line
from postmortem.report.excerpt import REDRAWS, Excerpt, ExcerptLine, Passage, lines_of
from postmortem.report.texts import Texts
from postmortem.text import LogText

HEAD, TAIL = 400, 300
"""Lines at the start, which name versions and hold the config, and at the end."""
AROUND_PROOF, AROUND_EVENT = 15, 3
"""Lines before and after one that is evidence, and one that the report cites elsewhere."""
MAX_LINES = 12_000
MAX_BYTES = 2_000_000
MAX_SHOWN = 1500
"""Characters of one line."""
_COUNTS = re.compile(r": (\d+/\d+)(?: |$)")
MAX_REDRAWS = 3
"""Redraws shown of a line that was drawn over and over."""


def chosen(report: Report, lines: int, source: str) -> list[int]:
    """The numbers of the lines of the log `source` (which has `lines`), the most telling first, each once."""
    proofs = [item.line for item in report.failure.evidence if item.source.reveal() == source]
    cited = [event.line for event in report.oom_events if event.line is not None]
    cited += [item.line for item in report.timeline if item.line is not None]
    cited += [line for item in report.warnings if (line := item.line) is not None]
    for told in (report.run.dated, report.run.torch):
        cited += [clue.line for clue in told.clues] if told is not None else []
    wanted = dict.fromkeys(proofs)
    for line in proofs:
        wanted.update(dict.fromkeys(_around(line, AROUND_PROOF, lines)))
    wanted.update(dict.fromkeys(range(max(1, lines - TAIL + 1), lines + 1)))
    wanted.update(dict.fromkeys(range(1, min(lines, HEAD) + 1)))
    for line in cited:
        if len(wanted) >= MAX_LINES:
            break
        wanted.update(dict.fromkeys(_around(line, AROUND_EVENT, lines)))
    return [line for line in wanted if 1 <= line <= lines][:MAX_LINES]


def _around(line: int, reach: int, lines: int) -> range:
    return range(max(1, line - reach), min(lines, line + reach) + 1)


def gather(report: Report, read: Callable[[], Iterable[bytes]], source: str, texts: Texts) -> Excerpt:
    """Those lines, in order, as one passage for each stretch without a gap; nothing in it is redacted yet."""
    order = chosen(report, report.input.lines, source)
    raw = dict(lines_of(read(), sorted(order)))
    proofs = {item.line: item for item in report.failure.evidence if item.source.reveal() == source}
    shown: dict[int, list[ExcerptLine]] = {}
    left = MAX_BYTES
    for line in order:
        item = proofs.get(line)
        rows = [
            ExcerptLine(line, text, item.what if item and first else None, item.says if item and first else None)
            for first, text in _texts(raw.get(line, b""), item.text if item else None, texts)
        ]
        left -= sum(min(len(row.text.reveal()), MAX_SHOWN) * 3 // 2 + 12 for row in rows)
        if left < 0:
            break
        shown[line] = rows
    passages: list[Passage] = []
    previous = None
    for line in sorted(shown):
        if previous is None or line != previous + 1:
            passages.append(Passage(LogText(source), []))
        passages[-1].lines.extend(shown[line])
        previous = line
    return Excerpt(passages)


def _texts(raw: bytes, proof: LogText | None, texts: Texts) -> list[tuple[bool, LogText]]:
    """What a line showed, redraw by redraw (first, last and the one that holds the proof), and whether that is it."""
    pieces = [LogText(piece) for piece in REDRAWS.split(raw.decode("utf-8", "replace")) if piece.strip()]
    start = proof.reveal()[:60] if proof is not None else ""
    counts = _COUNTS.search(start)
    shown = f" {counts[1]} [" if counts else start
    holding = {at for at, piece in enumerate(pieces) if start and (start in piece.reveal() or shown in piece.reveal())}
    if proof is not None and not holding and len(pieces) == 1:
        holding = {0}  # the words of a frame are put together from its two lines
    kept = {0, len(pieces) - 1, *list(holding)[:MAX_REDRAWS]} if len(pieces) > MAX_REDRAWS else set(range(len(pieces)))
    found: list[tuple[bool, LogText]] = []
    previous = -1
    for at in sorted(index for index in kept if 0 <= index < len(pieces)):
        if at > previous + 1:
            found.append((False, LogText(texts("bundle.redraws_left_out", {"count": at - previous - 1}))))
        found.append((at in holding, pieces[at]))
        previous = at
    if proof is not None and not holding:
        # the proof stands in a part of an endless line that was not kept
        found.append((True, proof))
    return found or [(False, LogText(""))]


def render(excerpt: Excerpt, lines: int, texts: Texts) -> str:
    """The excerpt as a text file; `lines` is how many the log has."""
    rows: list[str] = []
    width = len(str(lines))
    before = 0
    for passage in excerpt.passages:
        first = passage.lines[0].line
        _gap(rows, first - before - 1, texts)
        for item in passage.lines:
            mark = ">" if item.what else " "
            rows.append(f"{mark} {item.line:>{width}} | {text_line(item.text, MAX_SHOWN)}".rstrip())
            before = item.line
    _gap(rows, lines - before, texts)
    return "\n".join(rows) + "\n"


def _gap(rows: list[str], count: int, texts: Texts) -> None:
    if count > 0:
        rows.append(texts("bundle.lines_left_out", {"count": count}))
