"""Draws of one bar that differ in their digits only, taken together: the same as one by one, at the speed of memory.

tqdm draws a bar thousands of times before a digit more, or a block more of the meter, changes its length. Such draws
stand in memory as the rows of a table. One comparison over all its bytes with the first row proves that they are what
it is; counts and changes are then read column by column. Only large logs come here, and numpy is loaded for them only.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from postmortem.scan.segments import RETURN, Draw

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
MIN_ROWS = 12
"""Fewer rows than this are read one by one."""
_TABLE = 64 * 1024
"""Bytes that are compared at once: they and what is compared with them stay in the processor's cache."""
_KEPT = 8
_FEW = 64
_WORD = 8
_DIGITS = bytes(range(48, 58))
_NINE = bytes.maketrans(_DIGITS + bytes(range(0x80, 0x90)), b"9" * 10 + b"\x8f" * 16)
"""What may differ made the same: digits, and the last byte of a block of the meter."""
_BASE = bytes.maketrans(_DIGITS, b"0" * 10)
_SPAN = bytes(9 if code in _DIGITS else 0 for code in range(256))
_DECIMAL = [
    (np.uint64(factor), np.uint64(shift), np.uint64(mask))
    for factor, shift, mask in (
        (10 * 256 + 1, 8, 0x00FF00FF00FF00FF),
        (100 * 65536 + 1, 16, 0x0000FFFF0000FFFF),
        (10000 * 4294967296 + 1, 32, 0xFFFFFFFF),
    )
]
"""Eight digits in a word, the first in its lowest byte, to their number."""
_BLOCK = re.compile(rb"\xe2\x96[\x80-\x8f]")
"""A block of the meter, of which the last grows by eighths."""


