"""What many draws of one bar have in common, and how far their bytes may differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
TABLE = 64 * 1024
"""Bytes that are compared at once: they and what is compared with them stay in the processor's cache."""
LOW, HIGH = 0x20, 0x7E
ENDS = b",]"
"""What tqdm guesses (the time that remains, the rate) may be anything between these, but for what would end it."""
_DIGITS = bytes(range(48, 58))
_NINE = bytes.maketrans(_DIGITS + bytes(range(0x80, 0x90)), b"9" * 10 + b"\x8f" * 16)
"""What may differ made the same: digits, and the last byte of a block of the meter."""
_BASE = bytes.maketrans(_DIGITS, b"0" * 10)
_SPAN = bytes(9 if code in _DIGITS else 0 for code in range(256))
_BLOCK = re.compile(rb"\xe2\x96[\x80-\x8f]")
"""A block of the meter, of which the last grows by eighths."""


class Parts(msgspec.Struct, frozen=True):
    """Where in a row the parts of its draw stand; `stamped` says whether its description changes with the time."""

    width: int
    stamped: bool
    name: tuple[int, int]
    n: tuple[int, int]
    total: tuple[int, int]
    elapsed: tuple[int, int]
    postfix: tuple[int, int]


class Form:
    """What the rows of a table have in common: which columns hold what, and which bytes may differ, how far."""

    def __init__(self, row: bytes, head: int, stamped: int, spans: Sequence[tuple[int, int]]) -> None:
        self.width = len(row)
        n, total, elapsed, postfix, *free = spans
        self.parts = Parts(self.width, stamped > 0, (0, head), n, total, elapsed, postfix)
        base, span = bytearray(row.translate(_BASE)), bytearray(row.translate(_SPAN))
        for first, last in ((stamped, head), total):
            base[first:last] = row[first:last]
            span[first:last] = bytes(last - first)
        for block in _BLOCK.finditer(row, head, n[0]):
            base[block.end() - 1], span[block.end() - 1] = 0x80, 0x0F
        for first, last in free:
            base[first:last] = bytes([LOW]) * (last - first)
            span[first:last] = bytes([HIGH - LOW]) * (last - first)
        self.ends = [(code, row.count(code)) for code in ENDS]
        """How often what would end a free column stands in a row."""
        self.odd = len(row) - sum(LOW <= code <= HIGH for code in row)
        """How many bytes of a row could not stand in a free column."""
        self.base = np.frombuffer(base, np.uint8)
        self.span = np.frombuffer(span, np.uint8)

    @cached_property
    def tables(self) -> tuple[Bytes, Bytes]:
        """Base and span for as many rows as are compared at once."""
        rows = max(1, TABLE // self.width)
        return np.tile(self.base, rows), np.tile(self.span, rows)


def looks(row: bytes, free: Sequence[tuple[int, int]]) -> bytes:
    """A row without what may differ in it; `free` are the columns of which nothing is asked."""
    at = 0
    even = b""
    for first, last in free:
        even += row[at:first]
        at = last
    return (even + row[at:]).translate(_NINE)
