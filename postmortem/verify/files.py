"""The other files of a ticket: what people read in them must be what the log gives, as in its report.json.

Checksums alone prove nothing, since whoever changes a file can change its checksum too. So the files are made again,
with the sender's labels, and compared line by line: whole, as text, our own words and what was cut too. Labels may be
numbered otherwise where one stands for one throughout the ticket.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from postmortem.verify.compare import Labels

MAX_FINDINGS = 5
"""Lines of one file that are told, at most."""


class Line(msgspec.Struct, frozen=True):
    """A line of a file that is not as the log gives it; None where one side has no such line."""

    name: str
    line: int
    sent: str | None
    made: str | None


def check(sent: Mapping[str, bytes], made: Mapping[str, str], labels: Labels) -> Iterator[Line]:
    """The lines of the files in `sent` that differ from those in `made`; `labels` are those of the whole ticket."""
    for name, text in sorted(made.items()):
        if name not in sent:
            yield Line(name, 1, None, text.split("\n", 1)[0])
            continue
        yield from _one(name, sent[name].decode("utf-8", "replace"), text, labels)


def _one(name: str, sent: str, made: str, labels: Labels) -> Iterator[Line]:
    ones, others = sent.split("\n"), made.split("\n")
    found = 0
    for at in range(max(len(ones), len(others))):
        one = ones[at] if at < len(ones) else None
        other = others[at] if at < len(others) else None
        if one is not None and other is not None and labels.same(one, other):
            continue
        yield Line(name, at + 1, one, other)
        found += 1
        if found == MAX_FINDINGS:
            return
