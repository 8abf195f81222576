"""The report files of a run: which of them are ours, and how they are written, noted and taken away."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path

from postmortem.files import sweep
from postmortem.fleet.watch.stamp import Stamp, compose, parse

NAMES = ("postmortem", "postmortem-watch")
"""The second one is taken where the first is a file of the user's own."""
MAX_BYTES = 64 * 1024 * 1024
STALE_S = 5.0
"""No watcher of ours writes for so long: what is older and half written was left by one that was killed."""

Write = Callable[[str, Path], None]
"""Writes a file whole or not at all. Raises NotWritten."""


class NotWritten(Exception):
    """A report could not be written; the message says why."""


class Foreign(NotWritten):
    """All names that a report may have are taken by files that we did not write."""


class Reports:
    """The reports beside one run: `stem` is put in front of their names (``run.log.`` for a loose log)."""

    def __init__(self, folder: Path, stem: str, suffixes: Sequence[str], write: Write) -> None:
        self._folder = folder
        self._stem = stem
        self._suffixes = suffixes
        self._write = write

    def meet(self) -> Stamp | None:
        """The same as `stamp`, at first sight: what an earlier watcher may have left half written goes."""
        sweep(self._folder, STALE_S)
        return self.stamp()

    def stamp(self) -> Stamp | None:
        """The mark of the report that is there; None without one of ours."""
        for suffix in self._suffixes:
            for name in NAMES:
                found = _read(self._path(name, suffix), suffix)
                if found is not None:
                    return found[0]
        return None

    def put(self, stamp: Stamp, note: list[str], reports: dict[str, str]) -> list[Path]:
        """Write the report in each form; where it stands then. Raises NotWritten, with what could be written there."""
        sweep(self._folder, STALE_S)
        done: list[Path] = []
        for suffix, report in reports.items():
            path = self._mine(suffix)
            self._write(compose(suffix, stamp, note, report), path)
            done.append(path)
        return done

    def annotate(self, stamp: Stamp, note: list[str]) -> list[Path]:
        """Give the reports that are there another standing note, and the mark that says so. Raises NotWritten."""
        done: list[Path] = []
        for suffix in self._suffixes:
            for name in NAMES:
                path = self._path(name, suffix)
                found = _read(path, suffix)
                if found is not None:
                    self._write(compose(suffix, stamp, note, found[1]), path)
                    done.append(path)
        return done

    def remove(self) -> list[Path]:
        """Take our reports away; those that went. Raises NotWritten."""
        gone: list[Path] = []
        for suffix in self._suffixes:
            for name in NAMES:
                path = self._path(name, suffix)
                if _read(path, suffix) is not None:
                    try:
                        path.unlink(missing_ok=True)
                    except OSError as error:
                        raise NotWritten((error.strerror or type(error).__name__).lower()) from None
                    gone.append(path)
        return gone

    def _path(self, name: str, suffix: str) -> Path:
        return self._folder / f"{self._stem}{name}{suffix}"

    def _mine(self, suffix: str) -> Path:
        """The first name that is free or ours."""
        for name in NAMES:
            path = self._path(name, suffix)
            if not os.path.lexists(path) or _read(path, suffix) is not None:
                return path
        taken = " and ".join(self._path(name, suffix).name for name in NAMES)
        raise Foreign(f"{taken} are files that postmortem did not write")


def _read(path: Path, suffix: str) -> tuple[Stamp, str] | None:
    """The mark and the report in a file of ours. Links and what is no file are never ours."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
            return None
        return parse(suffix, path.read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
