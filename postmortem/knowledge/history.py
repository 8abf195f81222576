"""AI Toolkit's history as tables: which code line stood where, and which fixed texts it could print, when.

`scripts/build_dating.py` writes them. They are read only when a log holds something that they can date, and
each once: a run without tracebacks never pays for the table of code lines. What comes out depends on the
tables' content alone.
"""

from __future__ import annotations

import binascii
import zlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

Range = tuple[int, int]
"""Half-open, of indexes into the versions; the number of versions as its end means: still so in the newest."""

_DIGEST = 3
MAX_KNOWN = 10_000
"""Answers that are remembered: the tracebacks of many runs ask the same."""


class Version(msgspec.Struct, frozen=True, array_like=True):
    """One commit that AI Toolkit's main branch stood at.

    `at` is when, in seconds; content that a merge brought in could first be had at `since_at`, when main stood
    at the version of index `since`.
    """

    at: int
    commit: str
    since: int
    since_at: int


class _Hunk(msgspec.Struct, frozen=True, array_like=True):
    start: int
    removed: int
    added: str


class _Change(msgspec.Struct, frozen=True, array_like=True):
    index: int
    hunks: list[_Hunk]


class _Commits(msgspec.Struct, frozen=True):
    commits: list[Version]


class _Frames(msgspec.Struct, frozen=True):
    files: dict[str, list[_Change]]


class _Wordings(msgspec.Struct, frozen=True):
    wordings: dict[str, list[tuple[int, int | None]]]


class History:
    """The tables, read through `read` (a table's name to its bytes) when first asked."""

    def __init__(self, read: Callable[[str], bytes]) -> None:
        self._read = read
        self._known: dict[tuple[str, int, str], list[Range]] = {}

    @cached_property
    def versions(self) -> Sequence[Version]:
        """All versions, oldest first; the first stands for everything before it too."""
        return msgspec.json.decode(self._read("commits"), type=_Commits).commits

    @cached_property
    def _files(self) -> dict[str, list[_Change]]:
        return msgspec.json.decode(self._read("frames"), type=_Frames).files

    @cached_property
    def _wordings(self) -> dict[str, list[tuple[int, int | None]]]:
        return msgspec.json.decode(self._read("wordings"), type=_Wordings).wordings

    def index_of(self, commit: str) -> int | None:
        """The version that a commit (seven or more digits) made."""
        return next((n for n, version in enumerate(self.versions) if version.commit == commit[:7]), None)

    def wording(self, text: str) -> list[Range] | None:
        """When AI Toolkit could print `text` as a whole line or as a bar's name; None for a text that it always could
        or never did."""
        spans = self._wordings.get(text)
        return None if spans is None else [self._range(start, end) for start, end in spans]

    def path_of(self, path: str) -> str | None:
        """The path in the repository of a file in a traceback, if it is one of the table."""
        parts = path.replace("\\", "/").split("/")
        if "site-packages" in parts or "dist-packages" in parts:
            return None
        return next((known for n in (4, 3, 2, 1) if (known := "/".join(parts[-n:])) in self._files), None)

    def code(self, path: str, questions: Sequence[tuple[int, str]]) -> list[list[Range]]:
        """For each (line number, code line) of the file `path`: when that line of it read so."""
        known = self._known
        if len(known) > MAX_KNOWN:
            known.clear()
        new = [(line, code) for line, code in questions if (path, line, code) not in known]
        if new:
            known.update(((path, *question), found) for question, found in zip(new, self._looked_up(path, new)))
        return [known[path, line, code] for line, code in questions]

    def _looked_up(self, path: str, questions: Sequence[tuple[int, str]]) -> list[list[Range]]:
        wanted = [(_DIGEST * (line - 1), _digest(code)) for line, code in questions]
        found: list[list[Range]] = [[] for _ in questions]
        lines = bytearray()
        changes = self._files[path]
        for place, change in enumerate(changes):
            for hunk in change.hunks:
                start = _DIGEST * hunk.start
                lines[start : start + _DIGEST * hunk.removed] = binascii.a2b_base64(hunk.added)
            after = changes[place + 1].index if place + 1 < len(changes) else None
            for ranges, (at, digest) in zip(found, wanted):
                if at >= 0 and lines[at : at + _DIGEST] == digest:
                    first, end = self._range(change.index, after)
                    if ranges and first <= ranges[-1][1]:
                        first = min(ranges.pop()[0], first)
                    ranges.append((first, end))
        return found

    def _range(self, start: int, end: int | None) -> Range:
        return self.versions[start].since, len(self.versions) if end is None else end


def _digest(code: str) -> bytes:
    """Three bytes for one stripped code line, as the script that builds the table works them out."""
    return zlib.crc32(code.strip().encode()).to_bytes(4, "big")[4 - _DIGEST :]


def history_in(folder: Path) -> History:
    """The history whose tables lie in ``dating/`` of a folder of patterns."""
    return History(lambda name: (folder / "dating" / f"{name}.json").read_bytes())
