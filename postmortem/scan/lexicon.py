"""The knowledge base, made ready for scanning: anchors as bytes, expressions compiled when first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from postmortem.knowledge.expressions import any_of, carriers, expression, prefixes
from postmortem.knowledge.schema import STATEMENTS, Knowledge, Pattern
from postmortem.model import Event
from postmortem.scan.literals import Engine, Literals

BAR_PARTS = ("n", "total", "elapsed", "postfix", "remaining", "rate")
"""The groups that every syntax of a bar has."""


class Compiled:
    """One pattern with its expressions, compiled on first use: most are never needed for a given log."""

    __slots__ = ("_fields", "_regex", "pattern")

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._regex: Any = None
        self._fields: dict[str, Any] | None = None

    def match(self, text: str) -> Any:
        """The match of the entry's expression at the start of `text` (anywhere in it for `anywhere`), or None."""
        if self._regex is None:
            self._regex = expression(self.pattern.regex)
        return self._regex.search(text) if self.pattern.anywhere else self._regex.match(text)

    @property
    def fields(self) -> dict[str, Any]:
        """The compiled field expressions by name."""
        if self._fields is None:
            self._fields = {name: expression(source) for name, source in self.pattern.fields.items()}
        return self._fields


class Lexicon:
    """All patterns by what the scan needs them for; `engine` is how their anchors are searched for."""

    def __init__(self, knowledge: Knowledge, engine: Engine = "best") -> None:
        self.knowledge = knowledge
        compiled = [Compiled(pattern) for pattern in knowledge.patterns]
        by_role: dict[str, list[Compiled]] = {}
        for item in compiled:
            by_role.setdefault(item.pattern.role, []).append(item)
        self.prefixes = by_role.get("prefix", [])
        self.carriers = by_role.get("carrier", [])
        self.openers = [item for item in self.carriers if not item.pattern.anywhere]
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
        self.meanings: dict[tuple[str, frozenset[Compiled]], tuple[Event, ...]] = {}
        """What lines that were read mean; see recognise.py."""
        self.settings: dict[bytes, str] = {}
        """Lines of configs that were read, without what stands before them; see dump.py."""
        self._peeled = "", ""
        """The line that was peeled last, and what is left of it."""
        self._owners = tuple(map(frozenset, asked.values()))
        self._literals = Literals(self.words, engine)

    def found(self, joined: bytes) -> list[tuple[int, frozenset[Compiled]]]:
        """Where an anchor stands in `joined`, in order, with its entries (none for what only introduces a message).

        For each line (cut at LF) and each anchor in it there is one place at least.
        """
        owners = self._owners
        return [(at, owners[index]) for at, index in sorted(self._literals.find(joined))]

    @cached_property
    def bars(self) -> tuple[re.Pattern[bytes], tuple[tuple[str, ...], ...]]:
        """One bytes expression for a drawn bar in any of tqdm's ways, and its group names for each way."""
        parts: list[str] = []
        names: list[tuple[str, ...]] = []
        for index, item in enumerate(self._bar_syntax):
            parts.append(re.sub(r"\(\?P<(\w+)>", rf"(?P<\g<1>_{index}>", item.pattern.regex))
            names.append(tuple(f"{name}_{index}" for name in BAR_PARTS))
        if not parts:  # a pack may have put something else in their place
            parts.append("".join(f"(?P<{name}_0>(?!))" for name in BAR_PARTS))
            names.append(tuple(f"{name}_0" for name in BAR_PARTS))
        return re.compile("|".join(parts).encode()), tuple(names)

    def peel_prefix(self, text: str) -> str:
        """`text` without the decorations (timestamps, ranks, container names) in front of it; itself without any."""
        asked, bare = self._peeled
        if asked is text:  # several readers of one line ask in turn
            return bare
        bare = text
        for _ in range(4):
            found = self._any_prefix.match(bare)
            if not found or not found.end():
                break
            bare = bare[found.end() :]
        self._peeled = text, bare
        return bare

    def prefix(self, text: str) -> Any:
        """The match of the entry whose decoration stands in front of `text`, with its groups; None without one."""
        found = self._any_prefix.match(text)
        return self.prefixes[int(found.lastgroup[1:])].match(text) if found and found.end() else None

    def carrier(self, text: str) -> Compiled | None:
        """The first entry that introduces a message at the start of `text`; None without one."""
        found = self._any_carrier.match(text)
        return self.openers[int(found.lastgroup[1:])] if found else None

    @cached_property
    def _any_prefix(self) -> Any:
        return expression(any_of(prefixes(self.knowledge.patterns)))

    @cached_property
    def _any_carrier(self) -> Any:
        return expression(any_of(carriers(self.knowledge.patterns)))


def ordered(entries: Iterable[Compiled]) -> list[Compiled]:
    """Entries in a stable order, those that others yield to first."""
    listed = sorted(entries, key=lambda item: item.pattern.id)
    yielding = {other for item in listed for other in item.pattern.yields_to}
    return sorted(listed, key=lambda item: item.pattern.id not in yielding)
