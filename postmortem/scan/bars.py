"""Progress bars: folded while they pass, so that a million draws cost a few numbers.

AI Toolkit finishes step k by redrawing its bar at count k with a new postfix, and only then counts on. A
skipped step leaves its count without that redraw. So the counts that a bar passes *without* a changed
postfix or a second draw are kept as `unproven`; the timeline decides what they mean.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from postmortem.model import BarSpan, Place, Stamp
from postmortem.text import LogText

if TYPE_CHECKING:
    from postmortem.scan.forms import Counts
    from postmortem.scan.runs import Run

_OF_A_BAR = " 0123456789%|/[]<:,.?#\u2588\u2589\u258a\u258b\u258c\u258d\u258e\u258f"
"""What tqdm draws behind a description, before any word."""
_TORN = re.compile(r" {1,3}\d{1,3}%")
MAX_RANGES = 4096
MAX_SAMPLES = 512
"""Draws kept of one span, to measure between."""
RECENT = 8
"""Draws before a span's end that are kept all: what came before an event is looked at closest."""
_DENSE = 64
_FARTHEST = 4096
_Sample = tuple[int, int, bytes, int, bytes]
"""Which draw of its bar, count, elapsed, line, description."""
_Rows = tuple[int, "Run", "range | Counts"]
"""Several of them that are not read yet: which draw the first is, and the rows of a run."""


@lru_cache(maxsize=64)
def seconds(clock: bytes) -> float:
    """`MM:SS` or `HH:MM:SS` as seconds; of digits and colons in any other order, what they come to."""
    total = 0
    for part in clock.split(b":"):
        total = total * 60 + int(part or 0)
    return float(total)


def without_bar(text: str, bare: str, names: Iterable[str], *, cut: bool) -> str:
    """What is left of a draw that was torn, once the description of a bar (one of `names`) is gone; else `text`.

    The description may quote an error: it is a name all the same. `bare` is `text` without its prefixes; `cut`: the log
    ends in the middle of this line.
    """
    for name in names:
        if name and bare.startswith(f"{name}:"):
            rest = bare[len(name) + 1 :]
            if _TORN.match(rest) or (cut and not rest.strip(" 0123456789")):
                return rest.lstrip(_OF_A_BAR)
        if name and cut and name.startswith(bare.rstrip()):
            return ""
    return text


