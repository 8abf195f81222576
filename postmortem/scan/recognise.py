"""Say what one text segment means: peel its decorations, then ask the entries whose anchors it holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from postmortem.knowledge.log_schema import STATEMENTS
from postmortem.model import Event, Place
from postmortem.scan.lexicon import Compiled, Lexicon, ordered
from postmortem.text import LogText

MAX_EVENT_TEXT = 2000
_FAR = 60
"""Characters before a message from which on they are another line that was pasted together with it."""
MAX_MESSAGE = 4000
"""Characters of a message that are searched for sizes; no allocator prints half of that."""

MAX_CHOSEN, MAX_CHOSEN_TEXT = 64, 2000
"""Texts of the user's that look like statements, and characters of one."""
_BLANK = "\u00b7"
"""Stands for each character of what was named."""
MAX_KNOWN = 1024
"""Lines whose meaning is kept: a flood repeats one line, or a few in turn, and many logs say the same."""
_QUOTING = re.compile(
    r"""(?:[/\\][^\s/\\:]{0,255}?|\w\ ['"`\u2018\u201c])  # a path, or a word and an opening quotation mark
    (?:[\w.]{0,200}(?:Error|Exception):\ )?\Z""",
    re.VERBOSE,
)
"""What stands directly before words that are part of a path or a quotation. After `= "` or `: "` they are a value."""
_FRAME = re.compile(r"[\s#=*|\u2502\u2503]{0,200}")
"""What a banner is framed with."""
_BEFORE = 500
_NAMES_A_BAR = re.compile(r"[^|%\r\n]{0,200}?: {1,3}\d{1,3}%(?:\||\Z)")
"""What stands behind words that are the description of a bar which was cut or torn."""


class _Message(msgspec.Struct):
    """What is left of a segment once carriers are peeled, and what they said."""

    text: str
    carriers: tuple[str, ...] = ()
    exception: str | None = None
    caught: bool = False
    phase: str | None = None
    event: str | None = None
    at: int = 0
    """Where in the segment an exception's name stands that something else precedes."""


