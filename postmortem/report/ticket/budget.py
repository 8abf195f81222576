"""Make a ticket fit: whole forms of sections are given up, the least important first; nothing is cut in the middle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from postmortem.report import encode_ticket
from postmortem.report.ticket.blocks import Block, Section

_GONE = -1
Write = Callable[[Sequence[Block]], str]


def fitted(sections: Sequence[Section], write: Write, most: int, left_out: Callable[[list[str]], Block]) -> str:
    """The ticket in at most `most` characters (0: as long as it is), with `left_out(names)` at its end where anything
    is shortened or missing. Where even the last forms are too long, whole sections go from the end."""
    chosen = [0] * len(sections)

    def shown() -> str:
        less = [section.name for section, form in zip(sections, chosen) if form]
        kept = [section.forms[form] for section, form in zip(sections, chosen) if form != _GONE]
        blocks = [block for form in kept for block in form]
        return write([*blocks, left_out(list(dict.fromkeys(less)))] if less else blocks)

    def fits(text: str) -> bool:
        return not most or encode_ticket.length(text) <= most

    text = shown()
    steps = sorted(
        (rank, index, form) for index, section in enumerate(sections) for form, rank in enumerate(section.ranks)
    )
    taken: list[tuple[int, int]] = []
    for _, index, form in steps:
        if fits(text):
            break
        chosen[index] = form + 1
        taken.append((index, form))
        text = shown()
    for index in range(len(sections) - 1, 0, -1):
        if fits(text):
            break
        chosen[index] = _GONE
        text = shown()
        taken = []
    # what went early may have room again once something large has gone
    for index, form in reversed(taken):
        before, chosen[index] = chosen[index], min(form, chosen[index])
        fuller = shown()
        if fits(fuller):
            text = fuller
        else:
            chosen[index] = before
    return text
