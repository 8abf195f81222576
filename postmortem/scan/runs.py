"""Draws of one bar that differ in their digits only, taken together: the same as one by one, at the speed of memory.

tqdm draws a bar thousands of times before a digit more, or a block more of the meter, changes its form. Such draws
stand in memory as the rows of a table. One comparison over all its bytes with the first row proves that they are what
it is (`scan/tables.py`); counts and changes are then read column by column. Only large logs come here, and numpy is
loaded for them only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from postmortem.scan.forms import Counts, Flags, Form
from postmortem.scan.segments import Draw

_WORD = 8
_DECIMAL = [
    (np.uint64(factor), np.uint64(shift), np.uint64(mask))
    for factor, shift, mask in (
        (10 * 256 + 1, 8, 0x00FF00FF00FF00FF),
        (100 * 65536 + 1, 16, 0x0000FFFF0000FFFF),
        (10000 * 4294967296 + 1, 32, 0xFFFFFFFF),
    )
]
"""Eight digits in a word, the first in its lowest byte, to their number."""


class Even(msgspec.Struct, frozen=True):
    """Where rows that are equally wide start and end in their block."""

    at: int
    width: int

    def start(self, row: int) -> int:
        return self.at + row * self.width

    def end(self, row: int) -> int:
        return self.at + (row + 1) * self.width


class Uneven(msgspec.Struct, frozen=True):
    """Where rows that are not start, and where the last one ends."""

    cuts: npt.NDArray[np.int32]

    def start(self, row: int) -> int:
        return int(self.cuts[row])

    def end(self, row: int) -> int:
        return int(self.cuts[row + 1])


class Places(msgspec.Struct, frozen=True):
    """Where in the log rows stand, from that in their block.

    `line` is that of the first, `feeds` 1 for a row a line, `base` the block's first byte, `returned` 1 where a row
    starts with a carriage return, `behind` what stands in a row behind its bar.
    """

    line: int
    feeds: int
    base: int
    returned: int
    behind: int


class Told(msgspec.Struct, frozen=True):
    """What rows say of their bar: which are draws of their own, the counts left unproven, the last count proven."""

    rows: range | Counts
    left: Sequence[tuple[int, int]]
    proven: int
    twin: bool


class Table(msgspec.Struct, frozen=True):
    """Rows as equally wide columns of bytes: that of row 0 starts at `at`, and a row stands before it."""

    buffer: bytes
    at: int
    width: int

    def column(self, first: int, last: int, rows: int, kind: str | None = None) -> npt.NDArray[Any]:
        """A part of each row, of the one before the first too, as text or as numpy's `kind`."""
        start = self.at - self.width + first
        part: npt.NDArray[Any] = np.ndarray((rows + 1,), kind or f"S{last - first}", self.buffer, start, (self.width,))
        return part


