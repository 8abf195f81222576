"""Text that a console broke at a fixed width: notice it, and read the broken lines as one.

A copied terminal window holds bars, frames and messages cut at column 80 or 120, in the middle of words. No line
is longer than the window, and most of the long ones are exactly as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

HEAD = 64 * 1024
"""Bytes at the start that decide whether a log was broken."""
MAX_BYTES = 8 * 1024 * 1024
"""A larger log is nobody's copied window; it is read as it is."""
_NARROWEST, _WIDEST = 60, 240
_ENOUGH = 4
_NEARLY = 0.92
_MOST = 0.85
_TORN = 0.3
"""Of the lines that fill the window, those cut inside a word: what a program prints as wide as that ends in none."""


def look_ahead(chunks: Iterable[bytes]) -> tuple[int | None, bytes, Iterator[bytes]]:
    """(width, the whole text, nothing more) for a broken text, else (None, nothing, all chunks)."""
    source = iter(chunks)
    held: list[bytes] = []
    size = 0
    width: int | None = None
    decided = False
    for chunk in source:
        held.append(chunk)
        size += len(chunk)
        if not decided and size >= HEAD:
            width = width_of(b"".join(held)[:HEAD])
            decided = True
        if decided and (width is None or size > MAX_BYTES):
            return None, b"", chain(held, source)
    if not decided:
        width = width_of(b"".join(held))
    if width is None:
        return None, b"", iter(held)
    return width, b"".join(held), iter(())


def width_of(head: bytes) -> int | None:
    """The width at which `head` was broken, or None if it was not."""
    if b"\r" in head.replace(b"\r\n", b"\n"):
        return None
    lines = head.split(b"\n")[:4000]
    lengths = [_length(line) for line in lines]
    widest = max(lengths, default=0)
    if not _NARROWEST <= widest <= _WIDEST:
        return None
    full = sum(length == widest for length in lengths)
    nearly = sum(length >= _NEARLY * widest for length in lengths)
    if full < _ENOUGH:
        return None
    torn = sum(
        length == widest and line.rstrip(b"\r")[-1:].isalnum() and after[:1].isalnum()
        for line, after, length in zip(lines, lines[1:], lengths, strict=False)
    )
    return widest if full >= _MOST * nearly or torn >= max(3, _TORN * full) else None


def logical_lines(data: bytes, width: int) -> Iterator[tuple[bytes, int, int]]:
    """The lines as they were before they were broken: bytes, first physical line (from 1), byte offset."""
    held = b""
    first = offset = 0
    at = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.rstrip(b"\r")
        if not held:
            first, offset = number, at
        at += len(raw) + 1
        held += line
        if _length(line) != width:
            if held:
                yield held, first, offset
            held = b""
    if held:
        yield held, first, offset


def _length(line: bytes) -> int:
    line = line.rstrip(b"\r")
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))
