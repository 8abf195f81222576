"""The card's memory at death, drawn with characters: one bar to scale, and what its parts are."""

from __future__ import annotations

from math import fsum

from rich.text import Text

from postmortem.report import document as doc
from postmortem.report.document import Report
from postmortem.report.outlook import between
from postmortem.report.texts import Texts, size

_PARTS = (
    ("other_processes", "▒", "x", "magenta"),
    ("non_pytorch", "░", ":", "blue"),
    ("allocated", "█", "#", "red"),
    ("reserved_unallocated", "▓", "=", "yellow"),
    ("unexplained", "·", "~", ""),
    ("free", " ", " ", ""),
)

NARROW = 66
"""Columns below which the names and figures of a forecast leave no room for its bars."""

Row = tuple[Text, Text]
"""One line of the legend: the mark, and what it stands for."""


def memory(report: Report, texts: Texts, width: int, blocks: bool) -> tuple[Text | None, list[Row]] | None:
    """The bar (where the card's size is known) and its legend; None when the log holds no sizes."""
    ledger = report.ledger
    tried = report.memory.tried_to_allocate
    capacity = ledger.capacity
    if not capacity and ledger.allocated is None:
        return None
    inner = width - 4
    bar = Text("|")
    legend: list[Row] = []
    used = 0
    parts = [(name, getattr(ledger, name), full, plain, style) for name, full, plain, style in _PARTS]
    held = fsum(part[1] or 0.0 for part in parts)
    scale = max(capacity or 0.0, held)
    for name, mib, full, plain, style in parts:
        if not mib:
            continue
        cells = round(inner * mib / scale)
        cells = min(max(1, cells) if name != "free" else cells, inner - used)
        mark = full if blocks else plain
        bar.append(mark * cells, style=style)
        used += cells
        legend.append((Text(mark, style=style), Text(f"{texts(f'memory.{name}')} {size(mib)}")))
    bar.append(" " * (inner - used) + "|")
    if tried:
        bar.append("▶", style="bold red")
        short = f", {texts('memory.short', {'size': size(ledger.shortage)})}" if ledger.shortage else ""
        arrow = Text("▶", style="bold red")
        legend.append((arrow, Text(f"{texts('memory.request')} {size(tried)}{short}")))
    over = 0.0 if not capacity else (ledger.allocated or 0) + (ledger.reserved_unallocated or 0) - capacity
    if over > 0:
        legend.append((Text("!"), Text(texts("memory.overdrawn", {"size": size(over)}))))
    if capacity:
        legend.append((Text(" "), Text(f"{texts('memory.capacity')} {size(capacity)}", style="dim")))
    return (bar if capacity and ledger.allocated is not None else None), legend


def forecast(
    found: doc.ForecastItem | None, texts: Texts, width: int, blocks: bool
) -> list[tuple[Text, Text, Text]] | None:
    """Rows of (name, size, bar): what the phase needs, part by part, against the card; None without a forecast."""
    if found is None:
        return None
    cells = max(10, min(width, 80) - 50)
    scale = max(found.need.high, found.usable or 0.0)
    full, light = ("█", "░") if blocks else ("#", "-")

    def bar(low: float, high: float, style: str) -> Text:
        if width < NARROW:
            return Text("")
        # the solid end is what is sure, the light one how far it may reach
        sure = round(cells * low / scale)
        more = round(cells * high / scale) - sure
        return Text(full * sure + light * more or "▏", style=style)

    rows = []
    for part in found.parts:
        span = doc.Span(low=part.low, likely=part.likely, high=part.high)
        rows.append((Text(texts(f"forecast.part.{part.id}")), Text(between(span, texts)), bar(part.low, part.high, "")))
    rows.append(
        (
            Text(texts("forecast.need"), style="bold"),
            Text(between(found.need, texts)),
            bar(found.need.low, found.need.high, "red"),
        )
    )
    if found.usable is not None:
        rows.append(
            (Text(texts("forecast.usable")), Text(size(found.usable)), bar(found.usable, found.usable, "green"))
        )
    return rows
