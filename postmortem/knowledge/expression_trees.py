"""Expressions as the interpreter's own parser gives them: what can be read off a tree without following it."""

from __future__ import annotations

import re
import sys
from typing import Any

from postmortem.knowledge.expression_sets import Alphabet

LONGEST = 16 * 1024
"""Characters of the longest line that an expression is ever given."""


class Unjudged(ValueError):
    """The expression cannot be read, so nothing can be said of it."""


def parsed(source: str) -> Any:
    """The tree of `source`. Raises Unjudged where it is none that the interpreter's parser takes."""
    parser = _parser()
    if parser is None:
        raise Unjudged("this interpreter cannot say how expressions are built")
    try:
        return parser.parse(source)
    except (re.error, DeprecationWarning, OverflowError, RecursionError) as error:
        raise Unjudged(str(error) or type(error).__name__) from None


def _parser() -> Any:
    """The interpreter's own parser of expressions; it has moved once."""
    import importlib

    for name in ("re._parser", "sre_parse"):
        if name in sys.modules or name == "re._parser":
            try:
                return importlib.import_module(name)
            except ImportError:
                continue
    return None


def widest(items: list[Any]) -> int:
    """Characters of one round of a group, at most."""
    total = 0
    for kind, value in items:
        name = str(kind)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            total += 1
        elif name == "SUBPATTERN":
            total += widest(list(value[3]))
        elif name == "ATOMIC_GROUP":
            total += widest(list(value))
        elif name == "BRANCH":
            total += max(widest(list(inner)) for inner in value[1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            total += min(LONGEST, int(value[1])) * widest(list(value[2]))
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            total += LONGEST
    return min(total, LONGEST)


def anchored(tree: Any, flags: int) -> bool:
    """Whether an expression can only match at the start of what it is given."""
    for kind, value in tree:
        name = str(kind)
        if name == "AT":
            if str(value) == "AT_BEGINNING_STRING" or (str(value) == "AT_BEGINNING" and not flags & re.MULTILINE):
                return True
        elif name == "SUBPATTERN":
            return anchored(value[3], flags)
        elif name not in ("ASSERT", "ASSERT_NOT"):
            return False
    return False


def ambiguous(items: list[Any], alphabet: Alphabet, flags: int) -> bool:
    """Whether a choice in a group that repeats can take the same characters in two of its ways."""
    for kind, value in items:
        name = str(kind)
        if name == "BRANCH":
            heads = [_head(list(inner), alphabet, flags) for inner in value[1]]
            for index, one in enumerate(heads):
                if any(_alike(one, other) for other in heads[index + 1 :]):
                    return True
            if any(ambiguous(list(inner), alphabet, flags) for inner in value[1]):
                return True
        elif name == "SUBPATTERN":
            if ambiguous(list(value[3]), alphabet, (flags | value[1]) & ~value[2]):
                return True
        elif name == "ATOMIC_GROUP":
            if ambiguous(list(value), alphabet, flags):
                return True
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and ambiguous(list(value[2]), alphabet, flags):
            return True
    return False


def _head(items: list[Any], alphabet: Alphabet, flags: int) -> list[int]:
    """The sets of the characters with which a way begins, as far as each is sure to be there."""
    found: list[int] = []
    for kind, value in items:
        chars = alphabet.chars(str(kind), value, flags)
        if chars is not None:
            found.append(chars)
            continue
        name = str(kind)
        if name == "SUBPATTERN":
            below = _head(list(value[3]), alphabet, (flags | value[1]) & ~value[2])
            found += below
            if len(below) < len(value[3]):
                return found
            continue
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and int(value[0]) > 0 and len(value[2]) == 1:
            first = alphabet.chars(str(value[2][0][0]), value[2][0][1], flags)
            if first is not None:
                found += [first] * min(int(value[0]), 8)
        elif name == "AT":
            continue
        return found
    return found


def _alike(one: list[int], other: list[int]) -> bool:
    """Whether two ways can begin alike: no place shows them apart."""
    return all(mine & theirs for mine, theirs in zip(one, other))
