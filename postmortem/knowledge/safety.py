"""Whether the expressions of an entry may be tried on lines of strangers, and what their groups can hold.

Only the expressions are looked at, with a bound on what each can be made to do (expression_cost.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from postmortem.knowledge.expression_cost import MOST_STEPS, Cost, Judge, cost
from postmortem.knowledge.expression_trees import LONGEST, Unjudged, parsed, widest
from postmortem.knowledge.log_schema import Pattern

__all__ = ["LONGEST", "MOST_STEPS", "Cost", "Group", "Unjudged", "cost", "group", "longest", "problem", "uses"]


class Group(msgspec.Struct, frozen=True):
    """A named group of an expression: whether each match fills it, with which characters (those that were asked
    about), at most how many."""

    always: bool
    only: bool
    widest: int


def group(source: str, name: str, allowed: str) -> Group | None:
    """The group `name` of an expression, held against the characters that are `allowed`; None where it has none.

    Raises Unjudged.
    """
    tree = parsed(source)
    number = tree.state.groupdict.get(name)
    found = _group(tree, number, True, tree.state.flags)
    if number is None or found is None:
        return None
    inner, always, flags = found
    judge = Judge(tree, LONGEST)
    used = judge.characters(list(inner), flags)
    return Group(always, not used & ~judge.alphabet.set_of(allowed), widest(list(inner)))


def _group(items: Any, number: int | None, always: bool, flags: int) -> tuple[Any, bool, int] | None:
    """What a group holds, and whether it is always filled."""
    for kind, value in items:
        name = str(kind)
        below: list[tuple[Any, bool, int]] = []
        if name == "SUBPATTERN":
            inner = (flags | value[1]) & ~value[2]
            if value[0] == number:
                return value[3], always, inner
            below.append((value[3], always, inner))
        elif name == "ATOMIC_GROUP":
            below.append((value, always, flags))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            below.append((value[2], always and int(value[0]) > 0, flags))
        elif name == "BRANCH":
            below += [(one, False, flags) for one in value[1]]
        elif name in ("ASSERT", "ASSERT_NOT"):
            below.append((value[1], False, flags))
        elif name == "GROUPREF_EXISTS":
            below += [(one, False, flags) for one in value[1:] if one]
        for part, still, inside in below:
            found = _group(part, number, still, inside)
            if found is not None:
                return found
    return None


# --- entries -------------------------------------------------------------------------------------------
LONGEST_FRAME = 1_500
"""Characters of a frame as its entries see it: path, function and line of code are read up to a limit."""
LONGEST_SHOWN = 4 * 1024
"""Characters of a line that a report shows, and so of what is looked through for what it must hide."""


def longest(pattern: Pattern) -> int:
    """Characters of the longest text that an entry is tried on."""
    return LONGEST_FRAME if pattern.role == "frame" else LONGEST


def uses(pattern: Pattern) -> Iterable[tuple[str, str, bool]]:
    """The expressions of an entry: name, source, and whether it is tried at each place of a line."""
    bar = pattern.sets.event == "bar_syntax"
    yield "regex", pattern.regex, pattern.anywhere or bar
    for name, source in pattern.fields.items():
        yield name, source, True


def problem(source: str, *, anywhere: bool, longest: int = LONGEST) -> str | None:
    """Why an expression may not be tried on lines of strangers, and what to write instead; None if it may."""
    try:
        found = cost(source, anywhere=anywhere, longest=longest)
    except Unjudged as error:
        return f"cannot be shown to take linear time ({error}); use the syntax of Python's own re"
    if found.steps <= MOST_STEPS:
        return None
    unit = found.hostile[0][1] if found.hostile else ""
    how = "exponential" if found.steps > longest**4 else "more than linear"
    return (
        f"can take {how} time on a line that repeats {unit[:40]!r}; bound its repeats ({{0,200}}), or let what stands "
        "between two of them be something that neither takes"
    )
