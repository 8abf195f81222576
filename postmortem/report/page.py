"""The page that every terminal report is laid out on: Rich is given text objects only, and its markup is off."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType


class Page:
    """Gathers what is printed, at most 120 and at least 60 columns wide."""

    def __init__(self, width: int, *, colour: bool) -> None:
        self._out = StringIO()
        self._console = Console(
            file=self._out,
            width=max(60, min(width, 120)),
            color_system="standard" if colour else None,
            force_terminal=colour,
            no_color=not colour,
            markup=False,
            highlight=False,
            emoji=False,
            legacy_windows=False,
            safe_box=True,
        )

    @property
    def width(self) -> int:
        """Columns."""
        return self._console.width

    def add(self, part: RenderableType) -> None:
        """Print `part` below what is there."""
        self._console.print(part)

    def text(self) -> str:
        """The page, without blanks at line ends and empty lines at its edges."""
        return "\n".join(line.rstrip() for line in self._out.getvalue().splitlines()).strip("\n") + "\n"