class Run:
    """Rows of a form, from 0, that stand in a block; the row before them is the draw that was read as their form.

    `table` has the same rows, `stop` is where in the block they end. What a run says needs the table only until it was
    `read`; it may then go to another process without it and without its block, and be given this there (`block`).
    """

    def __init__(
        self, block: bytes, rows: int, form: Form, table: Table, where: Even | Uneven, places: Places, stop: int
    ) -> None:
        self.rows = rows
        self.stop = stop
        self.feeds = places.feeds
        self.block = block
        self._parts = form.parts
        self._table: Table | None = table
        self._where, self._places = where, places

    def __getstate__(self) -> dict[str, Any]:
        return {**self.read().__dict__, "block": b"", "_table": None}

    def read(self) -> Run:
        """Itself, with all read that only its table tells."""
        self._counts, self._postfixes, self._clocks, self._falls, self._plain  # noqa: B018
        return self

    def draw(self, row: int) -> Draw:
        """One of the draws, as the cutter gives it."""
        n, total = self._part(row, self._parts.n), self._part(row, self._parts.total)
        return (self.name(row), n, total, self.elapsed(row), self.postfix(row), *self.place(row))

    def place(self, row: int) -> tuple[int, int, int]:
        """(line, offset, end) of a row's bar."""
        there = self._places
        line = there.line + row * there.feeds
        start, end = self._where.start(row) + there.returned, self._where.end(row) - there.behind
        return line, there.base + start, there.base + end

    def name(self, row: int) -> bytes:
        """The description in a row."""
        return self._part(row, self._parts.name)

    def elapsed(self, row: int) -> bytes:
        """The bar's clock in a row."""
        return self._part(row, self._parts.elapsed)

    def postfix(self, row: int) -> bytes:
        """The postfix in a row."""
        first, last = self._parts.postfix
        end = self._where.end(row) - self._parts.width
        return self.block[end + first : end + last]

    def columns(self, rows: range | Counts) -> tuple[list[int], list[bytes], list[int], list[bytes]]:
        """Counts, elapsed, lines and descriptions of several rows, a list for each."""
        block, line, feeds = self.block, self._places.line, self._places.feeds
        first, last = self._parts.elapsed
        indices = list(rows) if isinstance(rows, range) else rows.tolist()
        starts = [self._where.start(index) for index in indices]
        name = self.name(0)
        return (
            self._counts[np.asarray(rows, np.int64) + 1].tolist(),
            [block[start + first : start + last] for start in starts],
            [line + index * feeds for index in indices],
            [self.name(index) for index in indices] if self._parts.stamped else [name] * len(indices),
        )

    def count(self, row: int) -> int:
        """The count in a row."""
        return int(self._counts[row + 1])

    def rises_to(self, row: int) -> int:
        """The first row from `row` on whose count is lower than the one before it, or how many rows there are."""
        index = bisect_left(self._falls, row)
        return self._falls[index] if index < len(self._falls) else self.rows

    def told(self, first: int, last: int, proven: int, twin: bool | None) -> Told:
        """What the rows from `first` to before `last` say; none has a lower count than the row before it.

        `proven` is the last count known to be finished. Where the log has its draws twice, `twin` is whether the row
        before was the second of a pair; else it is None.
        """
        before = self.count(first - 1)
        if twin is None and self._plain is not None and (proven >= before or self.count(first) == before):
            newest = self.count(self._plain) if self._plain >= first else proven
            return Told(range(first, last), (), max(proven, newest), False)
        part = slice(first + 1, last + 1)
        n, steps = self._counts[part], self._steps[first:last]
        changed = self._postfixes[first:last]
        rows: range | Counts = range(first, last)
        if twin is not None:
            same = (steps == 0) & ~changed & ~self._clocks[first:last]
            twins = _second(same, twin)
            twin = bool(twins[-1])
            own = np.flatnonzero(~twins)
            n, steps, changed = n[own], steps[own], changed[own]
            rows = own + first
        if not len(n):
            return Told(rows, (), proven, bool(twin))
        return Told(rows, *_left(n, steps, *self._proves(steps, changed), proven), bool(twin))

    def _proves(self, steps: Counts, changed: Flags) -> tuple[Flags, Flags]:
        """Which rows count on, and which say that what they count is finished."""
        rises = steps > 0
        said = self._parts.postfix[0] < self._parts.postfix[1]
        return rises, changed | ~rises if said else changed

    @cached_property
    def _plain(self) -> int | None:
        """Where each count is proven by the row before the next, as it mostly is, the last row that proves one (-1:
        none does); else None."""
        rises, proves = self._proves(self._steps, self._postfixes)
        if self._falls or self._steps.max() > 1 or not (proves[:-1] | ~rises[1:]).all():
            return None
        last = self.rows - 1 - int(proves[::-1].argmax())
        return last if proves[last] else -1

    def _part(self, row: int, part: tuple[int, int]) -> bytes:
        start = self._where.start(row)
        return self.block[start + part[0] : start + part[1]]

    @cached_property
    def _counts(self) -> Counts:
        """The counts, with that of the row before the first."""
        first, last = self._parts.n
        assert self._table is not None
        if last - first > _WORD or last < _WORD:
            return np.array([int(count) for count in self._table.column(first, last, self.rows)], np.int64)
        # the digits are the last bytes of a word; two, then four, then eight of them are made one number at a time
        word = self._table.column(last - _WORD, last, self.rows, "<u8")
        found = word & np.uint64(0x0F0F0F0F0F0F0F0F >> (8 * (first - last + _WORD)) << (8 * (first - last + _WORD)))
        for factor, shift, mask in _DECIMAL:
            found *= factor
            found >>= shift
            found &= mask
        counts: Counts = found.view(np.int64)
        return counts

    @cached_property
    def _postfixes(self) -> Flags:
        """Whether each row's postfix is another than that of the row before it."""
        return self._changed(self._parts.postfix)

    @cached_property
    def _clocks(self) -> Flags:
        """Whether its clock is."""
        return self._changed(self._parts.elapsed)

    @cached_property
    def _falls(self) -> list[int]:
        falls: list[int] = np.flatnonzero(self._steps < 0).tolist()
        return falls

    @cached_property
    def _steps(self) -> Counts:
        """How much more each row counts than the row before it."""
        steps: Counts = self._counts[1:] - self._counts[:-1]
        return steps

    def _changed(self, part: tuple[int, int]) -> Flags:
        """Whether a part differs in a row from the row before it."""
        if part[0] == part[1]:
            return np.zeros(self.rows, np.bool_)
        assert self._table is not None
        text = self._table.column(*part, self.rows)
        changed: Flags = text[1:] != text[:-1]
        return changed


def _second(same: Flags, twin: bool) -> Flags:
    """Which rows are the second of a pair: every other one of those that are the same as the row before them.

    `twin` is whether the row before all of them was.
    """
    index = np.arange(len(same))
    new = np.maximum.accumulate(np.where(same, -2 if twin else -1, index))
    second: Flags = same & ((index - new) % 2 == 1)
    return second


def _merged(starts: Counts, ends: Counts) -> list[tuple[int, int]]:
    """Ranges, with those that touch made one."""
    apart = np.flatnonzero(starts[1:] != ends[:-1])
    first = starts[np.concatenate(([0], apart + 1))].tolist()
    last = ends[np.concatenate((apart, [len(ends) - 1]))].tolist()
    return list(zip(first, last, strict=True))


def _left(n: Counts, steps: Counts, rises: Flags, proves: Flags, proven: int) -> tuple[list[tuple[int, int]], int]:
    """The counts that rows leave unproven, and the last one that they or the rows before them prove.

    `steps` is how much more each row counts than the row before it.
    """
    before = n - steps
    reached = np.maximum.accumulate(np.where(proves, n, -1))
    known = np.empty_like(reached)
    known[0] = proven
    np.maximum(reached[:-1], proven, out=known[1:])
    bare = known < before
    where = np.flatnonzero(rises & (bare | (steps > 1)))
    left = _merged(before[where] + ~bare[where], n[where]) if len(where) else []
    return left, max(proven, int(reached[-1]))
