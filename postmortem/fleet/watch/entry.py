"""One run as the watcher follows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from postmortem.fleet.watch.files import Reports, Write
from postmortem.fleet.watch.state import Run


class Entry(msgspec.Struct):
    """Where a run is, how it stands, and the reports beside it.

    `grown` counts how often its log grew since it was judged; `trouble` is the last fault that was told, so that it is
    told once; `retry_s` is how long the next wait is before a report that could not be written is tried again.
    """

    path: Path
    folder: bool
    run: Run
    reports: Reports
    grown: int = 0
    trouble: tuple[str, str] | None = None
    retry_s: float = 60.0

    @classmethod
    def of(cls, path: Path, suffixes: Sequence[str], write: Write, *, folder: bool) -> Entry:
        """A run that was just found: a run folder, or a loose log, whose reports bear its name."""
        place, stem = (path, "") if folder else (path.parent, f"{path.name}.")
        return cls(path, folder, Run(), Reports(place, stem, suffixes, write))
