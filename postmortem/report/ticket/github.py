"""Tickets in Markdown: GitHub's and GitLab's with tables and folded details, Discord's without either."""

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
    """GitHub's Markdown."""
    return _joined(blocks, discord=False)


def write_discord(blocks: Sequence[Block]) -> str:
    """What Discord shows of Markdown."""
    return _joined(blocks, discord=True)


def _joined(blocks: Sequence[Block], *, discord: bool) -> str:
    return "\n\n".join(_block(block, discord=discord) for block in blocks) + "\n"


def _block(block: Block, *, discord: bool) -> str:
    def inline(words: Words, *, start: bool = False) -> str:
        return encode.markdown(words, start=start, ticks=not discord)

    match block:
        case Title(text):
            return f"### {inline(text)}"
        case Heading(text):
            return f"**{inline(text)}**"
        case Paragraph(lines):
            return ("\n" if discord else "  \n").join(inline(line, start=True) for line in lines)
        case Bullets(items):
            return "\n".join(f"- {inline(item, start=True)}" for item in items)
        case Table():
            return _lines_of(block) if discord else _table(block)
        case Verbatim(lines, diff):
            return encode.markdown_fence(lines, "diff" if diff else "text", ticks=not discord)
        case Links(items):
            return "\n".join(_link(name, url, discord=discord) for name, url in items)
        case Fold(summary, inside):
            if discord:
                return f"**{inline(summary)}**\n" + _joined(inside, discord=True).rstrip("\n")
            body = _joined(inside, discord=False).rstrip("\n")
            return f"<details>\n<summary>{encode.markup(summary)}</summary>\n\n{body}\n\n</details>"


def _table(table: Table) -> str:
    width = len(table.rows[0])
    head = table.head or (Words(""),) * width
    rows = [head, *table.rows]
    lines = ["| " + " | ".join(encode.markdown(cell, cell=True) for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * width, *lines[1:]])


def _lines_of(table: Table) -> str:
    """A table for a reader without tables: a line a row, its first cell in bold."""
    lines: list[str] = []
    for row in table.rows:
        first, *rest = (encode.markdown(cell, ticks=False) for cell in row)
        cells = " · ".join(cell for cell in rest if cell)
        lines.append(f"**{first}**  {cells}" if first else cells)
    return "\n".join(lines)


def _link(name: str, url: str, *, discord: bool) -> str:
    address = encode.address(url)
    shown = encode.markdown(Words(name))
    if address is None:
        return f"{shown}: {encode.markdown(Words(url))}"
    # angle brackets keep Discord from adding a preview
    return f"{shown}: <{address}>" if discord else f"[{shown}]({address})"
