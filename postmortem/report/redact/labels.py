"""The labels that stand in for what is hidden: the same thing has always the same one, numbered by first appearance."""

from __future__ import annotations

import re
import unicodedata

import msgspec

_SEPARATORS = re.compile(r"[\\/]+")
LABEL = re.compile(r"<[a-z]{1,20}-\d{1,6}>")


class Hidden(msgspec.Struct, frozen=True):
    """What a label stands for: its kind, and the thing as it was first seen. `exact`: case tells two apart."""

    label: str
    original: str
    exact: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What makes two finds the same thing: case, the kind of slashes and the one at the end do not."""
        return self.label, self.original if self.exact else same(self.original)


def same(text: str) -> str:
    """`text` as it is compared."""
    folded = " ".join(unicodedata.normalize("NFC", text).casefold().split())
    return _SEPARATORS.sub("/", folded).rstrip("/") or folded


class Labels:
    """Gives labels and remembers what they stand for."""

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._things: dict[str, Hidden] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()

    def take(self, label: str, thing: Hidden | None = None) -> None:
        """Keep `label` for `thing`, or (where that is not known) from everything."""
        self._taken.add(label)
        if thing is not None:
            self._given[thing.key] = label
            self._things[label] = thing

    def thing(self, label: str) -> Hidden | None:
        """What `label` was given to."""
        return self._things.get(label)

    def of(self, thing: Hidden) -> str:
        """The label of `thing`; a new one where it has none."""
        found = self._given.get(thing.key)
        if found is None:
            while found is None or found in self._taken:
                self._counts[thing.label] = self._counts.get(thing.label, 0) + 1
                found = f"<{thing.label}-{self._counts[thing.label]}>"
            self._given[thing.key] = found
            self._things[found] = thing
        return found

    def mapping(self) -> dict[str, str]:
        """What each label stands for."""
        return {label: thing.original for label, thing in self._things.items()}