class Fold:
    """The running state of one bar (one description and total), cut into spans by `take`."""

    def __init__(
        self, description: str, total: int, place: Place, *, event: str | None, phase: str | None, single: bool = False
    ) -> None:
        self.description = description
        self._named = LogText(description)
        self.total = total
        self.event = event
        self.phase = phase
        self._source = place.source
        if single:
            self._doubled = False

    n: int | None = None
    paused = False
    redrawn = False
    raw = b""
    """The description of the latest draw as it stands in the log, with what stands before it on its line."""
    raw_total = b""
    """Its total as it stood there, as long as both mean what they meant."""
    _postfix: bytes | None = None
    _elapsed = b""
    _proven = -1
    _start_n = _start_proofs = _start_blank = _start_said = 0
    _doubled: bool | None = None
    _twin = False
    _life = _draws = 0

    def _begin(self, n: int, line: int, offset: int, end: int) -> None:
        """The first draw of a span has come."""
        self._place = Place(line, offset, self._source, None, end)
        self._first_n = n
        self._first_raw = self.raw
        self._unproven: list[tuple[int, int]] = []
        self._samples: list[_Sample] = []
        self._recent: deque[_Sample] = deque(maxlen=RECENT)
        self._before: _Rows | None = None
        """The rows before the draws in `_recent`, as long as these are fewer than `RECENT`."""
        self._sparse = 1
        self._due = self._next(self._life)

    def draw(self, n: int, elapsed: bytes, postfix: bytes, line: int, offset: int, end: int = 0) -> None:
        """Take in one draw of the bar at count `n`."""
        if self._doubled is not False and self._is_twin(n, elapsed, postfix):
            return
        if not self._draws:
            self._begin(n, line, offset, end)
        sample = self._life, n, elapsed, line, self.raw
        self._recent.append(sample)
        if self._life == self._due:
            self._samples.append(sample)
            if len(self._samples) >= MAX_SAMPLES:
                self._thin()
            self._due = self._next(self._life + 1)
        self._draws += 1
        self._life += 1
        self._last = (line, offset, end)
        previous = self.n
        if previous is None:
            self._start_n = n
            if postfix:
                self._proven = n
                self._start_proofs = 1
        else:
            if n > previous:
                if self._proven < previous:
                    self._leave(previous, n)
                elif previous + 1 < n:
                    self._leave(previous + 1, n)
            # after a pause (preview, save) tqdm holds the count's own draw back: the next count, later, is a redraw
            redraw = self.paused and n == previous + 1 and elapsed != self._elapsed
            # what has no postfix yet has finished no step: it was drawn again because one was dropped
            if (n == previous and postfix) or postfix != self._postfix or redraw:
                self._proven = n
                if n == self._start_n and postfix != self._postfix:
                    self._start_proofs += 1
        if n == self._start_n:
            self._start_said += bool(postfix)
            self._start_blank += not postfix
        self.paused = False
        self.n = n
        self._postfix = postfix
        self._elapsed = elapsed

    @property
    def settled(self) -> bool:
        """Whether what the first draws of a bar and of its count decide is decided, so that `draw_run` may follow."""
        return bool(self._draws) and self._doubled is not None and not self.paused and (self.n or 0) > self._start_n

    def draw_run(self, run: Run, first: int, last: int) -> None:
        """Take in the rows from `first` to before `last` of a run, as `draw` would one by one.

        The row before them was drawn, the bar is `settled`, and none of them has a lower count than the one before.
        """
        told = run.told(first, last, self._proven, self._twin if self._doubled else None)
        self._proven, self._twin = told.proven, told.twin
        self.raw = run.name(last - 1)
        for start, end in told.left:
            self._leave(start, end)
        count = len(told.rows)
        if not count:
            return
        start, end = self._life, self._life + count
        newest = max(0, count - RECENT)
        if newest:
            self._recent.clear()
            self._before = start + newest, run, told.rows[newest:]
        else:
            self._recent.extend(zip(range(start, end), *run.columns(told.rows), strict=True))
        while self._life < end:
            stride = self._stride(self._life)
            doubles = 2 * stride * _DENSE
            until = min(end, doubles) if doubles > self._life else end
            due = range(self._life + -self._life % stride, until, stride)[: MAX_SAMPLES - len(self._samples)]
            if due:
                rows = told.rows[due.start - start : due.stop - start : stride]
                self._samples += zip(due, *run.columns(rows), strict=True)
            self._life = until
            if len(self._samples) >= MAX_SAMPLES:
                self._life = due[-1]
                self._thin()
                self._life += 1
        self._due = self._next(self._life)
        self._draws += count
        row = int(told.rows[-1])
        self.n, self._elapsed, self._postfix = run.count(row), run.elapsed(row), run.postfix(row)
        self._last = run.place(row)

    def _next(self, life: int) -> int:
        """The first draw from the one with that number on which is kept."""
        if life < _DENSE and self._sparse == 1:
            return life
        return life + -life % self._stride(life)

    def _stride(self, life: int) -> int:
        """Every how many draws one is kept by then: a power of two."""
        return max(self._sparse, min(_FARTHEST, 1 << max(0, (life // _DENSE).bit_length() - 1)))

    def _thin(self) -> None:
        self._samples = self._samples[::2]
        self._sparse = 2 * self._stride(self._life)

    @property
    def single(self) -> bool:
        """Whether the bar shows that this log has its draws once."""
        return self._doubled is False

    def _is_twin(self, n: int, elapsed: bytes, postfix: bytes) -> bool:
        """Whether this draw is the one before it, written twice: what then says nothing of a finished step.

        AI Toolkit's `--log` wrote stderr twice until July 2026. It shows in the first draw, which nothing redraws but
        a first step that was dropped within a second: an earlier bar of the log tells the two apart (`single`).
        """
        same = n == self.n and elapsed == self._elapsed and postfix == self._postfix
        if self._doubled is None and self.n is not None:
            self._doubled = same and not postfix
        self._twin = bool(self._doubled) and same and not self._twin
        return self._twin

    def _leave(self, start: int, end: int) -> None:
        if self._unproven and self._unproven[-1][1] == start:
            self._unproven[-1] = (self._unproven[-1][0], end)
        elif len(self._unproven) < MAX_RANGES:
            self._unproven.append((start, end))

    def take(self, stamp: Callable[[bytes], Stamp | None] = lambda raw: None) -> BarSpan | None:
        """The draws since the last call as one span, or None if there were none; `stamp` reads a line's time."""
        if not self._draws or self.n is None:
            return None
        samples = self._all_samples()
        line, offset, behind = self._last
        last = Place(line, offset, self._source, stamp(self.raw), behind)
        # a bar whose last draw has no time is not stamped draw by draw either
        walls = [stamp(sample[4]) for sample in samples] if last.stamp is not None else []
        postfix = (self._postfix or b"").decode("utf-8", "replace").lstrip(", ")
        place = self._place
        began = stamp(self._first_raw)
        span = BarSpan(
            place=place if began is None else Place(place.line, place.offset, place.source, began, place.end),
            last_place=last,
            description=self._named,
            total=self.total,
            first_n=self._first_n,
            last_n=self.n,
            draws=self._draws,
            unproven=tuple(self._unproven),
            samples=tuple([(n, seconds(clock), line) for _, n, clock, line, _ in samples]),
            walls=tuple(wall for wall in walls if wall is not None) if None not in walls else (),
            postfix=LogText(postfix),
            event=self.event,
            phase=self.phase,
            start_proofs=self._start_proofs,
            start_blank=self._start_blank,
            start_said=self._start_said,
            start_n=self._start_n,
            last_proven=self._proven >= self.n,
            redrawn=self.redrawn,
            proven_n=self._proven if self._proven >= 0 else None,
        )
        self._draws = 0
        return span

    def _all_samples(self) -> list[_Sample]:
        """The draws that were kept, the last few and the last one included."""
        newest = list(self._recent)
        missing = RECENT - len(newest)
        if self._before is not None and missing:
            first, run, rows = self._before
            due = range(first + len(rows) - missing, first + len(rows))
            newest[:0] = zip(due, *run.columns(rows[-missing:]), strict=True)
        closest = newest[0][0]
        # a twin is no draw of its own, but says where the bar was last
        last = self._life, self.n or 0, self._elapsed, self._last[0], self.raw
        if newest[-1][1:] != last[1:]:
            newest.append(last)
        if self._samples and self._samples[-1][0] >= closest:
            return [sample for sample in self._samples if sample[0] < closest] + newest
        return self._samples + newest
