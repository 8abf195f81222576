"""What broke off at its line's end, followed through the lines behind it; see wrapped.py for what may."""

from __future__ import annotations

from collections.abc import Iterable

from postmortem.model import Event, Place
from postmortem.scan.items import Items
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.recognise import Recogniser
from postmortem.scan.wrapped import Unfinished, Wrapped

_MAY_BREAK_OFF = ("oom", "exception")
"""Roles of what is looked at for a rest in the lines that follow."""


class Rest:
    """The one message, and the one exception, whose rest is sought; what is found takes its place in the items."""

    def __init__(self, lexicon: Lexicon, recognise: Recogniser, items: Items) -> None:
        self._lexicon = lexicon
        self._recognise = recognise
        self._items = items
        self._wrapped: Wrapped | None = None
        self._unfinished: Unfinished | None = None

    @property
    def open(self) -> bool:
        """Whether the next line may belong to what broke off."""
        return self._wrapped is not None or self._unfinished is not None

    def watch(self, event: Event) -> None:
        """Look for the rest of an allocator's message that breaks off at the end of its line."""
        if event.role not in _MAY_BREAK_OFF or self._items.last is not event:
            return
        entry = self._lexicon.by_id.get(event.pattern)
        if entry is not None and Wrapped.wanted(event, entry):
            self._wrapped = Wrapped(event, entry)
        elif Unfinished.wanted(event):
            self._unfinished = Unfinished(event)

    def follow(self, text: str, *, claimed: bool) -> None:
        """The next line; `claimed` is one that says something of its own, which ends the search."""
        self._follow_wrapped(text, claimed=claimed)
        self._follow_unfinished(text, claimed=claimed)

    def _follow_wrapped(self, text: str, *, claimed: bool) -> None:
        if self._wrapped is None:
            return
        before = self._wrapped.event
        more = not claimed and self._wrapped.extend(self._lexicon.peel_prefix(text))
        if self._wrapped.event is not before:
            self._items.replace(before, self._wrapped.event)
        if not more:
            self._wrapped = None

    def _follow_unfinished(self, text: str, *, claimed: bool) -> None:
        """An exception's message that its line breaks off: known with the next line, it is that statement."""
        held = self._unfinished
        if held is None:
            return
        before = held.event
        more = not claimed and held.extend(self._lexicon.peel_prefix(text), self._as_one)
        if held.event is not before:
            self._items.replace(before, held.event)
            entry = self._lexicon.by_id.get(held.event.pattern)
            if entry is not None and Wrapped.wanted(held.event, entry):
                self._wrapped = Wrapped(held.event, entry)
        if not more:
            self._unfinished = None

    def _as_one(self, text: str, place: Place) -> Iterable[Event]:
        raw = text.encode()
        entries = {item for anchor, found in self._lexicon.anchored.items() if anchor in raw for item in found}
        return self._recognise(text, place, entries)
