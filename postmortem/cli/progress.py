"""How far long work is, on stderr, and only where a person watches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SLOW_S = 1.0
"""Work that is done sooner shows nothing."""


class Steps:
    """Counts what is done of `total`."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress = progress
        self._task = task

    def step(self, _: object = None) -> None:
        """One more is done."""
        self._progress.advance(self._task)

    def steps(self, count: int) -> None:
        """So many more are done."""
        self._progress.advance(self._task, count)


@contextmanager
def bar(total: int) -> Iterator[Steps | None]:
    """A bar with rate and remaining time; None where stderr is no terminal. A `total` of 0 is one not yet known."""
    if sys.stderr is None or not sys.stderr.isatty() or total == 1:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.speed:.0f}/s"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Steps(progress, progress.add_task("", total=total or None))
