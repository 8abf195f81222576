"""Read the process config that AI Toolkit prints as indented JSON at the start of a job.

Everything inside it is configuration: a prompt or a path there that quotes an error changes nothing.
Other output (warnings on stderr) may stand between its lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from postmortem.jobconfig.parse import integer
from postmortem.model import ConfigDump, Place
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.segments import MAX_TEXT, Region
from postmortem.text import seen, strip_escapes

MAX_LINES = 20_000
MAX_CHARS = 1_000_000
MAX_ENDLESS = 3
"""Objects of a job that are longer than is read; behind them none is taken for a config until the next job starts."""
MAX_PATH = 400
"""Longer than the path of any setting; that of an object in an object in an object could be as long as the log."""
MAX_KNOWN, MAX_SHORT = 4096, 200
"""Lines of configs that are kept bare, and bytes of one: the runs of a fleet say mostly the same."""
_INSIDE = re.compile(r"\s+(?:[\"\[\]{}]|-?\d|true|false|null)|\}\s*$")
_FLAT = r'(?:"(?:[^"\\]|\\.){0,4000}"(?:\s*:.*)?|[\[{]|[\]}]|-?\d[\d.eE+-]{0,40}|true|false|null),?\s*$'
"""A row of a config that was pasted without its indentation; compiled where there is one, which is rare."""
_KEY = re.compile(r'(\s*)"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*(.*)$')


class _Row(NamedTuple):
    """A line of a config: bare, as it is seen (empty if nothing is), and whether it may stand in a config."""

    text: str
    shown: str
    inside: bool


_Read = tuple[bytes, "Mapping[str, Any] | None", dict[str, int], int]
"""A config that was read whole: the bytes of its lines behind the first, what they say, and where: the line of each
path and of the end, counted from the second."""


class DumpReader:
    """Watches for a line that is just ``{`` and takes the JSON object that it opens."""

    def __init__(self, lexicon: Lexicon, source: str) -> None:
        self._peel = lexicon.peel_prefix
        self._known = lexicon.settings
        self._source = source
        self._rows: list[tuple[str, int]] = []
        self._chars = 0
        self._flat = False
        self._depth = 1
        self._place: Place | None = None
        self.endless = 0
        """Objects since the job's start that were longer than is read."""
        self.ready: ConfigDump | None = None
        self._latest: _Read | None = None
        """The newest config: the jobs of a queue mostly print the same one."""

    @property
    def open(self) -> bool:
        """Whether an object has been opened and not closed."""
        return self._place is not None

    @property
    def opens(self) -> bool:
        """Whether an object may open."""
        return self.endless < MAX_ENDLESS

    def offer(self, raw: str, place: Place, *, opens: bool = True) -> bool:
        """True if the line belongs to a dump (and so means nothing else). Only one that `opens` may open one."""
        if self._place is None:
            if opens and self.opens and raw.rstrip().endswith("{") and self._peel(raw).strip() == "{":
                self._place = place
                self._rows = [("{", place.line)]
                self._chars = 0
                self._flat, self._depth = False, 1
                return True
            return False
        text = self._peel(raw).rstrip()
        shown = seen(text)
        if not shown.strip():
            return True
        if len(self._rows) == 1 and not _KEY.match(shown):
            self._drop()
            return self.offer(raw, place, opens=opens)
        if len(self._rows) == 1:
            self._flat = not shown[0].isspace()
        return self._row(text, shown, place.line)

    def read(self, region: Region, at: int, line_of: Callable[[int], int], quiet: int = 0) -> int:
        """Take the lines of the open dump from byte `at` of `region` on, as if each were offered; the byte at which the
        first starts that is not plainly one of its. Of the lines before byte `quiet` others are passed over."""
        if self._flat:
            return at  # few are: line by line
        raw, size = region.raw, len(region.raw)
        line = line_of(at)
        if len(self._rows) == 1 and self._latest is not None and raw.startswith(self._latest[0], at):
            self._repeat(self._latest, line)
            return at + len(self._latest[0])
        first = at if len(self._rows) == 1 else -1
        begin = line
        while self._place is not None and at < size:
            stop = raw.find(b"\n", at)
            stop = size if stop == -1 else stop
            if stop - at > MAX_TEXT or raw.find(b"\r", at, stop - 1) != -1:
                break
            whole = raw[at:stop]
            row = self._known.get(whole) or self._look(whole)
            if row.shown:
                if len(self._rows) == 1 and (not _KEY.match(row.shown) or not row.shown[0].isspace()):
                    break
                if row.inside:
                    self._take(row.text, row.shown, line)
                elif stop >= quiet:
                    break
                else:
                    first = -1
            at = stop + 1
            line += 1
        if 0 <= first < at <= size and self.ready is not None and self.ready.value is not None:
            done = self.ready
            lines = {path: there - begin for path, there in done.lines.items()}
            self._latest = raw[first:at], done.value, lines, done.last_line - begin
        return min(at, size)

    def _repeat(self, read: _Read, line: int) -> None:
        """Take the same config once more, the second line of which is `line`."""
        assert self._place is not None
        _, value, lines, end = read
        self.ready = ConfigDump(self._place, line + end, value, {path: line + there for path, there in lines.items()})
        self._drop()

    def _look(self, line: bytes) -> _Row:
        text = self._peel(strip_escapes(line.decode("utf-8", "replace"))).rstrip()
        shown = seen(text)
        row = _Row(text, shown if shown.strip() else "", _INSIDE.match(shown) is not None)
        if len(line) < MAX_SHORT:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[line] = row
        return row

    def _row(self, text: str, shown: str, line: int) -> bool:
        if not (re.match(_FLAT, shown) if self._flat else _INSIDE.match(shown)):
            return False
        self._take(text, shown, line)
        return True

    def _take(self, text: str, shown: str, line: int) -> None:
        self._rows.append((text, line))
        self._chars += len(text)
        if self._flat:
            self._depth += shown.rstrip().endswith(("{", "[")) - shown.startswith(("}", "]"))
        if self._depth == 0 if self._flat else shown == "}":
            self._close()
        elif len(self._rows) > MAX_LINES or self._chars > MAX_CHARS:
            self.endless += 1
            self.abandon()

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


@lru_cache(maxsize=MAX_KNOWN)
def _parts(text: str) -> tuple[str | None, str]:
    """The key that a row names, if any, and what is left of it."""
    key = _KEY.match(text)
    return (key[2], key[3]) if key else (None, text.strip())


def _paths(rows: list[tuple[str, int]]) -> dict[str, int]:
    """Dotted path → physical line, from the indentation that ``json.dumps(indent=4)`` gives."""
    found: dict[str, int] = {}
    # the path of each open object or list (None: too long to be one of a setting) and how many elements it had
    stack: list[tuple[str | None, int | None]] = []
    for text, line in rows[1:-1]:
        name, value = _parts(text) if len(text) < MAX_SHORT else _parts.__wrapped__(text)
        if name is None and value[0] in "]}":
            if stack:
                stack.pop()
            continue
        outer, count = stack[-1] if stack else ("", None)
        if name is None:
            if count is None:
                continue
            stack[-1] = (outer, count + 1)
            name = f"[{count}]"
        path = None
        if outer is not None and len(outer) + len(name) < MAX_PATH:
            path = outer + name if name.startswith("[") or not outer else f"{outer}.{name}"
            found[path] = line
        if value in ("{", "["):
            stack.append((path, 0 if value == "[" else None))
    return found
