"""Tickets as plain text, for mail and forms without markup: 76 columns, nothing in it but characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size

from postmortem.report import encode_ticket as encode
from postmortem.report.ticket.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Links,
    Paragraph,
    Table,
    Title,
    Verbatim,
)

WIDTH = 76
_BAR = re.compile(r"\|[ #█-▏]{12,}\|")
LABEL = 34
"""Widest first column of a table; longer cells stand on a line of their own."""


def write(blocks: Sequence[Block]) -> str:
    """Plain text."""
    return "\n\n".join("\n".join(_block(block)) for block in blocks) + "\n"


def _block(block: Block) -> list[str]:
    match block:
        case Title(text):
            lines = wrapped(encode.text(text))
            return [*lines, "=" * max(map(cell_len, lines))]
        case Heading(text):
            return wrapped(encode.text(text))
        case Paragraph(lines):
            return [part for line in lines for part in wrapped(encode.text(line))]
        case Bullets(items):
            return [part for item in items for part in wrapped(encode.text(item), "- ", "  ")]
        case Table():
            return _table(block)
        case Verbatim(lines, _):
            return [part for line in lines for part in _broken(encode.text_line(line))]
        case Links(items):
            return [part for name, url in items for part in (*wrapped(f"{name}:"), f"  {url}")]
        case Fold(summary, inside):
            title = encode.text(summary)
            lines = wrapped(title)
            return [*lines, "-" * max(map(cell_len, lines)), "", *write(inside).rstrip("\n").split("\n")]


def _table(table: Table) -> list[str]:
    rows = [[encode.text(cell) for cell in row] for row in ([table.head] if table.head else []) + list(table.rows)]
    body = rows[1:] if table.head else rows
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    if sum(widths) + 2 * len(widths) > LABEL + 12 or (widths and widths[0] > LABEL):
        return [part for row in body for part in wrapped(" · ".join(cell for cell in row if cell), "", "  ")]
    lines: list[str] = []
    for row in rows:
        label = "".join(set_cell_size(cell, width) + "  " for cell, width in zip(row, widths))
        lines += [line.rstrip() for line in wrapped(row[-1], label, " " * cell_len(label))] or [label.rstrip()]
    return lines


def wrapped(text: str, first: str = "", rest: str = "") -> list[str]:
    """`text` in lines of at most `WIDTH` columns; a word that is longer is broken."""
    lines: list[str] = []
    line, room = first, WIDTH - cell_len(first)
    empty = True
    for word in text.split():
        size = cell_len(word)
        if not empty and size + 1 > room:
            lines.append(line)
            line, room, empty = rest, WIDTH - cell_len(rest), True
        while size > room and empty:
            head = set_cell_size(word, room).rstrip()
            lines.append(line + head)
            word = word[len(head) :]
            size = cell_len(word)
            line, room = rest, WIDTH - cell_len(rest)
        line += word if empty else " " + word
        room -= size if empty else size + 1
        empty = False
    return [*lines, line] if not empty else lines


def _broken(line: str) -> list[str]:
    """A line as it stands, behind a margin; where it is too long, on more lines behind a wider one."""
    lines: list[str] = []
    margin = "    "
    if cell_len(line) > WIDTH - len(margin):
        line = _BAR.sub("|…|", line)  # what a bar was drawn with, as wide as that terminal was
    while cell_len(line) > WIDTH - len(margin):
        room = WIDTH - len(margin)
        head = set_cell_size(line, room).rstrip(" ") or line[:1]
        # at a space, if one is not far
        space = line.rfind(" ", room * 2 // 3, len(head) + 1)
        head = line[: space + 1] if space > 0 else head
        lines.append(margin + head.rstrip())
        line = line[len(head) :]
        margin = "        "
    return [*lines, margin + line] if line or not lines else lines
