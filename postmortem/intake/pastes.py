"""Undo what a paste did to every line: HTML escapes, margins, line numbers, curly quotes, literal ``\\n``, joins.

What was done shows in the first bytes, and line by line the text stays where it was, so evidence keeps its line
numbers (but for lines that were joined to one, which part again). Nothing here knows what a log says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise

import msgspec

MAX_LINE = 1 << 20
_NEAR = 256
_MIN_LINES = 5
_ENTITY = re.compile(rb"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_RAW_ANGLE = re.compile(rb"\d<[\d?]|in <\w+>")
_BREAKS = (b"<br>", b"<br/>", b"<br />", b"<BR>", b"<BR/>", b"<BR />")
_BREAK = re.compile(rb"<br ?/?>", re.IGNORECASE)
_CURLY = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"'}
_CURLY_BYTES = re.compile("|".join(_CURLY).encode())
_CURLY_SIGN = re.compile(
    "(?:File (?:\u201c|\u201d)|(?:\u201c|\u201d)\\w+(?:\u201c|\u201d): |Error: (?:\u2018|\u2019)|"
    "(?:\u2018|\u2019)\\w+(?:\u2018|\u2019))".encode()
)
_HARD_SPACE = re.compile("\u00a0|\u202f|\u2007".encode())
_NO_BREAK = "\u00a0".encode()
_PUNCTUATION = b"\xe2\x80"
"""How the other spaces and the curly quotes start in UTF-8: most logs have neither these nor those."""
_ESCAPE = re.compile(rb"\\(?:([nrt\"'/\\])|u([0-9a-fA-F]{4}))")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_MARGIN = re.compile("(?:[ \t|#;*`]|\u2502|\u2503)*".encode())
_FRAME = re.compile(rb'File "')
_NUMBER = re.compile(rb"[ \t]*(\d{1,7})")
_JOINED_FRAME = re.compile(rb'File "[^"\n]{1,600}", line \d{1,9}, in [\w<>.]{1,200} ')
_MIN_JOINED = 3
"""Frames in one line from which on it is a traceback whose line breaks were lost."""
_SEAM = re.compile(
    rb'[ \t]+(?=Traceback \(most recent call last\): |File "[^"\n]{1,600}", line \d{1,9}, in |'
    rb"(?:[A-Za-z_]\w{0,60}\.){0,6}[A-Za-z_]?\w{0,60}(?:Error|Exception): |"
    rb"Error running job: |={20}|- \d{1,4} (?:completed|failure)|Result: )"
)
_AFTER_NUMBER = (b": ", b":", b" | ", b"| ", b"|", b"\t", b"  ", b". ", b" ")


class Repair(msgspec.Struct, frozen=True):
    """One thing that a paste did, by name, and how to undo it in a line; `whole` where it is about the line's ends."""

    name: str
    line: Callable[[bytes], bytes]
    whole: bool = False


def damage(head: bytes) -> tuple[Repair, ...]:
    """What was done to the text that starts with `head`, in the order to undo it."""
    found: list[Repair] = []

    def note(name: str, line: Callable[[bytes], bytes], *, whole: bool = False) -> None:
        nonlocal head
        found.append(Repair(name, line, whole))
        head = b"\n".join(line(one) for one in head.split(b"\n"))

    if head.count(b"\n") <= 2 and head.count(b"\\n") >= _MIN_LINES:
        note("flattened", _unflatten)
    if len(_JOINED_FRAME.findall(head)) >= _MIN_JOINED and any(
        len(_JOINED_FRAME.findall(line)) >= _MIN_JOINED for line in head.split(b"\n")
    ):
        note("joined", _part)
    if _ENTITY.search(head) and not _RAW_ANGLE.search(head):
        note("html", _unescape_html)
    if (_NO_BREAK in head or _PUNCTUATION in head) and _HARD_SPACE.search(head):
        note("hard_spaces", _softened)
    if _PUNCTUATION in head and _CURLY_SIGN.search(head):
        note("curly_quotes", lambda line: _CURLY_BYTES.sub(_straight, line))
    separator = _numbered(head)
    if separator is not None:
        note("line_numbers", lambda line: _without_number(line, separator), whole=True)
    margin = _margin(head)
    if margin:
        closing = _closing(head, margin)
        note("margin", lambda line: _without_margin(line, margin, closing), whole=True)
    return tuple(found)


def undo(chunks: Iterable[bytes], repairs: tuple[Repair, ...]) -> Iterator[bytes]:
    """`chunks` with every line repaired; the same whatever the chunks.

    A line that is longer than is held at once is repaired piece by piece, and stays one line.
    """
    rest = b""
    begun = False
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        done: list[bytes] = []
        for line in lines:
            while len(line) > MAX_LINE:
                piece, line = _cut(line)
                done.append(_all(piece, repairs, begun=begun))
                begun = True
            done += (_all(line, repairs, begun=begun), b"\n")
            begun = False
        while len(rest) > MAX_LINE:
            piece, rest = _cut(rest)
            done.append(_all(piece, repairs, begun=begun))
            begun = True
        if done:
            yield b"".join(done)
    if rest:
        yield _all(rest, repairs, begun=begun)


def _cut(line: bytes) -> tuple[bytes, bytes]:
    """The first piece of a long line, and the rest: at a blank, which is in no entity, escape or letter, and not
    where a break seems to be the line's last."""
    at = line.rfind(b" ", MAX_LINE - _NEAR, MAX_LINE)
    while at > 0 and line[at - 1 : at] in b"> ":
        at = line.rfind(b" ", MAX_LINE - _NEAR, at)
    at = at + 1 if at > 0 else MAX_LINE
    return line[:at], line[at:]


