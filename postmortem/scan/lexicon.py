"""The knowledge base, made ready for scanning: anchors as bytes, expressions compiled when first needed."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any

from postmortem.faults import PASSING, Fault, noted
from postmortem.knowledge.expressions import any_of, carriers, expression, prefixes
from postmortem.knowledge.log_schema import STATEMENTS, Pattern
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Event
from postmortem.scan import hidden
from postmortem.scan.literals import Engine, Literals
from postmortem.scan.segments import MAX_TEXT, BarSyntax
from postmortem.scan.sizes import NO_SIZES, Sizes, read_sizes

BAR_PARTS = ("n", "total", "elapsed", "postfix", "remaining", "rate")
"""The groups that every syntax of a bar has."""


class Broken:
    """The patterns that failed since this was emptied."""

    def __init__(self) -> None:
        self._faults: dict[str, Fault] = {}
        self.times = 0
        """How often one has failed, ever: an answer that came without a failure may be kept, another not."""

    def note(self, pattern: Pattern, error: Exception) -> None:
        """`pattern` has failed; the first time of each is told."""
        self.times += 1
        if pattern.id not in self._faults:
            self._faults[pattern.id] = noted(error, "pattern", pattern.id)

    def clear(self) -> None:
        """Another log begins."""
        self._faults.clear()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """One of each pattern, in an order that does not depend on which failed first."""
        return tuple(fault for _, fault in sorted(self._faults.items()))


class Compiled:
    """One pattern with its expressions, compiled on first use: most are never needed for a given log.

    An expression that fails on a text says nothing of that text, and the pattern is noted in `broken`. What it says of
    others stands: so the same log gives the same report in whatever order, and however often, its lines are asked.
    """

    __slots__ = ("_broken", "_fields", "_regex", "pattern")

    def __init__(self, pattern: Pattern, broken: Broken | None = None) -> None:
        self.pattern = pattern
        self._broken = broken or Broken()
        self._regex: Any = None
        self._fields: dict[str, Any] | None = None

    def match(self, text: str, at: int = 0) -> Any:
        """The match of the entry's expression at `at` in `text` (anywhere from there for `anywhere`), or None."""
        try:
            if self._regex is None:
                self._regex = expression(self.pattern.regex)
            return self._regex.search(text, at) if self.pattern.anywhere else self._regex.match(text, at)
        except PASSING:
            raise
        except Exception as error:  # any: an engine's own, and a stranger's expression
            self._broken.note(self.pattern, error)
            return None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the groups of the entry's expression stand in `text`, of each of its matches in order."""
        spans: list[tuple[int, int]] = []
        at = 0
        while (found := self.match(text, at)) is not None:
            spans += [found.span(group) for group in range(1, len(found.groups()) + 1) if found[group]]
            if not self.pattern.anywhere:
                break
            at = max(found.end(), at + 1)
        return spans

    def sizes(self, text: str) -> Sizes:
        """What the entry's fields find in `text`; see `read_sizes`."""
        if not self.pattern.fields:
            return NO_SIZES
        try:
            if self._fields is None:
                self._fields = {name: expression(source) for name, source in self.pattern.fields.items()}
            return read_sizes(self._fields, text)
        except PASSING:
            raise
        except Exception as error:  # any: as above
            self._broken.note(self.pattern, error)
            return NO_SIZES


