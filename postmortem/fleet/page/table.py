"""The rows of the page's table: each cell in words, and what it is sorted by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from postmortem.fleet import words
from postmortem.fleet.row import Row
from postmortem.report.texts import Texts

COLUMNS = (
    "run",
    "verdict",
    "step",
    "family",
    "card_gib",
    "resolutions",
    "batch_size",
    "gradient_checkpointing",
    "first_fix",
    "hours_lost",
)
NUMBERS = ("step", "card_gib", "batch_size", "hours_lost")
CHUNK = 250
"""Rows in one folded part, for readers without script."""


class Cell(msgspec.Struct, frozen=True):
    """A cell's text; `sort` where that is not what it is sorted by."""

    text: str
    sort: str | None = None


class Line(msgspec.Struct, frozen=True):
    """One run: its cells in the columns' order, the number of its group (0 for none), its report."""

    cells: list[Cell]
    failed: bool
    group: int
    report: str | None
    note: str


class Chunk(msgspec.Struct, frozen=True):
    """Some lines in a row, counted from 1."""

    first: int
    last: int
    lines: list[Line]


def chunks(
    rows: Sequence[Row], groups: Mapping[str, int], reports: Callable[[int], str | None], texts: Texts
) -> list[Chunk]:
    """All rows that were analysed, those that failed first; `reports` gives the link of the row at an index."""
    order = [index for index, row in enumerate(rows) if row.status == "analysed"]
    order.sort(key=lambda index: (rows[index].fingerprint is None, groups.get(rows[index].fingerprint or "", 0)))
    lines = [_line(rows[index], groups, reports(index), texts) for index in order]
    return [
        Chunk(at + 1, min(at + CHUNK, len(lines)), lines[at : at + CHUNK]) for at in range(0, max(len(lines), 1), CHUNK)
    ]


def _line(row: Row, groups: Mapping[str, int], report: str | None, texts: Texts) -> Line:
    cells = [_cell(name, row, texts) for name in COLUMNS]
    note = texts("fleet_page.duplicate", {"run": row.duplicate_of}) if row.duplicate_of else ""
    return Line(cells, row.fingerprint is not None, groups.get(row.fingerprint or "", 0), report, note)


def _cell(name: str, row: Row, texts: Texts) -> Cell:
    if name == "verdict":
        return Cell(words.verdict(row, texts))
    given = getattr(row, name)
    if given is None:
        return Cell("")
    if name == "hours_lost":
        return Cell(words.amount(given), str(given))
    if name == "resolutions":
        return Cell(str(given).replace(",", ", "), str(given).rsplit(",", 1)[-1])
    return Cell(words.value(name, given, texts), str(given) if name in NUMBERS else None)
