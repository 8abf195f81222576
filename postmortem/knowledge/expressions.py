"""The expressions of the knowledge base, compiled: by the standard engine where it takes the syntax, else by `regex`.

Compiling is pure Python and a tenth of what a start costs, so the engine's own code for each expression is kept with
the compiled knowledge (see kept.py). Which engine a code is for is part of the key under which it is kept; where the
interpreter does not take it, the expression is compiled as ever.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.knowledge.log_schema import Pattern


class Code(msgspec.Struct, frozen=True, array_like=True):
    """What the engine runs for one expression: 32-bit words, and the groups by name."""

    flags: int
    words: bytes
    groups: int
    names: dict[str, int]


_CODES: dict[str, Code] = {}
_KEPT = 2
"""Counts how the expressions that are kept were made (`any_of`); codes of older ones are of no use."""
_DIGITS = frozenset("0123456789")
_TOKEN = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{[\d,]*\}|\(\?P?[<=]\w+[>)])|[0-9]", re.DOTALL)
"""A digit that stands for itself, or (the group) what holds digits of another meaning."""
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<?!|.", re.DOTALL)


@lru_cache(maxsize=4096)
def expression(source: str) -> Any:
    """`source`, compiled. The standard engine compiles three times faster than `regex`."""
    code = _CODES.get(source)
    if code is not None:
        made = _made(source, code)
        if made is not None:
            return made
    try:
        return re.compile(source)
    except (re.error, DeprecationWarning):  # of flags in the middle: Python 3.10 warns, which may be an error
        import regex

        return regex.compile(source)


def adopt(codes: Mapping[str, Code]) -> None:
    """Use these codes from now on; what an expression matches does not change by it."""
    _CODES.update(codes)
    expression.cache_clear()


def engine() -> str:
    """Names the engine whose codes are alike: the interpreter and the order of its bytes."""
    magic = getattr(_sre(), "MAGIC", 0)
    return f"{sys.implementation.cache_tag}-{magic}-{sys.byteorder}-{_KEPT}"


def codes_of(patterns: Iterable[Pattern]) -> dict[str, Code]:
    """The codes of all expressions that the scan may need, except those that the standard engine does not take."""
    listed = list(patterns)
    sources = {item.regex for item in listed} | {source for item in listed for source in item.fields.values()}
    sources |= {any_of(prefixes(listed)), any_of(carriers(listed))}
    found = {source: code for source in sorted(sources) if (code := _code(source)) is not None}
    return found


def any_of(items: Iterable[Pattern]) -> str:
    """Several entries as one expression, the first that matches wins: to learn that none does takes one call.

    The group that matched last (`lastgroup`) is `e` and the entry's index.
    """
    sources = (re.sub(r"\(\?P<\w+>", "(?:", item.regex) for item in items)
    return "|".join(f"(?P<e{index}>{source})" for index, source in enumerate(sources)) or "(?!)"


def prefixes(patterns: Iterable[Pattern]) -> list[Pattern]:
    """What may stand in front of a line."""
    return [item for item in patterns if item.role == "prefix"]


def carriers(patterns: Iterable[Pattern]) -> list[Pattern]:
    """What introduces a message at its start."""
    return [item for item in patterns if item.role == "carrier" and not item.anywhere]


@lru_cache(maxsize=1024)
def ignores_digits(source: str) -> bool:
    """Whether `source` matches the same text when digits in it are others; False where that is not sure."""
    _, parser = _compiler()
    try:
        return parser is not None and _ignores_digits(parser.parse(source, 0))
    except (re.error, OverflowError, RecursionError):
        return False


@lru_cache(maxsize=1024)
def with_any_digits(source: str) -> Any:
    """An expression that matches at least where `source` does, whatever the digits there; None if there is none."""
    wider = _TOKEN.sub(lambda token: token[1] or r"\d", _without_refusals(source))
    return re.compile(wider) if ignores_digits(wider) else None


def _without_refusals(source: str) -> str:
    """`source` without what must not stand somewhere."""
    kept: list[str] = []
    depth = 0
    refused: int | None = None
    for part in _PART.findall(source):
        depth += part.startswith("(")
        if refused is None and part in ("(?!", "(?<!"):
            refused = depth
        if refused is None:
            kept.append(part)
        if part == ")":
            refused = None if refused == depth else refused
            depth -= 1
    return "".join(kept)


def _ignores_digits(parsed: Any) -> bool:
    for operation, argument in parsed:
        name = str(operation)
        if name in ("LITERAL", "NOT_LITERAL"):
            same = chr(argument) not in _DIGITS
        elif name == "RANGE":
            low, high = argument
            same = high < ord("0") or low > ord("9") or (low <= ord("0") and high >= ord("9"))
        elif name == "IN":
            same = _ignores_digits(argument)
        elif name in ("SUBPATTERN", "MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT", "ASSERT", "ASSERT_NOT"):
            same = _ignores_digits(argument[-1])
        elif name == "BRANCH":
            same = all(map(_ignores_digits, argument[1]))
        else:
            same = name in ("ANY", "AT", "CATEGORY", "NEGATE")
        if not same:
            return False
    return True


def _code(source: str) -> Code | None:
    compiler, parser = _compiler()
    if compiler is None or len(source) > 100_000:
        return None
    try:
        parsed = parser.parse(source, 0)
        words = compiler._code(parsed, 0)
        packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
        state = parsed.state
        code = Code(state.flags, packed, state.groups, dict(state.groupdict))
    except (re.error, AttributeError, OverflowError, RecursionError):
        return None
    made = _made(source, code)
    return code if made is not None and made == re.compile(source) else None


def _made(source: str, code: Code) -> Any:
    names: list[str | None] = [None] * code.groups
    for name, index in code.names.items():
        names[index] = name
    try:
        words = memoryview(code.words).cast("I").tolist()
        return _sre().compile(source, code.flags, words, code.groups - 1, code.names, tuple(names))
    except (AttributeError, IndexError, OverflowError, RuntimeError, TypeError, ValueError):
        return None


def _sre() -> Any:
    try:
        import _sre  # type: ignore[import-not-found]  # CPython has it, no stubs do
    except ImportError:  # another interpreter than CPython
        return None
    return _sre


def _compiler() -> tuple[Any, Any]:
    for names in (("re._compiler", "re._parser"), ("sre_compile", "sre_parse")):
        if names[0] in sys.modules:
            return sys.modules[names[0]], sys.modules[names[1]]
    return None, None