class Recogniser:
    """Turns segments into events."""

    def __init__(self, lexicon: Lexicon, source: str) -> None:
        self._lexicon = lexicon
        self._source = source
        self._known = lexicon.meanings
        self._chosen: tuple[str, ...] = ()
        """Texts of the user's that look like a statement: the job's name, paths and prompts of its config."""
        self.cut = 0
        """Events that hold a part of their line only."""
        self._asked: set[str] = set()
        """Texts of the user's that need not be looked at again: the jobs of one log have most in common."""

    @property
    def named(self) -> tuple[str, ...]:
        """Texts of the user's that look like statements."""
        return self._chosen

    def chosen(self, texts: Sequence[str]) -> None:
        """The user wrote or named `texts`: where a line repeats one of them, that says nothing."""
        new = [text for text in (text.strip()[:MAX_CHOSEN_TEXT] for text in texts) if text not in self._asked]
        if len(self._asked) < MAX_KNOWN:
            self._asked.update(new)
        for text in self._lexicon.telling(new):
            if text not in self._chosen and len(self._chosen) < MAX_CHOSEN:
                self._chosen = (*self._chosen, text)

    def __call__(self, text: str, place: Place, entries: Any) -> Iterator[Event]:
        """The events of one segment: at most one marker or statement, and any trainer marks."""
        bare = self._lexicon.peel_prefix(text)
        said = (bare, frozenset(entries), self._chosen)
        known = self._known.get(said)
        if known is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            failed = self._lexicon.broken.times
            known = tuple(self._read(bare, place, entries))
            if self._lexicon.broken.times == failed:
                self._known[said] = known
        cited = text.startswith(">") and bare is not text
        self.cut += len(bare) > MAX_EVENT_TEXT and any(event.role != "trainer" for event in known)
        for event in known:
            same = event.place is place and event.cited == cited
            yield event if same else msgspec.structs.replace(event, place=place, cited=cited)

    def claimant(self, text: str, entries: frozenset[Compiled]) -> Compiled | None:
        """Which of some markers claims a line."""
        claimed = self._claim(self._lexicon.peel_prefix(text), ordered(entries))
        return claimed[0] if claimed else None

    def _read(self, bare: str, place: Place, entries: Any) -> Iterator[Event]:
        listed = ordered(entries)
        for item in listed:
            if item.pattern.role == "trainer" and item.match(bare):
                sets = item.pattern.sets
                yield Event(place, item.pattern.id, "trainer", LogText(""), event=sets.trainer, reason=str(sets.weight))
        owner = self._claim(bare, [item for item in listed if item.pattern.role == "marker"])
        if owner:
            yield self._event(owner[0], owner[1], _Message(bare), bare, place)
            return
        message = self._peel(bare)
        statements = [item for item in listed if item.pattern.role in STATEMENTS]
        claimed = self._claim(message.text, statements)
        if claimed is None and not message.carriers:
            glued = self._glued(bare)
            if glued is not None:
                message = glued
                claimed = self._claim(message.text, statements)
        if claimed:
            yield self._event(claimed[0], claimed[1], message, bare, place)
        elif message.carriers:
            yield Event(
                place=place,
                pattern=message.carriers[-1],
                role="exception",
                text=LogText(bare[:MAX_EVENT_TEXT]),
                event=message.event,
                phase=message.phase,
                caught=message.caught,
                carriers=message.carriers,
                exception=message.exception,
            )

    def message(self, text: str) -> str:
        """What is left of a line without its carriers; for testing entries against each other."""
        return self._peel(text).text

    def _claim(self, text: str, entries: list[Compiled]) -> tuple[Compiled, Any] | None:
        for item in entries:
            found = item.match(text)
            if found and not self._mentioned(item, text, found.start(), found.end()):
                return item, found
        return None

    def _mentioned(self, item: Compiled, text: str, start: int, end: int) -> bool:
        """Whether the words from `start` to `end` only name something: a path, a quotation, a bar that was cut."""
        if start and _QUOTING.search(text, max(0, start - _BEFORE), start):
            return True
        if "%" in text[end:] and _NAMES_A_BAR.match(text, end) is not None:
            return True
        return self._repeated(item, text, end)

    def _repeated(self, item: Compiled, text: str, until: int) -> bool:
        """Whether `item`, found as far as `until`, is so only because the line repeats what the user wrote or named.

        What the line starts with, or its frame holds, is a message, even if something is called like it.
        """
        frame = _FRAME.match(text)
        opens = frame.end() if frame else 0
        anchors = item.pattern.anchors
        if anchors and all(text.find(anchor, opens + 1) == -1 for anchor in anchors):
            return False  # nothing behind the start can say it
        spans = [span for naming in self._lexicon.namings for span in naming.spans(text)]
        for chosen in self._chosen:
            at = text.find(chosen, 1)
            while at != -1:
                spans.append((at, at + len(chosen)))
                at = text.find(chosen, at + len(chosen))
        telling = [(start, end) for start, end in spans if opens < start < until <= end and item.match(text[start:end])]
        if not telling:
            return False
        rest = list(text)
        for start, end in telling:
            rest[start:end] = _BLANK * (end - start)
        return item.match("".join(rest)) is None

    def _peel(self, text: str) -> _Message:
        message = _Message(text)
        for _ in range(4):
            opening = self._opening(message)
            if opening is None:
                break
            item, found = opening
            self._note(message, item, found)
            message.text = message.text[found.end() :]
        return message

    def _opening(self, message: _Message) -> tuple[Compiled, Any] | None:
        """The carrier at the start of what is left, of those that were not peeled off yet."""
        first = self._lexicon.carrier(message.text)
        if first is None:
            return None
        for item in (first, *self._lexicon.openers):
            if item.pattern.id not in message.carriers:
                found = item.match(message.text)
                if found and found.end():
                    return item, found
        return None

    def _glued(self, text: str) -> _Message | None:
        """An exception's name in the middle of a line: a pasted or woven line; the message follows it."""
        for item in self._lexicon.carriers:
            if item.pattern.anywhere:
                found = item.match(text)
                if found:
                    message = _Message(text[found.end() :], at=found.start())
                    self._note(message, item, found)
                    return message
        return None

    @staticmethod
    def _note(message: _Message, item: Compiled, found: Any) -> None:
        sets = item.pattern.sets
        message.carriers = (*message.carriers, item.pattern.id)
        groups = found.groupdict()
        if groups.get("exception"):
            message.exception = groups["exception"]
        message.caught = message.caught or bool(sets.caught)
        message.phase = sets.phase or message.phase
        message.event = sets.event or message.event

    def _event(self, item: Compiled, found: Any, message: _Message, bare: str, place: Place) -> Event:
        pattern = item.pattern
        sizes, others, device = item.sizes(message.text[:MAX_MESSAGE])
        groups = {name: LogText(value) for name, value in found.groupdict().items() if value is not None}
        named = groups.get("exception")
        far = len(bare) - len(message.text) + found.start() if found.start() > _FAR else 0
        at = message.at or far  # what proves the claim is shown from its own start
        return Event(
            place=place,
            pattern=pattern.id,
            role=pattern.role,
            text=LogText(bare[at : at + MAX_EVENT_TEXT]),
            groups=groups,
            sizes_mib=sizes,
            others_mib=others,
            event=pattern.sets.event or message.event,
            kind=pattern.sets.kind,
            resource=pattern.sets.resource,
            phase=pattern.sets.phase or message.phase,
            caught=bool(pattern.sets.caught) or message.caught,
            reason=pattern.sets.reason,
            carriers=message.carriers,
            exception=message.exception or (named.reveal() if named else None),
            device=device,
            quoted=found.start() > 0 and not message.carriers,
        )