def _all(line: bytes, repairs: tuple[Repair, ...], *, begun: bool = False) -> bytes:
    """A line with all repairs; where it has `begun` in an earlier piece, without those of its start and end."""
    for number, repair in enumerate(repairs):
        if begun and repair.whole:
            continue
        line = repair.line(line)
        if b"\n" in line:
            first, *others = line.split(b"\n")
            later = repairs[number + 1 :]
            return b"\n".join((_all(first, later, begun=begun), *(_all(part, later) for part in others)))
    return line


def _unflatten(line: bytes) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return _ESCAPED.get(found[1], found[1])
        code = int(found[2], 16)
        return b"" if 0xD800 <= code < 0xE000 else chr(code).encode()

    stripped = line.strip()
    if len(stripped) > 1 and stripped[:1] == stripped[-1:] == b'"':
        line = stripped[1:-1]
    return _ESCAPE.sub(plain, line)


def _softened(line: bytes) -> bytes:
    return _HARD_SPACE.sub(b" ", line) if _NO_BREAK in line or _PUNCTUATION in line else line


def _part(line: bytes) -> bytes:
    """A traceback that was joined to one line, in lines as Python prints them; any other line as it is."""
    if len(_JOINED_FRAME.findall(line)) < _MIN_JOINED:
        return line
    parted = _JOINED_FRAME.sub(lambda frame: frame[0].rstrip() + b"\n    ", _SEAM.sub(b"\n", line))
    return parted.replace(b'\nFile "', b'\n  File "')


def _unescape_html(line: bytes) -> bytes:
    import html  # its table of names is long, and hardly a log needs it

    def plain(found: re.Match[bytes]) -> bytes:
        text = html.unescape(found[0].decode())
        # a line feed out of an entity would move all that follows
        return text.encode("utf-8", "replace") if text and (text.isprintable() or text == "\u00a0") else found[0]

    return _ENTITY.sub(plain, _BREAK.sub(b"\n", _without_last_break(line)))


def _without_last_break(line: bytes) -> bytes:
    """The line feed stands behind it already."""
    bare = line.rstrip()
    mark = next((mark for mark in _BREAKS if bare.endswith(mark)), None)
    return bare[: -len(mark)] if mark else line


def _straight(found: re.Match[bytes]) -> bytes:
    return _CURLY[found[0].decode()].encode()


def _filled(head: bytes) -> Iterator[bytes]:
    """The lines of `head` that have something in them; the last may be cut off."""
    return (line for line in head.split(b"\n")[:-1] if line and not line.isspace())


def _numbered(head: bytes) -> bytes | None:
    """What stands between a line's number and the line, where all lines are numbered one by one."""
    more_than_may_lack_one = int(0.05 * head.count(b"\n")) + 2
    if not any(map(_NUMBER.match, islice(_filled(head), more_than_may_lack_one))):
        return None
    lines = list(_filled(head))
    if len(lines) < _MIN_LINES:
        return None
    numbers: list[int] = []
    tails: list[bytes] = []
    others = 0.05 * len(lines) + 1
    for line in lines:
        found = _NUMBER.match(line)
        if found:
            numbers.append(int(found[1]))
            tails.append(line[found.end() :])
        else:
            others -= 1
            if others < 0:
                return None
    rising = sum(one < other <= one + 8 for one, other in pairwise(numbers))
    if len(numbers) < 0.95 * len(lines) or rising < 0.95 * (len(lines) - 1):
        return None
    for separator in _AFTER_NUMBER:
        if all(tail.startswith(separator) or tail.strip() == separator.strip() for tail in tails):
            return separator
    return None


def _without_number(line: bytes, separator: bytes) -> bytes:
    found = _NUMBER.match(line)
    if found is None:
        return line
    tail = line[found.end() :]
    if tail.startswith(separator):
        return tail[len(separator) :]
    return b"" if tail.strip() == separator.strip() else line


def _margin(head: bytes) -> bytes:
    """What all lines start with and no program prints: blanks and bars. A frame's own indent is not part of it."""
    found = _MARGIN.match(next(_filled(head), b""))
    margin = found[0] if found else b""
    lines = list(_filled(head)) if margin else []
    if len(lines) < _MIN_LINES:
        return b""
    for line in lines:
        while margin and not line.startswith(margin):
            # a line that is only the margin lost the blanks at its end
            if line.strip() == margin.strip():
                break
            margin = margin[:-1]
        if not margin:
            return b""
    for line in lines:
        frame = _FRAME.match(line, len(margin))
        if frame and margin.endswith(b"  "):
            margin = margin[:-2]
            break
    return margin.decode("utf-8", "ignore").encode()


def _closing(head: bytes, margin: bytes) -> bytes:
    """The right side of the box or code span that `margin` is the left side of, if all lines have it."""
    edge = margin.decode().strip()[-1:].encode()
    lines = _filled(head)
    return edge if edge and all(line.rstrip().endswith(edge) for line in lines) else b""


def _without_margin(line: bytes, margin: bytes, closing: bytes = b"") -> bytes:
    if line.startswith(margin):
        line = line[len(margin) :]
        return line.rstrip().removesuffix(closing).rstrip() if closing else line
    return b"" if line.strip() == margin.strip() else line
