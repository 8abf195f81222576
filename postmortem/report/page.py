"""The page that every terminal report is laid out on: Rich is given text objects only, and its markup is off."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Span, Text

from postmortem.report import glyphs

NARROWEST, WIDEST = 40, 100
"""Columns: what tables need, and as long as a line is still read with ease."""


class Page:
    """Gathers what is printed, at most `WIDEST` and at least `NARROWEST` columns wide, in characters of `encoding`."""

    def __init__(self, width: int, *, colour: bool, encoding: str = "utf-8") -> None:
        self._out = StringIO()
        self._encoding = encoding
        self._console = Console(
            file=self._out,
            width=max(NARROWEST, min(width, WIDEST)),
            color_system="standard" if colour else None,
            force_terminal=colour,
            no_color=not colour,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            safe_box=True,
            _environ={},  # a page is the same on every machine
        )

    @property
    def width(self) -> int:
        """Columns."""
        return self._console.width

    @property
    def blocks(self) -> bool:
        """Whether bars can be drawn with block characters."""
        return glyphs.encodes(glyphs.BLOCKS, self._encoding)

    @property
    def dots(self) -> str:
        """The mark of a line that was cut."""
        return glyphs.shown("…", self._encoding)

    def add(self, part: RenderableType) -> None:
        """Print `part` below what is there."""
        self._console.print(self._shown(part))

    def text(self) -> str:
        """The page, without blanks at line ends and empty lines at its edges."""
        lines = self._out.getvalue().replace("\u00a0", " ").splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"

    def _shown(self, part: RenderableType) -> RenderableType:
        """`part` with a stand-in for what the encoding lacks: before it is laid out, since some are wider."""
        if isinstance(part, Text):
            return self._text(part)
        if isinstance(part, str):
            return glyphs.shown(part, self._encoding)
        if isinstance(part, Padding):
            part.renderable = self._shown(part.renderable)
        elif isinstance(part, Group):
            return Group(*(self._shown(item) for item in part.renderables))
        elif isinstance(part, Table):
            for column in part.columns:
                column._cells[:] = [self._shown(cell) for cell in column.cells]
        return part

    def _text(self, text: Text) -> Text:
        plain = text.plain
        if glyphs.encodes(plain, self._encoding):
            return text
        pieces = [glyphs.stand_in(character, self._encoding) for character in plain]
        at = [0]
        for piece in pieces:
            at.append(at[-1] + len(piece))
        changed = text.blank_copy("".join(pieces))
        changed.spans = [Span(at[span.start], at[min(span.end, len(plain))], span.style) for span in text.spans]
        return changed


def table(*columns: str) -> Table:
    """A table without lines: a column each, `fixed` (never broken) or `text` (broken into lines)."""
    made = Table.grid(padding=(0, 2))
    for column in columns:
        made.add_column(no_wrap=column == "fixed", overflow="fold")
    return made


def head(text: str) -> Text:
    """The heading of a section."""
    return Text(text, style="bold underline")


def label(text: str) -> Text:
    """What a row of facts is about."""
    return Text(text, style="dim")


def indented(part: RenderableType, by: int = 2) -> Padding:
    """`part`, moved to the right."""
    return Padding(part, (0, 0, 0, by))


def bullet(text: str, mark: str = "-", style: str = "", width: int = 3, text_style: str = "") -> RenderableType:
    """A point of a list; its text stays clear of the mark."""
    made = Table.grid(padding=(0, 1))
    made.add_column(width=width, justify="right", no_wrap=True)
    made.add_column(overflow="fold")
    made.add_row(Text(mark, style=style), Text(text, style=text_style))
    return made
