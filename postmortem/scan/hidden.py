"""Lines that say something else than their bytes: with escape sequences or characters in them that show nothing.

A colour in the middle of a word, a byte order mark in front of a line or a zero-width space hides a word from a search
over bytes. So lines with such bytes in them are searched a second time, as they are seen. Where there are none, which
is in nearly every log, to know that costs a few looks for single bytes.
"""

from __future__ import annotations

import re

from postmortem.scan.literals import Hit, Search, plain
from postmortem.text import seen

_SINGLE = tuple(bytes([code]) for code in (*range(9), *range(11, 13), *range(14, 32), 127))
"""The controls of ASCII but tab, line feed and carriage return."""
_SHOWN = bytes((*range(32, 127), 9, 10, 13))
_SHORT = 4096
"""Bytes up to which one look at all of them costs less than one for each control."""
_MULTIPLE = {
    b"\xc2": rb"\xc2[\x80-\x9f\xad]",
    b"\xcd": rb"\xcd\x8f",
    b"\xd8": rb"\xd8\x9c",
    b"\xe1": rb"\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])",
    b"\xe2": rb"\xe2(?:\x80[\x8b-\x8f\xa8-\xae]|\x81[\xa0-\xaf])",
    b"\xe3": rb"\xe3\x85\xa4",
    b"\xef": rb"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb])",
    b"\xf0": rb"\xf0(?:\x93\x90[\xb0-\xbf]|\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])",
    b"\xf3": rb"\xf3\xa0[\x80-\xbf][\x80-\xbf]",
}
"""In UTF-8, by its first byte, every other character that shows nothing."""
_BEYOND = tuple((lead, re.compile(source)) for lead, source in _MULTIPLE.items())


def starts(joined: bytes) -> list[int]:
    """Where the lines (cut at LF) of `joined` start that hold an escape sequence or a character that shows nothing."""
    if len(joined) < _SHORT and not joined.translate(None, _SHOWN):
        return []
    found: set[int] = set()
    for byte in _SINGLE:
        if byte in joined:
            found.update(_lines(joined, plain([byte])))
    if not joined.isascii():
        for lead, expression in _BEYOND:
            if lead in joined:
                found.update(joined.rfind(b"\n", 0, match.start()) + 1 for match in expression.finditer(joined))
    return sorted(found)


def found(joined: bytes, search: Search, longest: int) -> list[Hit]:
    """What `search` finds in such lines as they are seen, each up to byte `longest`: each hit at its line's start."""
    at = starts(joined)
    if not at:
        return []
    shown: list[bytes] = []
    known: dict[bytes, bytes] = {}  # mostly it is one line over and over, which moves the cursor and shows nothing
    for start in at:
        end = joined.find(b"\n", start, start + longest)
        raw = joined[start : start + longest if end == -1 else end]
        line_seen = known.get(raw)
        if line_seen is None:
            line_seen = known[raw] = seen(raw.decode("utf-8", "replace")).encode()
        shown.append(line_seen)
    text = b"\n".join(shown)
    hits: list[Hit] = []
    line = size = 0
    for where, index in sorted(search(text)):
        while where > size + len(shown[line]):
            size += len(shown[line]) + 1
            line += 1
        hits.append((at[line], index))
    return hits


def _lines(joined: bytes, search: Search) -> list[int]:
    return [joined.rfind(b"\n", 0, at) + 1 for at, _ in search(joined)]
