"""How far the reading of a long input is, on stderr, for somebody who sits at the terminal and waits."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from postmortem.intake.sources import LogFile

WAIT_S = 1.0
"""Nobody needs to be told of what takes less."""
EVERY_S = 0.2


@contextlib.contextmanager
def reading(logs: Sequence[LogFile], *, quiet: bool = False) -> Iterator[Callable[[int], None] | None]:
    """What to tell of every piece that was read of `logs`; None where nobody would see it."""
    if quiet or not _seen():
        yield None
        return
    sizes = [log.size for log in logs]
    meter = _Meter(sum(size for size in sizes if size is not None) if None not in sizes else None)
    try:
        yield meter.told
    finally:
        meter.close()


class _Meter:
    """Counts, and draws at most every `EVERY_S` seconds, the first time after `WAIT_S`: the scan must not feel it."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._done = 0
        self._drawn: Any = None
        self._begun = time.monotonic()
        self._next = self._begun + WAIT_S

    def told(self, count: int) -> None:
        """`count` more bytes were read."""
        self._done += count
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        with contextlib.suppress(OSError, ValueError):  # a terminal that has gone is no reason to stop
            if self._drawn is None:
                self._drawn = _bar(self._total)
                self._drawn.start()
            rate = self._done / (now - self._begun)
            left = (self._total - self._done) / rate if self._total else None
            self._drawn.update(0, completed=self._done, said=_said(self._done, self._total, rate, left), refresh=True)

    def close(self) -> None:
        """Take it off the screen."""
        if self._drawn is not None:
            with contextlib.suppress(OSError, ValueError):
                self._drawn.stop()


def _seen() -> bool:
    """Whether stderr is a terminal on which a line can be drawn anew."""
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _bar(total: int | None) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.fields[said]}", markup=False))
    shown = Progress(
        *(columns if total else columns[1:]),
        console=Console(stderr=True, highlight=False, emoji=False),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    shown.add_task("", total=total, said="")
    return shown


def _said(done: int, total: int | None, rate: float, left_s: float | None) -> str:
    """Figures only, so that there is nothing to translate."""
    from postmortem.report.texts import size

    parts = [f"{size(done / 2**20)} / {size(total / 2**20)}" if total else size(done / 2**20)]
    parts.append(f"{size(rate / 2**20)}/s")
    if left_s is not None:
        whole = max(0, round(left_s))
        parts.append(f"{whole // 60}:{whole % 60:02d}")
    return "  ".join(parts)


class Steps:
    """Counts what is done of many runs."""

    def __init__(self, progress: Any, task: Any) -> None:
        self._progress = progress
        self._task = task

    def step(self, _: object = None) -> None:
        """One more is done."""
        self._progress.advance(self._task)

    def steps(self, count: int) -> None:
        """So many more are done."""
        self._progress.advance(self._task, count)


@contextlib.contextmanager
def bar(total: int) -> Iterator[Steps | None]:
    """A bar over `total` runs (0: not yet known) with rate and remaining time; None where nobody would see it."""
    if not _seen() or total == 1:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.speed:.0f}/s"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Steps(progress, progress.add_task("", total=total or None))
