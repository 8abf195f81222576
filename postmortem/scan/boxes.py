"""Read the traceback that Rich draws as a box: a path row, then rows of code with a mark at the failing one.

Paths and code that are wider than the box go on in the next row.
"""

from __future__ import annotations

import re

import msgspec

from postmortem.model import Event, Place
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText

MAX_OUTSIDE = 8
"""Lines of other output between rows, after which the box counts as ended."""
MAX_PENDING = 1200
_RIGHT = "│┃|"
# compiled where a log has a box, which few have
_ROW = r"\s*[│┃|] ?(.*)$"
_EDGE = r"\s*[╰└+][─━-]+[╯┘+]?\s*$"
_NUMBERED = r"(?:[❱>] ?)? {0,8}\d{1,9}(?: |$)"
_GUIDES = r"^(?:[│┃|]? +)*[│┃|]? *"


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
        found = re.match(_ROW, text) or re.match(_ROW, self._peel(text))
        if found is None:
            self._outside += 1
            if re.match(_EDGE, text) or self._outside > MAX_OUTSIDE:
                self.open = False
            return None
        self._outside = 0
        row = found[1].rstrip()
        row = row[:-1].rstrip() if row[-1:] in _RIGHT else row
        marked = self._code.match(row) if self._code else None
        if marked is not None:
            self._path = ""
            self._failing = re.sub(_GUIDES, "", marked["code"]).rstrip()
            return BoxRow(code=self._failing)
        if re.match(_NUMBERED, row) or not row.strip():
            self._path = self._failing = ""
            return BoxRow()
        if self._failing and row[:1] in " │┃|":
            self._failing = (self._failing + " " + re.sub(_GUIDES, "", row))[:MAX_PENDING]
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
