"""Text that was broken at a fixed width: notice it, and read the broken lines as one.

A copied terminal window holds bars, frames and messages cut at column 80 or 120, in the middle of words. No line
is longer than the window, and most of the long ones are exactly as long. A mail program breaks between words: there
the next word would not have fitted, and frames and bars are torn.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

import msgspec

HEAD = 64 * 1024
"""Bytes at the start that decide whether a log was broken."""
MAX_BYTES = 8 * 1024 * 1024
"""A larger log is nobody's copied window; it is read as it is."""
_NARROWEST, _WIDEST = 60, 240
MAX_JOINED = 16 * 1024
_ENOUGH = 4
_NEARLY = 0.92
_MOST = 0.85
_TORN = 0.3
"""Of the lines that fill the window, those cut inside a word: what a program prints as wide as that ends in none."""
_WIDEST_WORDS = 100
_TORN_PIECES = 2
_NINE = bytes.maketrans(b"0123456789", b"9999999999")
_FRAME = re.compile(rb'\s*File(?: "|$)')
_WHOLE_FRAME = re.compile(rb'\s*File "[^"]*", line \d+, in \S')
_BAR = re.compile(rb"\d%\|[^]]*$")
_WHOLE_BAR = re.compile(rb"\d%\|[^|]*\|[^]]*\]$")
_OWN_LINE = re.compile(rb"\s|[^\w\s]+$|[\w.]{0,200}(?:Error|Exception|Interrupt)\b|Traceback ")
"""How a line starts (or its first word is) that goes on with none before it."""


class Breaks(msgspec.Struct, frozen=True):
    """At which column a text was broken, and whether between words."""

    width: int
    at_words: bool = False


def look_ahead(chunks: Iterable[bytes]) -> tuple[Breaks | None, bytes, Iterator[bytes]]:
    """(its breaks, the whole text, nothing more) for a broken text, else (None, nothing, all chunks)."""
    source = iter(chunks)
    held: list[bytes] = []
    size = 0
    width: Breaks | None = None
    decided = False
    for chunk in source:
        held.append(chunk)
        size += len(chunk)
        if not decided and size >= HEAD:
            width = breaks_of(b"".join(held)[:HEAD])
            decided = True
        if decided and (width is None or size > MAX_BYTES):
            return None, b"", chain(held, source)
    if not decided:
        width = breaks_of(b"".join(held))
    if width is None:
        return None, b"", iter(held)
    return width, b"".join(held), iter(())


def breaks_of(head: bytes) -> Breaks | None:
    """How `head` was broken, or None if it was not."""
    width = width_of(head)
    if width is not None and _all_full(head, width):
        return Breaks(width)
    between_words = _width_of_words(head)
    if between_words is not None:
        return Breaks(between_words, at_words=True)
    return Breaks(width) if width is not None else None


def _all_full(head: bytes, width: int) -> bool:
    """Whether the lines that go on in the next are exactly as wide as the window, as they are not between words."""
    lines = [line.rstrip(b"\r") for line in head.split(b"\n")[:4000]]
    lengths = [_length(line) for line, after in pairwise(lines) if _goes_on(line, after, width)]
    long = [length for length in lengths if length >= _NEARLY * width]
    return sum(length == width for length in long) >= _MOST * len(long)


def _width_of_words(head: bytes) -> int | None:
    """The width at which `head` was broken between words, or None."""
    if b"\r" in head.replace(b"\r\n", b"\n"):
        return None
    lines = [line.rstrip() for line in head.split(b"\n")[:4000]]
    width = max((_length(line) for line in lines if b" " in line.strip()), default=0)
    if not _NARROWEST <= width <= _WIDEST_WORDS:
        return None
    torn = 0
    for line, after in pairwise(lines):
        if _goes_on(line, after, width):
            # nothing but a break takes a frame apart; a bar may just have been left off
            torn += _TORN_PIECES * bool(_FRAME.match(line) and not _WHOLE_FRAME.match(line))
            torn += bool(_BAR.search(line))
    whole = sum(_WHOLE_FRAME.match(line) is not None and _length(line) > width for line in lines)
    return width if torn >= _TORN_PIECES and not whole else None