class Lexicon:
    """All patterns by what the scan needs them for; `engine` is how their anchors are searched for."""

    def __init__(self, knowledge: Knowledge, engine: Engine = "best") -> None:
        self.knowledge = knowledge
        self.broken = Broken()
        compiled = [Compiled(pattern, self.broken) for pattern in knowledge.patterns]
        by_role: dict[str, list[Compiled]] = {}
        for item in compiled:
            by_role.setdefault(item.pattern.role, []).append(item)
        self.prefixes = by_role.get("prefix", [])
        self.carriers = by_role.get("carrier", [])
        self.openers = [item for item in self.carriers if not item.pattern.anywhere]
        self.namings = by_role.get("naming", [])
        self.frames = by_role.get("frame", [])
        self.by_id = {item.pattern.id: item for item in compiled}
        self.statements = [item for item in compiled if item.pattern.role in STATEMENTS]
        self.echoes = [item for item in compiled if item.pattern.sets.event == "echo"]
        bars = by_role.get("bar", [])
        self.bar_names = [item for item in bars if item.pattern.sets.event != "bar_syntax"]
        self._bar_syntax = [item for item in bars if item.pattern.sets.event == "bar_syntax"]
        self.anchored: dict[bytes, list[Compiled]] = {}
        for item in compiled:
            role = item.pattern.role
            if role in STATEMENTS or role in ("marker", "trainer"):
                for anchor in item.pattern.anchors:
                    self.anchored.setdefault(anchor.encode(), []).append(item)
        self.carrier_anchors = {a.encode() for item in self.carriers for a in item.pattern.anchors}
        # where a shorter one stands anyway, a longer one adds nothing
        alone = {a for a in self.carrier_anchors if not any(b in a for b in self.carrier_anchors - {a})}
        asked = {**dict.fromkeys(sorted(alone), ()), **{word: tuple(items) for word, items in self.anchored.items()}}
        self.words = tuple(asked)
        self.meanings: dict[tuple[str, frozenset[Compiled], tuple[str, ...]], tuple[Event, ...]] = {}
        """What lines that were read mean; see recognise.py."""
        self.framed: dict[str, tuple[Compiled, ...]] = {}
        """The `frame` entries that match a frame; see timeline/frames.py."""
        self.settings: dict[bytes, Any] = {}
        """What was read of lines of configs; see dump.py."""
        self._peeled = "", ""
        """The line that was peeled last, and what is left of it."""
        self._owners = tuple(map(frozenset, asked.values()))
        self._literals = Literals(self.words, engine)

    def found(self, joined: bytes) -> list[tuple[int, frozenset[Compiled]]]:
        """Where an anchor stands in `joined`, in order, with its entries (none for what only introduces a message).

        For each line (cut at LF) and each anchor in it there is one place at least. A line counts as it is and as it is
        seen, without escape sequences and what shows nothing; what only the latter holds is given as at its start.
        """
        owners = self._owners
        hits = self._literals.find(joined)
        hits += hidden.found(joined, self._literals.find, MAX_TEXT)
        return [(at, owners[index]) for at, index in sorted(hits)]

    def telling(self, texts: Sequence[str]) -> Iterator[str]:
        """Those of `texts` in which a statement's anchor stands: a line that repeats one looks as if it said that."""
        joined = "\n".join(text.replace("\n", " ").replace("\r", " ") for text in texts)
        if not joined:
            return
        raw = joined.encode("utf-8", "replace")
        starts = [0, *(found.end() for found in re.finditer(b"\n", raw))]
        told: set[int] = set()
        for at, entries in self.found(raw):
            index = bisect_right(starts, at) - 1
            if index not in told and any(item.pattern.role in STATEMENTS for item in entries):
                told.add(index)
                yield texts[index]

    @cached_property
    def bars(self) -> BarSyntax:
        """How a drawn bar is told, in any of tqdm's ways."""
        parts: list[str] = []
        names: list[tuple[str, ...]] = []
        for index, item in enumerate(self._bar_syntax):
            parts.append(re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>_{index}>", item.pattern.regex))
            names.append(tuple(f"{name}_{index}" for name in BAR_PARTS))
        if not parts:  # a pack may have put something else in their place
            parts.append("".join(f"(?P<{name}_0>(?!))" for name in BAR_PARTS))
            names.append(tuple(f"{name}_0" for name in BAR_PARTS))
        endings = {part[-3:] for part in parts}
        sign = re.fullmatch(r"[^\\]\\(\W)", endings.pop()) if len(endings) == 1 else None
        return re.compile("|".join(parts).encode()), tuple(names), sign[1].encode() if sign else b""

    def bar_name(self, text: str) -> Compiled | None:
        """The entry that knows a bar by its description `text`: a line that only quotes bars, else a bar; or None."""
        if not any(map(text.__contains__, self._bar_words)):
            return None
        return next((item for item in (*self.echoes, *self.bar_names) if item.match(text)), None)

    @cached_property
    def _bar_words(self) -> tuple[str, ...]:
        """The literals of which one is in all descriptions that an entry knows; the empty one where one has none."""
        named = (item.pattern.anchors or ("",) for item in (*self.echoes, *self.bar_names))
        return tuple(dict.fromkeys(word for words in named for word in words))

    def peel_prefix(self, text: str) -> str:
        """`text` without the decorations (timestamps, ranks, container names) in front of it; itself without any."""
        asked, bare = self._peeled
        if asked is text:  # several readers of one line ask in turn
            return bare
        bare = text
        for _ in range(4):
            _, end = self._first("_any_prefix", self.prefixes, bare)
            if not end:
                break
            bare = bare[end:]
        self._peeled = text, bare
        return bare

    def prefix(self, text: str) -> Any:
        """The match of the entry whose decoration stands in front of `text`, with its groups; None without one."""
        item, end = self._first("_any_prefix", self.prefixes, text)
        return item.match(text) if item is not None and end else None

    def carrier(self, text: str) -> Compiled | None:
        """The first entry that introduces a message at the start of `text`; None without one."""
        return self._first("_any_carrier", self.openers, text)[0]

    def _first(self, together: str, items: Sequence[Compiled], text: str) -> tuple[Compiled | None, int]:
        """The first of `items` that matches at the start of `text`, and how far: by their one expression `together`."""
        try:
            found = getattr(self, together).match(text)
        except PASSING:
            raise
        except Exception:  # any: one by one it shows which of them failed
            each = ((item, item.match(text)) for item in items)
            return next(((item, found.end()) for item, found in each if found), (None, 0))
        return (items[int(found.lastgroup[1:])], found.end()) if found else (None, 0)

    @cached_property
    def _any_prefix(self) -> Any:
        return expression(any_of(prefixes(self.knowledge.patterns)))

    @cached_property
    def _any_carrier(self) -> Any:
        return expression(any_of(carriers(self.knowledge.patterns)))


def ordered(entries: Collection[Compiled]) -> list[Compiled]:
    """Entries in a stable order, those that others yield to first."""
    if len(entries) < 2:
        return list(entries)
    listed = sorted(entries, key=lambda item: item.pattern.id)
    yielding = {other for item in listed for other in item.pattern.yields_to}
    return sorted(listed, key=lambda item: item.pattern.id not in yielding)