class Form:
    """What the rows of a table have in common: which columns hold what, and which bytes may differ, how far."""

    def __init__(self, row: bytes, head: int, stamped: int, spans: Sequence[tuple[int, int]]) -> None:
        self.width = len(row)
        self.name = (0, head)
        self.stamped = stamped > 0
        self.n, self.total, self.elapsed, self.postfix = spans
        base, span = bytearray(row.translate(_BASE)), bytearray(row.translate(_SPAN))
        for first, last in ((stamped, head), self.total):
            base[first:last] = row[first:last]
            span[first:last] = bytes(last - first)
        for block in _BLOCK.finditer(row, head, self.n[0]):
            base[block.end() - 1], span[block.end() - 1] = 0x80, 0x0F
        self.base = np.frombuffer(base, np.uint8)
        self.span = np.frombuffer(span, np.uint8)

    @cached_property
    def tables(self) -> tuple[Bytes, Bytes]:
        """Base and span for as many rows as are compared at once."""
        rows = max(1, _TABLE // self.width)
        return np.tile(self.base, rows), np.tile(self.span, rows)


class Told(msgspec.Struct, frozen=True):
    """What rows say of their bar: which are draws of their own, the counts left unproven, the last count proven."""

    rows: range | Counts
    left: Sequence[tuple[int, int]]
    proven: int
    twin: bool


class Run:
    """The rows behind the draw that was read as their form, from 0; `feeds` is 1 for a row a line."""

    def __init__(self, block: bytes, at: int, rows: int, form: Form, feeds: int, place: tuple[int, int, int]) -> None:
        self.rows = rows
        self.feeds = feeds
        self.stop = at + rows * form.width
        self._block, self._at, self._form = block, at, form
        self._line, self._offset, self._end = place
        self._name = self.name(0)

    def draw(self, row: int) -> Draw:
        """One of the draws, as the cutter gives it."""
        form = self._form
        n, total = self._part(row, form.n), self._part(row, form.total)
        return (self.name(row), n, total, self.elapsed(row), self.postfix(row), *self.place(row))

    def name(self, row: int) -> bytes:
        """The description in a row."""
        return self._part(row, self._form.name)

    def elapsed(self, row: int) -> bytes:
        """The bar's clock in a row."""
        return self._part(row, self._form.elapsed)

    def postfix(self, row: int) -> bytes:
        """The postfix in a row."""
        return self._part(row, self._form.postfix)

    def place(self, row: int) -> tuple[int, int, int]:
        """(line, offset, end) of a row."""
        behind = row * self._form.width
        return self._line + row * self.feeds, self._offset + behind, self._end + behind

    def sample(self, row: int) -> tuple[int, bytes, int, bytes]:
        """(count, elapsed, line, description) of a row."""
        form = self._form
        start = self._at + row * form.width
        first, last = form.elapsed
        name = self._name if not form.stamped else self.name(row)
        return self.count(row), self._block[start + first : start + last], self._line + row * self.feeds, name

    def columns(self, rows: range | Counts) -> tuple[list[int], list[bytes], list[int], list[bytes]]:
        """The same of several rows, a list for each."""
        form, block = self._form, self._block
        first, last = form.elapsed
        indices = list(rows) if isinstance(rows, range) else rows.tolist()
        starts = [self._at + index * form.width for index in indices]
        return (
            self._counts[np.asarray(rows, np.int64) + 1].tolist(),
            [block[start + first : start + last] for start in starts],
            [self._line + index * self.feeds for index in indices],
            [self.name(index) for index in indices] if form.stamped else [self._name] * len(indices),
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
        part = slice(first + 1, last + 1)
        n, before = self._counts[part], self._counts[first:last]
        changed = self._changed(self._form.postfix)[first:last]
        rows: range | Counts = range(first, last)
        if twin is not None:
            same = (n == before) & ~changed & ~self._changed(self._form.elapsed)[first:last]
            twins = _second(same, twin)
            twin = bool(twins[-1])
            own = np.flatnonzero(~twins)
            n, before, changed = n[own], before[own], changed[own]
            rows = own + first
        if not len(n):
            return Told(rows, (), proven, bool(twin))
        rises = n > before
        said = self._form.postfix[0] < self._form.postfix[1]
        proves = changed | ~rises if said else changed
        return Told(rows, *_left(n, before, rises, proves, proven), bool(twin))

    def _part(self, row: int, part: tuple[int, int]) -> bytes:
        start = self._at + row * self._form.width
        return self._block[start + part[0] : start + part[1]]

    @cached_property
    def _counts(self) -> Counts:
        """The counts, with that of the row before the first."""
        first, last = self._form.n
        if last - first > _WORD or last < _WORD:
            return np.array([int(self._part(row, self._form.n)) for row in range(-1, self.rows)], np.int64)
        # the digits are the last bytes of a word; two, then four, then eight of them are made one number at a time
        width = self._form.width
        column = self._at - width + last - _WORD
        word = np.ndarray((self.rows + 1,), "<u8", self._block, column, (width,))
        found = word & np.uint64(0x0F0F0F0F0F0F0F0F >> (8 * (first - last + _WORD)) << (8 * (first - last + _WORD)))
        for factor, shift, mask in _DECIMAL:
            found *= factor
            found >>= shift
            found &= mask
        counts: Counts = found.view(np.int64)
        return counts

    @cached_property
    def _falls(self) -> list[int]:
        falls: list[int] = np.flatnonzero(self._counts[1:] < self._counts[:-1]).tolist()
        return falls

    def _changed(self, part: tuple[int, int]) -> Flags:
        """Whether a part differs in a row from the row before it."""
        first, last = part
        if first == last:
            return np.zeros(self.rows, np.bool_)
        width = self._form.width
        text = np.ndarray((self.rows + 1,), f"S{last - first}", self._block, self._at - width + first, (width,))
        changed: Flags = text[1:] != text[:-1]
        return changed


class Runs:
    """Finds the rows behind a draw. `stamped` says how much of a description is a prefix whose digits may change."""

    def __init__(self, stamped: Callable[[bytes], int]) -> None:
        self._stamped = stamped
        self._forms: dict[tuple[object, ...], Form] = {}
        self._difference = np.empty(_TABLE, np.uint8)
        self._wrong = np.empty(_TABLE, np.bool_)

    def after(
        self, block: bytes, start: int, stop: int, found: re.Match[bytes], names: Sequence[str], line: int, offset: int
    ) -> Run | None:
        """The rows behind the draw that `found` is, from its carriage return at `start` to the end of its segment."""
        end, feeds = _end_of(block, stop)
        width = end - start
        rows = (len(block) - end) // width
        if rows < MIN_ROWS or width > _TABLE or not (feeds or block[start] == RETURN):
            return None
        if found.end() < stop and not block[found.end() : stop].isspace():
            return None
        row = block[start:end]
        later = block[end + (MIN_ROWS - 1) * width : end + MIN_ROWS * width]
        if later.translate(_NINE) != row.translate(_NINE):
            return None
        form = self._form_of(row, found, names, start)
        rows = self._alike(block, end, rows, form)
        if not feeds and block[end + rows * width : end + rows * width + 1] not in (b"\r", b"\n", b""):
            rows -= 1  # something is glued to it
        if rows < MIN_ROWS:
            return None
        place = line + feeds, offset + width, offset + width + found.end() - (start + (block[start] == RETURN))
        return Run(block, end, rows, form, feeds, place)

    def _form_of(self, row: bytes, found: re.Match[bytes], names: Sequence[str], start: int) -> Form:
        spans = [(first - start, last - start) for first, last in (found.span(name) for name in names)]
        head = found.start() - start
        key = (row.translate(_NINE), row[:head], row[slice(*spans[1])], *spans)
        form = self._forms.get(key)
        if form is None:
            if len(self._forms) >= _KEPT:
                self._forms.clear()
            form = self._forms[key] = Form(row, head, self._stamped(row[:head]), spans)
        return form

    def _alike(self, block: bytes, at: int, rows: int, form: Form) -> int:
        """How many of the rows at `at` are of the form."""
        width = form.width
        codes = np.frombuffer(block, np.uint8, rows * width, at)
        few = min(rows, _FEW)
        wrong = np.subtract(codes[: few * width].reshape(few, width), form.base) > form.span
        first = int(wrong.argmax())
        if wrong.flat[first]:
            return first // width
        known = few
        while known < rows:
            base, span = form.tables
            begin, size = known * width, min(len(base), (rows - known) * width)
            difference = np.subtract(codes[begin : begin + size], base[:size], out=self._difference[:size])
            wrong = np.greater(difference, span[:size], out=self._wrong[:size])
            first = int(wrong.argmax())
            if wrong[first]:
                return known + first // width
            known += size // width
        return known


def _end_of(block: bytes, stop: int) -> tuple[int, int]:
    """Where the row that ends at the cut at `stop` ends itself, and the line feeds that it ends with."""
    if block[stop : stop + 1] == b"\n":
        return stop + 1, 1
    return (stop + 2, 1) if block[stop : stop + 2] == b"\r\n" else (stop, 0)


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


def _left(n: Counts, before: Counts, rises: Flags, proves: Flags, proven: int) -> tuple[list[tuple[int, int]], int]:
    """The counts that rows leave unproven, and the last one that they or the rows before them prove."""
    reached = np.maximum.accumulate(np.where(proves, n, -1))
    known = np.empty_like(reached)
    known[0] = proven
    np.maximum(reached[:-1], proven, out=known[1:])
    bare = known < before
    where = np.flatnonzero(rises & (bare | (before + 1 < n)))
    left = _merged(before[where] + ~bare[where], n[where]) if len(where) else []
    return left, max(proven, int(reached[-1]))
