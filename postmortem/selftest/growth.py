"""Whether an expression stays fast on hostile lines: what its structure allows, and what it takes when it is tried.

The first is a proof and needs no clock. The second grows lines that were made to be slow for the very entry, by
doubling, and speaks up only where the longest takes a time that no linear expression comes near, and grew faster than
its line did: a busy machine does not make it speak.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from postmortem.knowledge import safety
from postmortem.knowledge.expressions import expression
from postmortem.knowledge.log_schema import Pattern
from postmortem.knowledge.schema import Knowledge

SIZES = (1024, 2048, 4096, 8192, safety.LONGEST)
SLOW_S = 0.25
"""Of the process's own time, for the longest line: a hundred times what a linear expression takes."""
GROWS = 3.0
"""A line twice as long takes twice the time, or four times where pairs of places are tried."""
HOPELESS_S = 2.0
"""No longer line is tried after one that took so long."""
TRIES = 3
MAX_EXAMPLES = 4
_ENDS = ("", "\x00", " !")


class Tried(msgspec.Struct, frozen=True):
    """One expression of the knowledge base, as it is used on a line."""

    entry: str
    name: str
    source: str
    anywhere: bool
    longest: int
    examples: tuple[str, ...] = ()


def expressions(knowledge: Knowledge) -> Iterator[Tried]:
    """All expressions that are tried on the lines of a log."""
    for pattern in knowledge.patterns:
        yield from _of_pattern(pattern)


def redactions(knowledge: Knowledge) -> Iterator[Tried]:
    """Those that are tried on the lines of a report."""
    for entry in knowledge.redactions:
        for name, source in (("regex", entry.regex), ("parts", entry.parts), ("tail", entry.tail)):
            if source:
                yield Tried(entry.id, name, source, True, safety.LONGEST_SHOWN, entry.examples.match[:MAX_EXAMPLES])


def _of_pattern(pattern: Pattern) -> Iterator[Tried]:
    examples = (*pattern.examples.match, *pattern.examples.no_match)[:MAX_EXAMPLES]
    for name, source, anywhere in safety.uses(pattern):
        yield Tried(pattern.id, name, source, anywhere, safety.longest(pattern), examples)


def problems(knowledge: Knowledge) -> Iterator[str]:
    """A line for each expression that hostile lines can make slow."""
    for one in expressions(knowledge):
        told = safety.problem(one.source, anywhere=one.anywhere, longest=one.longest)
        if told is not None:
            yield f"{one.entry}: {one.name}: {told}"
            continue
        slow = measured(one)
        if slow is not None:
            yield f"{one.entry}: {one.name}: {slow}"
    # what hides is bounded in every repeat, by which no bound for all of it is told: here the clock alone speaks
    for one in redactions(knowledge):
        slow = measured(one)
        if slow is not None:
            yield f"{one.entry}: {one.name}: {slow}"


def measured(one: Tried, sizes: Sequence[int] = SIZES) -> str | None:
    """What is wrong with how the expression's time grows; None if nothing is."""
    compiled = expression(one.source)
    search = compiled.search if one.anywhere else compiled.match
    for head, unit, end in _hostile(one):
        before = 0.0
        for size in (size for size in sizes if size <= one.longest):
            line = head + unit * max(1, (size - len(head)) // len(unit)) + end
            took = _fastest(search, line)
            if took > HOPELESS_S or (took > SLOW_S and took > GROWS * before and before > 0):
                return (
                    f"takes {took:.2f} s for a line of {len(line)} characters such as "
                    f"{line[:60]!r}, {before:.2f} s for half of it"
                )
            before = took
    return None


def _fastest(search: Any, line: str) -> float:
    best = HOPELESS_S * 10
    for _ in range(TRIES):
        began = time.process_time()
        search(line)
        best = min(best, time.process_time() - began)
        if best < SLOW_S or best > HOPELESS_S:
            break
    return best


def _hostile(one: Tried) -> Iterator[tuple[str, str, str]]:
    """What stands in front, what is repeated, and what stands behind."""
    found = safety.cost(one.source, anywhere=one.anywhere, longest=one.longest).hostile
    seen: set[tuple[str, str, str]] = set()
    units = [(head, unit, end) for head, unit, end in found if unit]
    for example in one.examples:
        units += [("", example, end) for end in _ENDS]
        for cut in (len(example) // 2, len(example) - 1):
            start = example[:cut]
            units += [("", start, "\x00"), (start, start[-1:], "\x00"), (start, " ", "\x00"), (start, "0", "\x00")]
    for head, unit, end in units:
        if unit and (head, unit, end) not in seen:
            seen.add((head, unit, end))
            yield head, unit, end
