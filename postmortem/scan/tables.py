"""Find the rows of a table in a log: draws behind one that has their form.

Mostly they are equally wide. Where tqdm's guess of the time that remains is now wider and now narrower, the rows are
put together without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from postmortem.scan.forms import ENDS, HIGH, LOW, TABLE, Bytes, Counts, Form, looks
from postmortem.scan.runs import Even, Places, Run, Table, Uneven
from postmortem.scan.segments import FEED, RETURN

MIN_ROWS = 12
"""Fewer rows than this are read one by one."""
_KEPT = 8
TRY = 32
"""Draws that a look for rows behind a draw may take as long as: one that finds none has to be earned anew by them."""
MAX_CREDIT = 4 * TRY
MAX_PRICE = 8 * TRY
PATIENCE = 8
"""What a look costs at most after more than `PATIENCE` in vain, one after the other, each of which costs double."""
_FEW, _MANY = 64, 512
_GUESS = 24
"""The longest that the time that remains, or the rate, may be: as the bar's syntax has it."""


class Draws:
    """One draw as the first row of a table: its bytes from `start` to `end`, and where its parts stand in it."""

    def __init__(self, block: bytes, start: int, end: int, found: re.Match[bytes], names: Sequence[str]) -> None:
        self.block, self.start, self.end = block, start, end
        self.row = block[start:end]
        self.head = found.start() - start
        self.spans = [(first - start, last - start) for first, last in (found.span(name) for name in names)]
        self.lead, self.tail = self.spans[4][0], self.spans[5][1]
        """The columns before and behind what tqdm guesses."""
        self.bar_end = found.end() - start

    def places(self, line: int, feeds: int, offset: int) -> Places:
        """Those of the rows behind it, for a draw in `line` at byte `offset` of the log."""
        returned = int(self.row[0] == RETURN)
        return Places(line + feeds, feeds, offset - returned - self.start, returned, len(self.row) - self.bar_end)


