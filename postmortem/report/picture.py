"""The card's memory at death, drawn with characters: one bar to scale, and what its parts are."""

from __future__ import annotations

from rich.text import Text

from postmortem.report.document import Report
from postmortem.report.texts import Texts, size

_PARTS = (
    ("other_processes", "▒", "x", "magenta"),
    ("non_pytorch", "░", ":", "blue"),
    ("allocated", "█", "#", "red"),
    ("reserved_unallocated", "▓", "=", "yellow"),
    ("unexplained", "·", "?", ""),
    ("free", " ", " ", ""),
)


def memory(report: Report, texts: Texts, width: int, ascii_only: bool) -> list[Text]:
    """The lines of the picture; none when the log holds no capacity."""
    ledger = report.ledger
    tried = report.memory.tried_to_allocate
    capacity = ledger.capacity
    if not capacity:
        return []
    inner = width - 4
    bar = Text("|")
    legend: list[Text] = []
    used = 0
    parts = [(name, getattr(ledger, name), full, plain, style) for name, full, plain, style in _PARTS]
    held = sum(part[1] or 0.0 for part in parts)
    scale = max(capacity, held)
    for name, mib, full, plain, style in parts:
        if not mib:
            continue
        cells = round(inner * mib / scale)
        cells = min(max(1, cells) if name != "free" else cells, inner - used)
        mark = plain if ascii_only else full
        bar.append(mark * cells, style=style)
        used += cells
        row = Text(f" {mark} " if mark.strip() else "   ", style=style)
        row.append(f"{texts(f'memory.{name}')} {size(mib)}", style="")
        legend.append(row)
    bar.append(" " * (inner - used) + "|")
    if tried:
        bar.append(">" if ascii_only else "▶", style="bold red")
        row = Text(f" {'>' if ascii_only else '▶'} ", style="bold red")
        row.append(f"{texts('memory.request')} {size(tried)}", style="")
        if ledger.shortage:
            row.append(f", {texts('memory.short', {'size': size(ledger.shortage)})}", style="")
        legend.append(row)
    over = (ledger.allocated or 0) + (ledger.reserved_unallocated or 0) - capacity
    if over > 0:
        legend.append(Text("   " + texts("memory.overdrawn", {"size": size(over)})))
    total = Text(f"   {texts('memory.capacity')} {size(capacity)}", style="dim")
    return [bar, *legend, total]
