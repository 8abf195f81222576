"""How much an expression can be made to do: an upper bound on the steps that a backtracking engine takes for one line.

An expression is slow where one run of characters can be shared out between several of its repeats in many ways, and
what follows then fails: `.*x.*y` on a line of x tries each pair of places, `(a+)+b` each way to cut a line of a. So the
bound is found by following repeats whose characters overlap, with nothing between them that would tell where one ends;
each multiplies by how often it can repeat. It errs to the side of refusing: what it calls linear is linear.

Only the expression is looked at; nothing is matched and no clock is asked, so the verdict is the same everywhere.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.knowledge.expression_sets import Alphabet
from postmortem.knowledge.expression_trees import LONGEST, Unjudged, ambiguous, anchored, parsed, widest

MOST_STEPS = 2_000 * LONGEST
"""More for one line is refused: a few hundred steps for each of its characters are linear, a line for each is not."""
MAX_SOURCE = 20_000
MAX_NODES = 20_000
MAX_ITERATIONS = 12
"""How often a group may repeat that can read the same characters in two ways."""
_NEVER = float("inf")


class Cost(msgspec.Struct, frozen=True):
    """At most `steps` for one line; `hostile` is what makes it slow: what is in front, is repeated, comes behind."""

    steps: float
    hostile: tuple[tuple[str, str, str], ...] = ()

    @property
    def safe(self) -> bool:
        """Whether the expression may be tried on lines of strangers."""
        return self.steps <= MOST_STEPS


class Node:
    """One or more characters out of a set, and what may come behind; `chars` is a set of bits of the alphabet."""

    __slots__ = ("after", "chars", "end", "high", "low", "number")

    def __init__(self, number: int, chars: int, low: int, high: int, after: tuple[Node, ...]) -> None:
        self.number = number
        self.chars = chars
        self.low = low
        self.high = high
        self.after = after
        self.end = False
        """Whether it asks for the end of the line."""


_Chain = tuple[float, tuple[Node, ...]]
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DeprecationWarning)  # as knowledge.load has it
        try:
            tree = parsed(source)
        except Unjudged:  # the `regex` package takes a name twice
            tree = parsed(re.sub(r"\(\?P<\w+>", "(", source))
    try:
        return Judge(tree, longest).judged(anywhere=anywhere)
    except (re.error, OverflowError, RecursionError) as error:
        raise Unjudged(str(error) or type(error).__name__) from None


class Judge:
    """Builds the graph of one expression and follows the repeats in it."""

    def __init__(self, tree: Any, longest: int) -> None:
        self._tree = tree
        self._longest = longest
        self._flags = tree.state.flags
        self.alphabet = Alphabet(tree)
        self._count = 0
        self._factor = 1.0
        self._end = self._node(0, 0, 0, ())
        self._check = self._node(0, 0, 0, ())
        self._nodes: list[Node]

    def characters(self, items: list[Any], flags: int) -> int:
        """The set of the characters that a match of `items`, a part of the expression, can hold."""
        self._nodes = []
        self._build(items, (self._end,), flags)
        used = 0
        for node in self._nodes:
            used |= node.chars
        return used

    def judged(self, *, anywhere: bool) -> Cost:
        """The bound for the whole expression."""
        nodes: list[Node] = []
        self._nodes = nodes
        first = self._build(list(self._tree), (self._end,), self._flags)
        if anywhere and not anchored(self._tree, self._flags):
            start = self._node(self.alphabet.all, 0, self._longest, first)
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
    def _node(self, chars: int, low: int, high: int, after: tuple[Node, ...]) -> Node:
        self._count += 1
        if self._count > MAX_NODES:
            raise Unjudged("too large")
        made = Node(self._count, chars, low, min(high, self._longest), after)
        if self._count > 2:
            self._nodes.append(made)
        return made

    def _build(self, items: list[Any], after: tuple[Node, ...], flags: int) -> tuple[Node, ...]:
        """The nodes with which `items` can begin, where `after` are those behind them."""
        for kind, value in reversed(items):
            after = _unique(self._one(str(kind), value, after, flags))
        return after

    def _one(self, kind: str, value: Any, after: tuple[Node, ...], flags: int) -> tuple[Node, ...]:
        chars = self.alphabet.chars(kind, value, flags)
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

    def _repeat(self, low: int, high: int, inner: list[Any], after: tuple[Node, ...], flags: int) -> tuple[Node, ...]:
        if high == 0:
            return after
        while len(inner) == 1 and str(inner[0][0]) == "SUBPATTERN" and high > 1:
            _, added, dropped, deeper = inner[0][1]
            flags, inner = (flags | added) & ~dropped, list(deeper)
        single = self.alphabet.chars(str(inner[0][0]), inner[0][1], flags) if len(inner) == 1 else None
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
        whole = self._node(used, low, min(self._longest, high * widest(inner)), after)
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
        if ambiguous(inner, self.alphabet, flags):
            self._multiply(2.0, high)

    def _multiply(self, times: float, rounds: int) -> None:
        self._factor *= times**rounds if rounds <= MAX_ITERATIONS else _NEVER

    # --- following repeats ----------------------------------------------------------------------------
    def _can_fail(self, node: Node) -> bool:
        """Whether what stands behind a repeat can fail; what takes all of a line finds its end, and is never taken
        back."""
        return node.chars != self.alphabet.all or not any(self._ends(one) for one in node.after)

    def _ends(self, node: Node) -> bool:
        return node is self._end or (node.end and any(self._ends(one) for one in node.after))

    def _most(self, nodes: Iterable[Node], chars: int, between: frozenset[int], known: dict[_Key, _Chain]) -> _Chain:
        best: _Chain = (1.0, ())
        for node in nodes:
            found = self._from(node, chars, between, known)
            if found[0] > best[0]:
                best = found
        return best

    def _from(self, node: Node, chars: int, between: frozenset[int], known: dict[_Key, _Chain]) -> _Chain:
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

    def _hostile(self, chain: tuple[Node, ...], first: tuple[Node, ...]) -> tuple[tuple[str, str, str], ...]:
        """Texts that make the chain work: a way to its first repeat, what all of its repeats take, and a bad end."""
        if not chain:
            return ()
        two = [at for at, node in enumerate(chain) if node.high > 1][:2]
        shared = self.alphabet.all
        for at in two:
            shared &= chain[at].chars
        between = chain[two[0] + 1 : two[1]] if len(two) > 1 else ()
        unit = "".join(
            self.alphabet.some(node.chars & shared) * max(1, node.low) for node in between
        ) or self.alphabet.some(shared)
        head = self._way(first, chain[0])
        return tuple((head, unit, end) for end in ("\x00", "\n", "!"))

    def _way(self, first: tuple[Node, ...], to: Node) -> str:
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
            waiting += [(after, text + self.alphabet.some(node.chars) * node.low) for after in node.after]
        return ""


def _unique(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple(dict.fromkeys(nodes))
