"""The other files of a ticket: what people read in them must be what the log gives, as in its report.json.

Checksums alone prove nothing, since whoever changes a file can change its checksum too. So the files are made again
and compared line by line. Labels may be numbered otherwise; and where another name of the input let the sender hide
more or less, a line stands if the text as the log has it fits around the labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from postmortem.verify.hidden import is_figure

_LABEL = re.compile(r"(?:<|&lt;)([a-z][a-z-]{0,20})-\d{1,6}(?:>|&gt;)")
_CUT = "…"
MAX_FINDINGS = 5
"""Lines of one file that are told, at most."""
_LENGTHS = 60
"""Characters before a cut that other labels may have moved."""


class Line(msgspec.Struct, frozen=True):
    """A line of a file that is not as the log gives it; None where one side has no such line."""

    name: str
    line: int
    sent: str | None
    made: str | None


def check(sent: Mapping[str, bytes], made: Mapping[str, str], plain: Callable[[], Mapping[str, str]]) -> Iterator[Line]:
    """The lines of the files in `sent` that differ from those in `made`; `plain` gives those unredacted."""
    for name, text in sorted(made.items()):
        if name not in sent:
            yield Line(name, 1, None, text.split("\n", 1)[0])
            continue
        yield from _one(name, sent[name].decode("utf-8", "replace"), text, lambda name=name: plain()[name])  # type: ignore[misc]


def _one(name: str, sent: str, made: str, plain: Callable[[], str]) -> Iterator[Line]:
    if sent == made:
        return
    ones, others = sent.split("\n"), made.split("\n")
    bare: list[str] | None = None
    found = 0
    for at in range(max(len(ones), len(others))):
        one = ones[at] if at < len(ones) else None
        other = others[at] if at < len(others) else None
        if one is not None and other is not None:
            if one == other or _canonical(one) == _canonical(other):
                continue
            bare = plain().split("\n") if bare is None else bare
            if len(bare) == len(others) and _fits(one, bare[at]):
                continue
        yield Line(name, at + 1, one, other)
        found += 1
        if found == MAX_FINDINGS:
            return


def _canonical(line: str) -> str:
    """A line without the numbers of its labels."""
    return _LABEL.sub("<\\1>", line)


def _fits(sent: str, plain: str) -> bool:
    """Whether `sent` is `plain` with labels in place of some of it, as far as both go where they were cut."""
    pieces = _LABEL.split(sent)[::2]
    if _around(pieces, plain, whole=True):
        return True
    if _CUT not in sent or _CUT not in plain:
        return False
    head = sent[: sent.index(_CUT)]
    pieces = _LABEL.split(head[: max(0, len(head) - _LENGTHS)])[::2]
    return len(pieces) > 1 and _around(pieces, plain, whole=False)


def _around(pieces: list[str], plain: str, *, whole: bool) -> bool:
    """Whether `pieces` stand in `plain` in this order with something between each two."""
    if not plain.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    for piece in pieces[1:-1]:
        start = plain.find(piece, at + 1)
        if start < 0 or is_figure(plain[at:start]):
            return False
        at = start + len(piece)
    if len(pieces) == 1:
        return at == len(plain) or not whole
    last = pieces[-1]
    end = len(plain) - len(last) if whole else plain.find(last, at + 1)
    return at < end and plain.startswith(last, end) and not is_figure(plain[at:end])
