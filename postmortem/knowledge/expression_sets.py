"""The characters that an expression can tell apart, and the sets of them that its classes take, as bits."""

from __future__ import annotations

import re
from typing import Any

_OTHERS = "\x00\x85\xa0\xe9\u0416\u0663\u2028\u2502\ub0b4\U0001f600"
"""Of the characters beyond ASCII, one for each thing that a class can ask."""


class Alphabet:
    """The characters that the expression `tree` can tell apart; `all` is the set of those that a line can hold."""

    def __init__(self, tree: Any) -> None:
        literals: set[int] = set()
        _literals(tree, literals)
        ordered = dict.fromkeys([*range(128), *map(ord, _OTHERS), *sorted(literals)])
        self._letters = [chr(code) for code in ordered]
        self._places = {character: at for at, character in enumerate(self._letters)}
        # a line has no line end in it
        self.all = self._bits(lambda character: character not in "\r\n")
        self._sets: dict[str, int] = {}

    def set_of(self, characters: str) -> int:
        """The set of these characters."""
        return sum(1 << self._places[character] for character in characters)

    def chars(self, kind: str, value: Any, flags: int) -> int | None:
        """The characters that a node of one character takes; None for another node."""
        if kind == "ANY":
            return self.all
        if kind not in ("LITERAL", "NOT_LITERAL", "IN"):
            return None
        key = f"{kind} {value} {flags & (re.IGNORECASE | re.ASCII)}"
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = self._class(kind, value, flags) & self.all
        return known

    def _class(self, kind: str, value: Any, flags: int) -> int:
        if kind != "IN":
            cases = _cases(value) if flags & re.IGNORECASE else {value}
            found = sum(1 << self._places[chr(code)] for code in cases)
            return self.all & ~found if kind == "NOT_LITERAL" else found
        items = list(value)
        negated = bool(items) and str(items[0][0]) == "NEGATE"
        parts = items[1:] if negated else items
        found = self._bits(lambda character: any(_is(character, str(what), of, flags) for what, of in parts))
        return self.all & ~found if negated else found

    def _bits(self, holds: Any) -> int:
        return sum(1 << at for at, character in enumerate(self._letters) if holds(character))

    def some(self, chars: int) -> str:
        """One character out of a set, a plain one if there is any."""
        for character in (*"a0 /.-_:", *self._letters):
            if chars >> self._places[character] & 1:
                return str(character)
        return ""


def _literals(tree: Any, into: set[int]) -> None:
    """All characters that an expression names, with the ends of its ranges."""
    for kind, value in tree:
        name = str(kind)
        if name in ("LITERAL", "NOT_LITERAL"):
            into.update(_cases(value))
        elif name == "IN":
            for what, of in value:
                if str(what) == "LITERAL":
                    into.update(_cases(of))
                elif str(what) == "RANGE":
                    into.update(of)
        elif name == "BRANCH":
            for inner in value[1]:
                _literals(inner, into)
        elif name == "GROUPREF_EXISTS":
            for inner in value[1:]:
                _literals(inner or (), into)
        elif name == "SUBPATTERN":
            _literals(value[3], into)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _literals(value[2], into)
        elif name in ("ASSERT", "ASSERT_NOT"):
            _literals(value[1], into)
        elif name == "ATOMIC_GROUP":
            _literals(value, into)


def _cases(code: int) -> set[int]:
    character = chr(code)
    return {code, *(ord(one) for one in (character.lower(), character.upper()) if len(one) == 1)}


def _same(code: int, value: int, flags: int) -> bool:
    return code == value or bool(flags & re.IGNORECASE and code in _cases(value))


def _is(character: str, what: str, of: Any, flags: int) -> bool:
    if what == "LITERAL":
        return _same(ord(character), of, flags)
    if what == "RANGE":
        low, high = of
        return any(
            low <= code <= high for code in (_cases(ord(character)) if flags & re.IGNORECASE else (ord(character),))
        )
    name = str(of)
    plain = bool(flags & re.ASCII) and not character.isascii()
    for part, holds in (
        ("DIGIT", character.isdecimal()),
        ("SPACE", character.isspace()),
        ("WORD", character.isalnum() or character == "_"),
    ):
        if part in name:
            return (holds and not plain) != ("NOT" in name)
    return True