class Tables:
    """Finds the rows behind a draw. `stamped` says how much of a description is a prefix whose digits may change."""

    def __init__(self, stamped: Callable[[bytes], int]) -> None:
        self._stamped = stamped
        self._forms: dict[tuple[object, ...], Form] = {}
        self._difference = np.empty(TABLE, np.uint8)
        self._wrong = np.empty(TABLE, np.bool_)
        self._credit = MAX_CREDIT
        """Draws that may still be spent on looking: those that were taken together or one by one earn it."""
        self._price = TRY
        self._vain = 0
        """Looks in vain since the last one that found something."""
        self._wavers = False
        """Whether rows were equally wide for a while only: then what holds for uneven ones holds for more of them."""
        self.tries = 0
        """How often rows were looked for."""

    def after(
        self, block: bytes, start: int, stop: int, found: re.Match[bytes], names: Sequence[str], line: int, offset: int
    ) -> Run | None:
        """The rows behind the draw that `found` is, from its carriage return at `start` to the end of its segment.

        `line` and `offset` are those of the draw.
        """
        self._credit += 1
        if self._credit < self._price:
            return None
        end, feeds = _end_of(block, stop)
        width = end - start
        if len(block) - end < MIN_ROWS * width or width > TABLE or not (feeds or block[start] == RETURN):
            return None
        if found.end() < stop and not block[found.end() : stop].isspace():
            return None
        run = self._look(block, start, end, feeds, found, names, line, offset)
        self._credit = min(self._credit - self._price + (run.rows if run is not None else 0), MAX_CREDIT)
        self._vain = 0 if run is not None else self._vain + 1
        self._price = TRY if self._vain <= PATIENCE else min(2 * self._price, MAX_PRICE)
        return run

    def _look(
        self,
        block: bytes,
        start: int,
        end: int,
        feeds: int,
        found: re.Match[bytes],
        names: Sequence[str],
        line: int,
        offset: int,
    ) -> Run | None:
        self.tries += 1
        width = end - start
        there = end + MIN_ROWS * width - bool(feeds)
        even = there == len(block) or block[there] == (FEED if feeds else RETURN)
        if even and not self._wavers:
            run = self._even(Draws(block, start, end, found, names), feeds, line, offset)
            if run is not None:
                self._wavers = run.rows < _MANY and _goes_on(
                    block, run.stop, block[start : found.start()], width, feeds
                )
                return run
        behind = block.find(b"\n", end) + 1 if feeds else block.find(b"\r", end + 1)
        # the next row is as wide as this one, and more of them are not: or it is no row at all
        if behind <= 0 or abs(behind - end - width) > _GUESS:
            return None
        return self._uneven(Draws(block, start, end, found, names), behind, feeds, line, offset)

    def _even(self, first: Draws, feeds: int, line: int, offset: int) -> Run | None:
        """Rows that are equally wide."""
        block, end, row, free = first.block, first.end, first.row, first.spans[4:]
        width = len(row)
        alike = looks(row, free)
        if looks(block[end + (MIN_ROWS - 1) * width : end + MIN_ROWS * width], free) != alike:
            return None
        form = self._form(alike, row, first.head, first.spans)
        rows = self._alike(block, end, (len(block) - end) // width, form)
        if not feeds and block[end + rows * width : end + rows * width + 1] not in (b"\r", b"\n", b""):
            rows -= 1  # something is glued to it
        if rows < MIN_ROWS:
            return None
        places = first.places(line, feeds, offset)
        return Run(block, rows, form, Table(block, end, width), Even(end, width), places, end + rows * width)

    def _uneven(self, first: Draws, behind: int, feeds: int, line: int, offset: int) -> Run | None:
        """Rows of which only the middle, what tqdm guesses, is now wider and now narrower."""
        block, end, row = first.block, first.end, first.row
        lead, tail = row[: first.lead], row[first.tail :]
        after = block[end:behind]
        if looks(after[: len(lead)], ()) != looks(lead, ()) or looks(after[-len(tail) :], ()) != looks(tail, ()):
            return None
        together = lead + tail
        moved = first.tail - first.lead
        postfix = first.spans[3][0] - moved, first.spans[3][1] - moved
        form = self._form(looks(together, ()), together, first.head, [*first.spans[:3], postfix])
        codes = np.frombuffer(block, np.uint8, offset=first.start)
        parts: list[Bytes] = []
        stops: list[Counts] = []
        at, count = len(row), _MANY
        while True:
            begins, ends = _rows(codes, at, count * (len(row) + 2), feeds)
            found = len(begins)
            good = _fitting(begins, ends, len(together))
            table = _outside(codes, begins[:good], ends[:good], len(lead), len(tail))
            good = _first(np.any(np.subtract(table, form.base) > form.span, axis=1))
            if not _all_guess(codes, begins[:good], ends[:good], lead, tail, form.odd):
                good = _guessing(codes, begins[:good], ends[:good], len(lead), len(tail))
            if good:
                parts.append(table[:good])
                stops.append(ends[:good])
                at = int(ends[good - 1])
            if good < found or good < count // 2:
                break
            count *= 8
        rows = sum(map(len, parts))
        if rows < MIN_ROWS:
            return None
        widths = np.diff(np.concatenate(stops))
        self._wavers = bool(widths.min() < widths.max())
        where = Uneven((np.concatenate(([len(row)], *stops)) + first.start).astype(np.int32))
        columns = Table(together + np.concatenate(parts).tobytes(), len(together), len(together))
        return Run(block, rows, form, columns, where, first.places(line, feeds, offset), first.start + at)

    def _form(self, alike: bytes, row: bytes, head: int, spans: Sequence[tuple[int, int]]) -> Form:
        key = (alike, row[:head], row[slice(*spans[1])], *spans)
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
        few = max(1, min(rows, _FEW, TABLE // width))
        wrong = np.subtract(codes[: few * width].reshape(few, width), form.base) > form.span
        first = int(wrong.argmax())
        if wrong.flat[first]:
            return self._sound(codes[: first // width * width], form)
        known = self._sound(codes[: few * width], form)
        if known < few:
            return known
        while known < rows:
            base, span = form.tables
            begin, size = known * width, min(len(base), (rows - known) * width)
            part = codes[begin : begin + size]
            difference = np.subtract(part, base[:size], out=self._difference[:size])
            wrong = np.greater(difference, span[:size], out=self._wrong[:size])
            first = int(wrong.argmax())
            good = first // width if wrong[first] else size // width
            sound = self._sound(part[: good * width], form)
            known += sound
            if sound * width < size:
                break
        return known

    def _sound(self, codes: Bytes, form: Form) -> int:
        """How many of the rows have nothing in their free columns that would end these."""
        rows = len(codes) // form.width
        for code, often in form.ends:
            found = np.equal(codes, code, out=self._wrong[: len(codes)])
            if np.count_nonzero(found) != often * rows:
                each = found.reshape(rows, form.width).sum(axis=1) != often
                rows = int(each.argmax())
                codes = codes[: rows * form.width]
        return rows


def _end_of(block: bytes, stop: int) -> tuple[int, int]:
    """Where the row that ends at the cut at `stop` ends itself, and the line feeds that it ends with."""
    if block[stop : stop + 1] == b"\n":
        return stop + 1, 1
    return (stop + 2, 1) if block[stop : stop + 2] == b"\r\n" else (stop, 0)


def _goes_on(block: bytes, at: int, head: bytes, width: int, feeds: int) -> bool:
    """Whether what stands at `at` is one more row that starts with `head`, but is not as wide."""
    if not block.startswith(head, at):
        return False
    behind = block.find(b"\n", at) + 1 if feeds else block.find(b"\r", at + 1)
    return 0 < abs(behind - at - width) <= _GUESS


def _rows(codes: Bytes, at: int, size: int, feeds: int) -> tuple[Counts, Counts]:
    """Where the whole rows start and end that stand in the `size` bytes from `at` on."""
    cuts = np.flatnonzero(codes[at : at + size] == (FEED if feeds else RETURN)) + at
    if feeds:
        ends = cuts + 1
        return np.concatenate(([at], ends[:-1])) if len(ends) else ends, ends
    return cuts[:-1], cuts[1:]


def _fitting(begins: Counts, ends: Counts, outside: int) -> int:
    """How many of the rows leave room for two guesses and a comma, and no more, beside the bytes `outside` them."""
    middle = ends - begins - outside
    return _first((middle < 3) | (middle > 2 * _GUESS + 1))


def _outside(codes: Bytes, begins: Counts, ends: Counts, lead: int, tail: int) -> Bytes:
    """The rows without what stands between their first `lead` and last `tail` bytes."""
    if not len(begins):
        return np.empty((0, lead + tail), np.uint8)
    return np.concatenate((_cut_out(codes, begins, lead), _cut_out(codes, ends - tail, tail)), axis=1)


def _all_guess(codes: Bytes, begins: Counts, ends: Counts, lead: bytes, tail: bytes, odd: int) -> bool:
    """Whether in all rows two guesses with a comma between them, as the bar's syntax has it, stand between the first
    and the last bytes, which are `lead` and `tail` but for what differs in a table.

    Told by counts over all their bytes: what stands outside is known, and so how often it has the signs asked for, and
    that `odd` bytes of it may not stand in a guess.
    """
    rows = len(begins)
    if not rows:
        return True
    outside = lead + tail
    part = codes[begins[0] : ends[-1]]
    if np.count_nonzero(np.subtract(part, LOW) > HIGH - LOW) != odd * rows:
        return False
    if np.count_nonzero(part == ENDS[1]) != outside.count(ENDS[1]) * rows:
        return False
    commas = np.flatnonzero(part == ENDS[0]) + begins[0]
    each = outside.count(ENDS[0]) + 1
    if len(commas) != each * rows:
        return False
    commas = commas.reshape(rows, each)
    if (commas[:, 0] < begins).any() or (commas[:, -1] >= ends).any():
        return False
    comma = commas[:, lead.count(ENDS[0])]
    before, behind = comma - begins - len(lead), ends - comma - (1 + len(tail))
    return bool(before.min() > 0 and before.max() <= _GUESS and behind.min() > 0 and behind.max() <= _GUESS)


def _guessing(codes: Bytes, begins: Counts, ends: Counts, lead: int, tail: int) -> int:
    """How many rows have such guesses there before the first that has not."""
    middle = ends - begins - lead - tail
    widest = int(middle.max()) if len(middle) else 0
    if not widest or int(ends[0]) < tail + widest:
        return 0
    guess = _cut_out(codes, ends - (tail + widest), widest)
    outside = np.arange(widest) < (widest - middle)[:, None]
    comma = guess == ENDS[0]
    comma[outside] = False
    where = comma.argmax(axis=1) - (widest - middle)
    behind = middle - where - 1
    bad = np.subtract(guess, LOW) > HIGH - LOW
    bad |= guess == ENDS[1]
    bad[outside] = False
    sizes = (where < 1) | (where > _GUESS) | (behind < 1) | (behind > _GUESS)
    return _first(bad.any(axis=1) | (np.count_nonzero(comma, axis=1) != 1) | sizes)


def _cut_out(codes: Bytes, starts: Counts, width: int) -> Bytes:
    """The `width` bytes from each of the starts on."""
    windows: Bytes = np.ndarray((len(codes) - width + 1, width), np.uint8, codes, strides=(1, 1))
    return windows[starts]


def _first(wrong: Any) -> int:
    """The index of the first flag that is set, or how many there are."""
    if not len(wrong):
        return 0
    index = int(wrong.argmax())
    return index if wrong[index] else len(wrong)
