"""How much an expression can be made to do: an upper bound on the steps that a backtracking engine takes for one line.

An expression is slow where one run of characters can be shared out between several of its repeats in many ways, and
what follows then fails: `.*x.*y` on a line of x tries each pair of places, `(a+)+b` each way to cut a line of a. So the
bound is found by following repeats whose characters overlap, with nothing between them that would tell where one ends;
each multiplies by how often it can repeat. It errs to the side of refusing: what it calls linear is linear.

Only the expression is looked at; nothing is matched and no clock is asked, so the verdict is the same everywhere.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.knowledge.schema import Pattern

LONGEST = 16 * 1024
"""Characters of the longest line that an expression is ever given."""
MOST_STEPS = 2_000 * LONGEST
"""More for one line is refused: a few hundred steps for each of its characters are linear, a line for each is not."""
MAX_SOURCE = 20_000
MAX_NODES = 20_000
MAX_ITERATIONS = 12
"""How often a group may repeat that can read the same characters in two ways."""
_NEVER = float("inf")
_OTHERS = "\x00\x85\xa0\xe9\u0416\u0663\u2028\u2502\ub0b4\U0001f600"
"""Of the characters beyond ASCII, one for each thing that a class can ask."""


class Unjudged(ValueError):
    """The expression cannot be read, so nothing can be said of it."""


class Cost(msgspec.Struct, frozen=True):
    """At most `steps` for one line; `hostile` is what makes it slow: what is in front, is repeated, comes behind."""

    steps: float
    hostile: tuple[tuple[str, str, str], ...] = ()

    @property
    def safe(self) -> bool:
        """Whether the expression may be tried on lines of strangers."""
        return self.steps <= MOST_STEPS


class _Node:
    """One or more characters out of a set, and what may come behind; `chars` is a set of bits of the alphabet."""

    __slots__ = ("after", "chars", "end", "high", "low", "number")

    def __init__(self, number: int, chars: int, low: int, high: int, after: tuple[_Node, ...]) -> None:
        self.number = number
        self.chars = chars
        self.low = low
        self.high = high
        self.after = after
        self.end = False
        """Whether it asks for the end of the line."""


_Chain = tuple[float, tuple[_Node, ...]]
"""How often repeats multiply, and which."""
_Key = tuple[int, int, frozenset[int]]


def cost(source: str, *, anywhere: bool, longest: int = LONGEST) -> Cost:
    """The bound for `source`, tried at the start of a line of up to `longest` characters, or at each place of it with
    `anywhere`.

    Raises Unjudged for what the standard engine's parser does not take.
    """
    return _cost(source, anywhere, longest)


@lru_cache(maxsize=2048)
def _cost(source: str, anywhere: bool, longest: int) -> Cost:
    if len(source) > MAX_SOURCE:
        raise Unjudged(f"longer than {MAX_SOURCE} characters")
    parser = _parser()
    if parser is None:
        raise Unjudged("this interpreter cannot say how expressions are built")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            try:
                tree = parser.parse(source)
            except re.error:  # the `regex` package takes a name twice
                tree = parser.parse(re.sub(r"\(\?P<\w+>", "(", source))
            return _Judge(tree, longest).judged(anywhere=anywhere)
        except (re.error, OverflowError, RecursionError) as error:
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


class _Judge:
    """Builds the graph of one expression and follows the repeats in it."""

    def __init__(self, tree: Any, longest: int) -> None:
        self._tree = tree
        self._longest = longest
        self._flags = tree.state.flags
        literals: set[int] = set()
        _literals(tree, literals)
        ordered = dict.fromkeys([*range(128), *map(ord, _OTHERS), *sorted(literals)])
        self.alphabet = [chr(code) for code in ordered]
        self._places = {character: at for at, character in enumerate(self.alphabet)}
        # a line has no line end in it
        self._all = sum(1 << at for at, character in enumerate(self.alphabet) if character not in "\r\n")
        self._sets: dict[str, int] = {}
        self._count = 0
        self._factor = 1.0
        self._end = self._node(0, 0, 0, ())
        self._check = self._node(0, 0, 0, ())
        self._nodes: list[_Node]

    def judged(self, *, anywhere: bool) -> Cost:
        nodes: list[_Node] = []
        self._nodes = nodes
        first = self._build(list(self._tree), (self._end,), self._flags)
        anchored = _anchored(self._tree, self._flags)
        if anywhere and not anchored:
            start = self._node(self._all, 0, self._longest, first)
            first = (start,)
        best: _Chain = (1.0, ())
        known: dict[_Key, _Chain] = {}
        for node in nodes:
            if node.high > 1 and self._can_fail(node):
                times, behind = self._most(node.after, node.chars, frozenset(), known)
                if times * node.high > best[0]:
                    best = times * node.high, (node, *behind)
        steps = max(best[0], float(self._longest)) * self._factor
        return Cost(steps, self._hostile(best[1], first))

    # --- the graph ------------------------------------------------------------------------------------
    def _node(self, chars: int, low: int, high: int, after: tuple[_Node, ...]) -> _Node:
        self._count += 1
        if self._count > MAX_NODES:
            raise Unjudged("too large")
        made = _Node(self._count, chars, low, min(high, self._longest), after)
        if self._count > 2:
            self._nodes.append(made)
        return made

    def _build(self, items: list[Any], after: tuple[_Node, ...], flags: int) -> tuple[_Node, ...]:
        """The nodes with which `items` can begin, where `after` are those behind them."""
        for kind, value in reversed(items):
            after = _unique(self._one(str(kind), value, after, flags))
        return after

    def _one(self, kind: str, value: Any, after: tuple[_Node, ...], flags: int) -> tuple[_Node, ...]:
        chars = self._chars(kind, value, flags)
        if chars is not None:
            return (self._node(chars, 1, 1, after),)
        if kind == "SUBPATTERN":
            _, added, dropped, inner = value
            return self._build(list(inner), after, (flags | added) & ~dropped)
        if kind == "ATOMIC_GROUP":
            return self._build(list(value), after, flags)
        if kind == "BRANCH":
            return tuple(node for inner in value[1] for node in self._build(list(inner), after, flags))
        if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, inner = value
            return self._repeat(int(low), min(int(high), self._longest), list(inner), after, flags)
        if kind in ("ASSERT", "ASSERT_NOT"):
            direction, inner = value
            ahead = self._build(list(inner), (self._check,), flags) if direction > 0 else ()
            return (*ahead, self._node(0, 0, 0, after))
        if kind == "GROUPREF_EXISTS":
            _, yes, no = value
            other = self._build(list(no), after, flags) if no else after
            return (*self._build(list(yes), after, flags), *other)
        if kind == "AT" and str(value) in ("AT_END", "AT_END_STRING"):
            place = self._node(0, 0, 0, after)
            place.end = True
            return (place,)
        # a place, or a group once more: characters that are given, so nothing is shared out
        return (self._node(0, 0, 0, after),)

    def _repeat(self, low: int, high: int, inner: list[Any], after: tuple[_Node, ...], flags: int) -> tuple[_Node, ...]:
        if high == 0:
            return after
        while len(inner) == 1 and str(inner[0][0]) == "SUBPATTERN" and high > 1:
            _, added, dropped, deeper = inner[0][1]
            flags, inner = (flags | added) & ~dropped, list(deeper)
        single = self._chars(str(inner[0][0]), inner[0][1], flags) if len(inner) == 1 else None
        if single is not None:
            node = self._node(single, low, high, after)
            return (node, *after) if low == 0 else (node,)
        if high == 1:
            begun = self._build(inner, after, flags)
            return (*begun, *after) if low == 0 else begun
        self._judge_group(inner, high, flags)
        from_here = self._count
        begun = self._build(inner, after, flags)
        used = 0
        for node in self._nodes:
            if node.number > from_here:
                used |= node.chars
        whole = self._node(used, low, min(self._longest, high * _widest(inner)), after)
        return (whole, *begun, *(after if low == 0 else ()))

    def _judge_group(self, inner: list[Any], high: int, flags: int) -> None:
        """A group that repeats: two of its rounds, one behind the other, must not share characters out."""
        kept, self._nodes = self._nodes, []
        second = self._build(inner, (self._check,), flags)
        behind = {node.number for node in self._nodes}
        middle = self._node(0, 0, 0, second)
        self._build(inner, (middle,), flags)
        known: dict[_Key, _Chain] = {}
        times = 1.0
        for node in self._nodes:
            if node.high > 1 and node.number not in behind and node is not middle:
                times = max(times, self._most(node.after, node.chars, frozenset(), known)[0])
        self._nodes = kept
        if times > 1:
            self._multiply(times, high)
        if _ambiguous(inner, self, flags):
            self._multiply(2.0, high)

    def _multiply(self, times: float, rounds: int) -> None:
        self._factor *= times**rounds if rounds <= MAX_ITERATIONS else _NEVER

    # --- following repeats ----------------------------------------------------------------------------
    def _can_fail(self, node: _Node) -> bool:
        """Whether what stands behind a repeat can fail; what takes all of a line finds its end, and is never taken
        back."""
        return node.chars != self._all or not any(self._ends(one) for one in node.after)

    def _ends(self, node: _Node) -> bool:
        return node is self._end or (node.end and any(self._ends(one) for one in node.after))

    def _most(self, nodes: Iterable[_Node], chars: int, between: frozenset[int], known: dict[_Key, _Chain]) -> _Chain:
        best: _Chain = (1.0, ())
        for node in nodes:
            found = self._from(node, chars, between, known)
            if found[0] > best[0]:
                best = found
        return best

    def _from(self, node: _Node, chars: int, between: frozenset[int], known: dict[_Key, _Chain]) -> _Chain:
        """How often more the repeats from `node` on share characters out with one before them, that takes `chars`;
        and which these are. `between` are the sets of what stands between the two."""
        if node is self._end or node is self._check:
            return 1.0, ()
        if not node.chars:
            return self._most(node.after, chars, between, known)
        if not node.chars & chars:
            return 1.0, ()
        key = (node.number, chars, between)
        found = known.get(key)
        if found is not None:
            return found
        times, chain = self._most(node.after, chars, between | {node.chars & chars}, known)
        found = (times, (node, *chain)) if times > 1 else (1.0, ())
        common = node.chars & chars
        if node.high > 1 and self._can_fail(node) and all(common & one for one in between):
            times, chain = self._most(node.after, node.chars, frozenset(), known)
            if times * node.high > found[0]:
                found = (times * node.high, (node, *chain))
        known[key] = found
        return found

    # --- characters -----------------------------------------------------------------------------------
    def _chars(self, kind: str, value: Any, flags: int) -> int | None:
        """The characters that a node of one character takes; None for another node."""
        if kind == "ANY":
            return self._all
        if kind not in ("LITERAL", "NOT_LITERAL", "IN"):
            return None
        key = f"{kind} {value} {flags & (re.IGNORECASE | re.ASCII)}"
        known = self._sets.get(key)
        if known is None:
            known = self._sets[key] = self._class(kind, value, flags) & self._all
        return known

    def _class(self, kind: str, value: Any, flags: int) -> int:
        if kind != "IN":
            cases = _cases(value) if flags & re.IGNORECASE else {value}
            found = sum(1 << self._places[chr(code)] for code in cases)
            return self._all & ~found if kind == "NOT_LITERAL" else found
        items = list(value)
        negated = bool(items) and str(items[0][0]) == "NEGATE"
        parts = items[1:] if negated else items
        found = self._bits(lambda character: any(_is(character, str(what), of, flags) for what, of in parts))
        return self._all & ~found if negated else found

    def _bits(self, holds: Any) -> int:
        return sum(1 << at for at, character in enumerate(self.alphabet) if holds(character))

    def _some(self, chars: int) -> str:
        """One character out of a set, a plain one if there is any."""
        for character in (*"a0 /.-_:", *self.alphabet):
            if chars >> self._places[character] & 1:
                return str(character)
        return ""

    def _hostile(self, chain: tuple[_Node, ...], first: tuple[_Node, ...]) -> tuple[tuple[str, str, str], ...]:
        """Texts that make the chain work: a way to its first repeat, what all of its repeats take, and a bad end."""
        if not chain:
            return ()
        two = [at for at, node in enumerate(chain) if node.high > 1][:2]
        shared = self._all
        for at in two:
            shared &= chain[at].chars
        between = chain[two[0] + 1 : two[1]] if len(two) > 1 else ()
        unit = "".join(self._some(node.chars & shared) * max(1, node.low) for node in between) or self._some(shared)
        head = self._way(first, chain[0])
        return tuple((head, unit, end) for end in ("\x00", "\n", "!"))

    def _way(self, first: tuple[_Node, ...], to: _Node) -> str:
        """The shortest text that leads to a node."""
        reached: dict[int, str] = {}
        waiting = [(node, "") for node in first]
        while waiting:
            node, text = waiting.pop(0)
            if node is to:
                return text
            if node.number in reached:
                continue
            reached[node.number] = text
            waiting += [(after, text + self._some(node.chars) * node.low) for after in node.after]
        return ""


def _unique(nodes: tuple[_Node, ...]) -> tuple[_Node, ...]:
    return tuple(dict.fromkeys(nodes))


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


def _widest(items: list[Any]) -> int:
    """Characters of one round of a group, at most."""
    total = 0
    for kind, value in items:
        name = str(kind)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            total += 1
        elif name == "SUBPATTERN":
            total += _widest(list(value[3]))
        elif name == "ATOMIC_GROUP":
            total += _widest(list(value))
        elif name == "BRANCH":
            total += max(_widest(list(inner)) for inner in value[1])
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            total += min(LONGEST, int(value[1])) * _widest(list(value[2]))
        elif name in ("GROUPREF", "GROUPREF_EXISTS"):
            total += LONGEST
    return min(total, LONGEST)


def _anchored(tree: Any, flags: int) -> bool:
    """Whether an expression can only match at the start of what it is given."""
    for kind, value in tree:
        name = str(kind)
        if name == "AT":
            if str(value) == "AT_BEGINNING_STRING" or (str(value) == "AT_BEGINNING" and not flags & re.MULTILINE):
                return True
        elif name == "SUBPATTERN":
            return _anchored(value[3], flags)
        elif name not in ("ASSERT", "ASSERT_NOT"):
            return False
    return False


def _ambiguous(items: list[Any], judge: _Judge, flags: int) -> bool:
    """Whether a choice in a group that repeats can take the same characters in two of its ways."""
    for kind, value in items:
        name = str(kind)
        if name == "BRANCH":
            heads = [_head(list(inner), judge, flags) for inner in value[1]]
            for index, one in enumerate(heads):
                if any(_alike(one, other) for other in heads[index + 1 :]):
                    return True
            if any(_ambiguous(list(inner), judge, flags) for inner in value[1]):
                return True
        elif name == "SUBPATTERN":
            if _ambiguous(list(value[3]), judge, (flags | value[1]) & ~value[2]):
                return True
        elif name == "ATOMIC_GROUP":
            if _ambiguous(list(value), judge, flags):
                return True
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and _ambiguous(list(value[2]), judge, flags):
            return True
    return False


def _head(items: list[Any], judge: _Judge, flags: int) -> list[int]:
    """The sets of the characters with which a way begins, as far as each is sure to be there."""
    found: list[int] = []
    for kind, value in items:
        chars = judge._chars(str(kind), value, flags)
        if chars is not None:
            found.append(chars)
            continue
        name = str(kind)
        if name == "SUBPATTERN":
            below = _head(list(value[3]), judge, (flags | value[1]) & ~value[2])
            found += below
            if len(below) < len(value[3]):
                return found
            continue
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and int(value[0]) > 0 and len(value[2]) == 1:
            first = judge._chars(str(value[2][0][0]), value[2][0][1], flags)
            if first is not None:
                found += [first] * min(int(value[0]), 8)
        elif name == "AT":
            continue
        return found
    return found


def _alike(one: list[int], other: list[int]) -> bool:
    """Whether two ways can begin alike: no place shows them apart."""
    return all(mine & theirs for mine, theirs in zip(one, other))


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
    parser = _parser()
    if parser is None:
        raise Unjudged("this interpreter cannot say how expressions are built")
    try:
        tree = parser.parse(source)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unjudged(str(error) or type(error).__name__) from None
    number = tree.state.groupdict.get(name)
    found = _group(tree, number, True, tree.state.flags)
    if number is None or found is None:
        return None
    inner, always, flags = found
    judge = _Judge(tree, LONGEST)
    judge._nodes = []
    judge._build(list(inner), (judge._end,), flags)
    used = 0
    for node in judge._nodes:
        used |= node.chars
    within = sum(1 << judge._places[character] for character in allowed)
    return Group(always, not used & ~within, _widest(list(inner)))


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
