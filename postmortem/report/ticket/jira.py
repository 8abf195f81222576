"""Tickets in Jira's wiki markup, as far as Server, Data Center and Cloud agree: no macro but `noformat`."""

from __future__ import annotations

from collections.abc import Sequence

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
from postmortem.text import Words


def write(blocks: Sequence[Block]) -> str:
    """Jira's wiki markup. A fold is a heading: `expand` is not everywhere."""
    return "\n\n".join(_block(block) for block in blocks) + "\n"


def _block(block: Block) -> str:
    match block:
        case Title(text):
            return f"h3. {encode.wiki(text)}"
        case Heading(text):
            return f"*{encode.wiki(text)}*"
        case Paragraph(lines):
            return "\n".join(encode.wiki(line) for line in lines)
        case Bullets(items):
            return "\n".join(f"* {encode.wiki(item)}" for item in items)
        case Table():
            return _table(block)
        case Verbatim(lines, _):
            return encode.wiki_block(lines)
        case Links(items):
            return "\n".join(_link(name, url) for name, url in items)
        case Fold(summary, inside):
            return f"h4. {encode.wiki(summary)}\n\n" + write(inside).rstrip("\n")


def _table(table: Table) -> str:
    lines: list[str] = []
    if table.head:
        lines.append("||" + "||".join(encode.wiki(cell, cell=True) or " " for cell in table.head) + "||")
    for row in table.rows:
        # an empty cell would join the bars around it to those of a heading
        cells = [encode.wiki(cell, cell=True) or " " for cell in row]
        mark = "|" if table.head else "||"
        lines.append(f"{mark}{cells[0]}|" + "|".join(cells[1:]) + "|")
    return "\n".join(lines)


def _link(name: str, url: str) -> str:
    address = encode.address(url)
    shown = encode.wiki(Words(name))
    return f"{shown}: {encode.wiki(Words(url))}" if address is None else f"[{shown}|{address}]"
