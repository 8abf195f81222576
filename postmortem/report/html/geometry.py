"""Numbers of the pictures: shares of a width as percentages, rounded so that every machine draws the same."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log10


def percent(part: float, whole: float) -> float:
    """`part` of `whole` in percent, to a tenth, between 0 and 100."""
    if whole <= 0:
        return 0.0
    return round(min(100.0, max(0.0, 100.0 * part / whole)), 1)


def ceiling(value: float) -> float:
    """The next round number at or above `value`: the end of an axis."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** floor(log10(value))
    for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10):
        if value <= step * unit * (1 + 1e-9):
            return float(f"{step * unit:.12g}")
    return 10 * unit


def ticks(first: int, last: int, most: int = 5) -> Iterator[int]:
    """Round numbers from `first` to `last`, at most `most` of them beside the ends."""
    unit = max(1, ceil(ceiling(max(1, last - first) / most)))
    at = ceil(first / unit) * unit
    while at <= last:
        yield at
        at += unit
