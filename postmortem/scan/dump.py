"""Read the process config that AI Toolkit prints as indented JSON at the start of a job.

Everything inside it is configuration: a prompt or a path there that quotes an error changes nothing.
Other output (warnings on stderr) may stand between its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from postmortem.jobconfig.parse import integer
from postmortem.model import ConfigDump, Place
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.segments import MAX_TEXT, Region
from postmortem.text import seen, strip_escapes

MAX_LINES = 20_000
MAX_CHARS = 1_000_000
MAX_PATH = 400
"""Longer than the path of any setting; that of an object in an object in an object could be as long as the log."""
MAX_KNOWN, MAX_SHORT = 4096, 200
"""Lines of configs that are kept bare, and bytes of one: the runs of a fleet say mostly the same."""
_INSIDE = re.compile(r"\s+(?:[\"\[\]{}]|-?\d|true|false|null)|\}\s*$")
_KEY = re.compile(r'(\s*)"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*(.*)$')


class DumpReader:
    """Watches for a line that is just ``{`` and takes the JSON object that it opens."""

    def __init__(self, lexicon: Lexicon, source: str) -> None:
        self._peel = lexicon.peel_prefix
        self._known = lexicon.settings
        self._source = source
        self._rows: list[tuple[str, int]] = []
        self._chars = 0
        self._place: Place | None = None
        self.ready: ConfigDump | None = None

    @property
    def open(self) -> bool:
        """Whether an object has been opened and not closed."""
        return self._place is not None

    def offer(self, raw: str, place: Place, *, opens: bool = True) -> bool:
        """True if the line belongs to a dump (and so means nothing else). Only one that `opens` may open one."""
        if self._place is None:
            if opens and raw.rstrip().endswith("{") and self._peel(raw).strip() == "{":
                self._place = place
                self._rows = [("{", place.line)]
                self._chars = 0
                return True
            return False
        text = self._peel(raw).rstrip()
        shown = seen(text)
        if not shown.strip():
            return True
        if len(self._rows) == 1 and not _KEY.match(shown):
            self._drop()
            return self.offer(raw, place, opens=opens)
        return self._row(text, shown, place.line)

    def read(self, region: Region, at: int, line_of: Callable[[int], int]) -> int:
        """Take the lines of the open dump from byte `at` of `region` on, as if each were offered; the byte at which the
        first starts that is not plainly one of its."""
        raw = region.raw
        while self._place is not None and at < len(raw):
            stop = raw.find(b"\n", at)
            stop = len(raw) if stop == -1 else stop
            if stop - at > MAX_TEXT or raw.find(b"\r", at, stop - 1) != -1:
                break
            line = raw[at:stop]
            known = self._known.get(line)
            if known is None:
                text = self._peel(strip_escapes(line.decode("utf-8", "replace"))).rstrip()
                known = text, seen(text)
                if len(line) < MAX_SHORT:
                    if len(self._known) >= MAX_KNOWN:
                        self._known.clear()
                    self._known[line] = known
            text, shown = known
            if shown.strip():
                if len(self._rows) == 1 and not _KEY.match(shown):
                    break
                if not self._row(text, shown, line_of(at)):
                    break
            at = stop + 1
        return min(at, len(raw))

    def _row(self, text: str, shown: str, line: int) -> bool:
        if not _INSIDE.match(shown):
            return False
        self._rows.append((text, line))
        self._chars += len(text)
        if shown == "}":
            self._close()
        elif len(self._rows) > MAX_LINES or self._chars > MAX_CHARS:
            self.abandon()
        return True

    def take(self) -> ConfigDump:
        """The finished dump."""
        done = self.ready
        assert done is not None
        self.ready = None
        return done

    def abandon(self) -> None:
        """The object never closes (a truncated log): keep that it was there, with no value."""
        if len(self._rows) > 1:
            self._close()
        else:
            self._drop()

    def _drop(self) -> None:
        self._place = None
        self._rows = []

    def _close(self) -> None:
        assert self._place is not None
        value = _value(self._rows)
        if value is None:  # what shows nothing may stand between the values, where JSON allows none of it
            shown = [(seen(row), line) for row, line in self._rows]
            if shown != self._rows:
                self._rows, value = shown, _value(shown)
        self.ready = ConfigDump(self._place, self._rows[-1][1], value, _paths(self._rows) if value else {})
        self._drop()


def texts_of(value: Any) -> Iterator[str]:
    """All texts in a config: names, paths, prompts."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            stack += item.values()
        elif isinstance(item, list):
            stack += item


def _value(rows: list[tuple[str, int]]) -> dict[str, Any] | None:
    """The object that the rows are; None where they are none."""
    try:
        value = json.loads("\n".join(row for row, _ in rows), parse_int=integer)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _paths(rows: list[tuple[str, int]]) -> dict[str, int]:
    """Dotted path → physical line, from the indentation that ``json.dumps(indent=4)`` gives."""
    found: dict[str, int] = {}
    # the path of each open object or list (None: too long to be one of a setting) and how many elements it had
    stack: list[tuple[str | None, int | None]] = []
    for text, line in rows[1:-1]:
        stripped = text.strip()
        if stripped[0] in "]}":
            if stack:
                stack.pop()
            continue
        outer, count = stack[-1] if stack else ("", None)
        key = _KEY.match(text)
        if key:
            name, value = key.group(2), key.group(3)
        else:
            if count is None:
                continue
            stack[-1] = (outer, count + 1)
            name, value = f"[{count}]", stripped
        path = None
        if outer is not None and len(outer) + len(name) < MAX_PATH:
            path = outer + name if name.startswith("[") or not outer else f"{outer}.{name}"
            found[path] = line
        if value in ("{", "["):
            stack.append((path, 0 if value == "[" else None))
    return found
