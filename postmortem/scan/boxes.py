"""Read the traceback that Rich draws as a box: a path row, then rows of code with a mark at the failing one.

Paths and code that are wider than the box go on in the next row.
"""

from __future__ import annotations

import re
from functools import cached_property

import msgspec

from postmortem.model import Event, Place
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText

MAX_OUTSIDE = 8
"""Lines of other output between rows, after which the box counts as ended."""
MAX_PENDING = 1200
_RIGHT = "│┃|"


class _Syntax:
    """How the rows of a box look; compiled where a log has one, which few have."""

    @cached_property
    def row(self) -> re.Pattern[str]:
        return re.compile(r"\s*[│┃|] ?(.*)$")

    @cached_property
    def edge(self) -> re.Pattern[str]:
        return re.compile(r"\s*[╰└+][─━-]+[╯┘+]?\s*$")

    @cached_property
    def numbered(self) -> re.Pattern[str]:
        return re.compile(r"(?:[❱>] ?)? {0,8}\d{1,9}(?: |$)")

    @cached_property
    def guides(self) -> re.Pattern[str]:
        return re.compile(r"^(?:[│┃|]? +)*[│┃|]? *")


_SYNTAX = _Syntax()


class BoxRow(msgspec.Struct, frozen=True):
    """What a row says: a frame, or the code of the frame before it."""

    frame: Event | None = None
    code: str | None = None


class BoxReader:
    """Follows one box from its title to its lower edge."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._frame = lexicon.by_id.get("syntax.frame_boxed")
        self._code = lexicon.by_id.get("syntax.code_boxed")
        self._peel = lexicon.peel_prefix
        self.open = False
        self._outside = 0
        self._path = ""
        self._failing = ""

    def begin(self) -> None:
        """The title has come."""
        self.open = self._frame is not None and self._code is not None
        self._outside = 0
        self._path = self._failing = ""

    def offer(self, text: str, place: Place) -> BoxRow | None:
        """What the line says if it is a row of the box; None if it is none."""
        found = _SYNTAX.row.match(text) or _SYNTAX.row.match(self._peel(text))
        if found is None:
            self._outside += 1
            if _SYNTAX.edge.match(text) or self._outside > MAX_OUTSIDE:
                self.open = False
            return None
        self._outside = 0
        row = found[1].rstrip()
        row = row[:-1].rstrip() if row[-1:] in _RIGHT else row
        marked = self._code.match(row) if self._code else None
        if marked is not None:
            self._path = ""
            self._failing = _SYNTAX.guides.sub("", marked["code"]).rstrip()
            return BoxRow(code=self._failing)
        if _SYNTAX.numbered.match(row) or not row.strip():
            self._path = self._failing = ""
            return BoxRow()
        if self._failing and row[:1] in " │┃|":
            self._failing = (self._failing + " " + _SYNTAX.guides.sub("", row))[:MAX_PENDING]
            return BoxRow(code=self._failing)
        return self._row_of_path(row, place)

    def _row_of_path(self, row: str, place: Place) -> BoxRow:
        self._failing = ""
        between = " " if self._path.endswith(" in") else ""
        self._path = (self._path + between + row.strip())[-MAX_PENDING:]
        frame = self._frame.match(self._path) if self._frame else None
        if frame is None:
            return BoxRow()
        self._path = ""
        groups = {name: LogText(frame[name]) for name in ("path", "line", "function")}
        return BoxRow(Event(place, "syntax.frame_boxed", "marker", LogText(row), groups=groups, event="frame"))