def _goes_on(line: bytes, after: bytes, width: int) -> bool:
    """Whether `after` is the rest of `line`: its first word would not have fitted there."""
    word = after.split(b" ", 1)[0]
    if not word or not line.strip() or _WHOLE_BAR.search(line) or line.startswith(b"    ") or _OWN_LINE.match(word):
        return False
    return _length(line) + 1 + _length(word) > width


def width_of(head: bytes) -> int | None:
    """The width at which `head` was broken, or None if it was not."""
    if b"\r" in head.replace(b"\r\n", b"\n"):
        return None
    lines = head.split(b"\n")[:4000]
    widest = max(map(_length, lines), default=0)
    if not _NARROWEST <= widest <= _WIDEST:
        return None
    # what a flood repeats, if with other numbers, has one width for another reason
    alike = {(line.translate(_NINE), after.translate(_NINE)): (line, after) for line, after in pairwise([*lines, b""])}
    pairs = alike.values()
    lengths = [_length(line) for line, _ in pairs]
    full = sum(length == widest for length in lengths)
    nearly = sum(length >= _NEARLY * widest for length in lengths)
    if full < _ENOUGH:
        return None
    torn = sum(
        length == widest and line.rstrip(b"\r")[-1:].isalnum() and after[:1].isalnum()
        for (line, after), length in zip(pairs, lengths, strict=True)
    )
    return widest if full >= _MOST * nearly or torn >= max(3, _TORN * full) else None


class Logical(msgspec.Struct):
    """A line as it was before it was broken, and its first physical line (from 1).

    `starts` are the bytes of `joined` at which a physical line's part starts, `offsets` where that stands in the text.
    """

    joined: bytes
    line: int
    starts: list[int]
    offsets: list[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the bytes from `start` to `end` of `joined` stand in the text that was broken."""
        return self._at(start), self._at(max(start, end - 1)) + 1

    def _at(self, position: int) -> int:
        part = bisect_right(self.starts, position) - 1
        return self.offsets[part] + position - self.starts[part]


def logical_lines(data: bytes, breaks: Breaks) -> Iterator[Logical]:
    """The lines as they were before they were broken."""
    if breaks.at_words:
        yield from _joined_words(data, breaks.width)
        return
    width = breaks.width
    open_line = Logical(b"", 0, [], [])
    at = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.rstrip(b"\r")
        open_line = _with_part(open_line, number, line, at)
        at += len(raw) + 1
        if _length(line) != width or len(open_line.joined) >= MAX_JOINED:
            if open_line.joined:
                yield open_line
            open_line = Logical(b"", 0, [], [])
    if open_line.joined:
        yield open_line


def _joined_words(data: bytes, width: int) -> Iterator[Logical]:
    open_line: Logical | None = None
    at = 0
    last = b""
    for number, raw in enumerate(data.split(b"\n"), start=1):
        line = raw.rstrip()
        goes_on = open_line is not None and len(open_line.joined) < MAX_JOINED
        if open_line is not None and goes_on and not line.startswith(b" ") and _goes_on(last, line, width):
            # some programs break behind a hyphen too
            hyphen = re.search(rb"\w-$", last) is not None
            open_line = _with_part(open_line, number, line if hyphen else b" " + line, at if hyphen else at - 1)
        else:
            if open_line is not None:
                yield open_line
            open_line = _with_part(Logical(b"", 0, [], []), number, line, at)
        at += len(raw) + 1
        last = line
    if open_line is not None:
        yield open_line


def _with_part(so_far: Logical, number: int, part: bytes, offset: int) -> Logical:
    """`so_far` with one more physical line, the `number`-th, which stands at `offset`."""
    if not so_far.joined:
        return Logical(part, number, [0], [offset])
    so_far.starts.append(len(so_far.joined))
    so_far.offsets.append(offset)
    so_far.joined += part
    return so_far


def _length(line: bytes) -> int:
    line = line.rstrip(b"\r")
    return len(line) if line.isascii() else len(line.decode("utf-8", "replace"))
