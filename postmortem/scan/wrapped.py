"""An allocator's message that a terminal or a mail program broke over several lines, put together again.

Only its sizes are sought in the lines that follow; a line that says something of its own ends the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from postmortem.knowledge.log_schema import STATEMENTS
from postmortem.model import Event, Place
from postmortem.scan.lexicon import Compiled
from postmortem.text import LogText

MAX_LINES = 10
MAX_CHARS = 2000
MAX_UNFINISHED = 3
MIN_BROKEN = 40
_WHOLE = ("gpu_total", "pytorch_allocated")
"""Sizes that every whole message of an allocator with a `gpu_total` field has."""


class Wrapped:
    """Follows one message until its sizes are complete or the text ends."""

    def __init__(self, event: Event, entry: Compiled) -> None:
        self.event = event
        self._entry = entry
        text = event.text.reveal()
        self._hard = text
        self._soft = text
        self._left = MAX_LINES

    @staticmethod
    def wanted(event: Event, entry: Compiled) -> bool:
        """Whether `event` is an allocator's message that breaks off before its sizes."""
        fields = entry.pattern.fields
        return event.role == "oom" and all(key in fields and key not in event.sizes_mib for key in _WHOLE[1:])

    def extend(self, line: str) -> bool:
        """Take the next line; False when the message is complete or nothing more can belong to it."""
        part = line.strip()
        if not part:
            return True
        self._left -= 1
        self._hard += line
        self._soft += " " + part
        readings = [self._entry.sizes(text) for text in (self._soft, self._hard)]
        sizes, others, device = max(readings, key=lambda reading: len(reading[0]))
        if len(sizes) > len(self.event.sizes_mib):
            self.event = msgspec.structs.replace(
                self.event,
                sizes_mib=sizes,
                others_mib=others,
                device=device,
                text=LogText(self._soft[:MAX_CHARS]),
            )
        complete = all(key in self.event.sizes_mib for key in (*_WHOLE, "reserved_unallocated"))
        return not complete and self._left > 0 and len(self._soft) < MAX_CHARS


class Unfinished:
    """Follows an exception whose message says nothing known: its line may have been broken inside the message."""

    def __init__(self, event: Event) -> None:
        self.event = event
        self._soft = self._hard = event.text.reveal()
        self._left = MAX_UNFINISHED

    @staticmethod
    def wanted(event: Event) -> bool:
        """Whether `event` is such an exception, on a line long enough to be a broken one."""
        return event.role == "exception" and len(event.text.reveal()) >= MIN_BROKEN

    def extend(self, line: str, recognise: Callable[[str, Place], Iterable[Event]]) -> bool:
        """Take the next line; False when the message is known now or the line cannot belong to it."""
        part = line.strip()
        if not part or line[:1].isspace():
            return False
        self._left -= 1
        # a mail program breaks between words, a terminal in the middle of one
        self._soft = f"{self._soft} {part}"[:MAX_CHARS]
        self._hard = f"{self._hard}{line.rstrip()}"[:MAX_CHARS]
        for text in (self._soft, self._hard):
            for found in recognise(text, self.event.place):
                if found.role in STATEMENTS:
                    self.event = found
                    return False
        return self._left > 0
