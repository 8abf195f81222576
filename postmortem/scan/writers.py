"""Tracebacks of several processes that write one log at once: which of them a line belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Literal

from postmortem.model import Traceback
from postmortem.scan.lexicon import Lexicon
from postmortem.scan.traceback import TracebackReader

MAX_WRITERS = 64


class Tracebacks:
    """A reader for each process that names itself in front of its lines, and one for all that do not."""

    def __init__(self, lexicon: Lexicon, source: str) -> None:
        self._source = source
        self._writer = lexicon.by_id.get("prefix.rank")
        self.latest = TracebackReader(source)
        """The reader that the latest line may belong to."""
        self._readers = {"": self.latest}
        self._new: tuple[str, TracebackReader] | None = None
        """The reader for a process that had none; kept once a traceback of its has begun."""
        self._waiting = 0
        self._crowded = False
        self.mixed = False
        """Whether a traceback began in a process beyond those that have a reader of their own."""

    @property
    def want_code(self) -> bool:
        """Whether some process's last line was a frame, whose code comes next."""
        return self._waiting > 0

    @property
    def open(self) -> bool:
        """Whether one has begun and not ended."""
        return any(reader.open for reader in self._readers.values())

    @property
    def state(self) -> Literal["clean", "begun", "full", "woven"]:
        """Whether one has begun: none, one that names no process, the same and it has all its frames, or others."""
        begun = [reader for reader in self._readers.values() if reader.begun]
        if not begun:
            return "clean"
        if begun != [self._readers[""]]:
            return "woven"
        return "full" if begun[0].full else "begun"

    def copy(self) -> Tracebacks:
        """The same, that goes on by itself."""
        other = copy(self)
        other._readers = {name: reader.copy() for name, reader in self._readers.items()}
        other.latest = other._readers[""]
        return other

    def end_unnamed(self) -> Traceback | None:
        """The one that names no process ends, as where the next one begins."""
        return self._readers[""].end()

    def pass_over(self, frames: int, *, expect_code: bool) -> None:
        """So many frames came of the one that is full; the code of the last comes next, or not."""
        self.latest = self._readers[""]
        self.latest.left_out += frames
        self.expect_code(expect_code)

    @property
    def left_out(self) -> int:
        """Frames beyond what is kept of one traceback, in all."""
        return sum(reader.left_out for reader in self._readers.values())

    def of(self, text: str) -> TracebackReader:
        """The reader that a line may belong to."""
        found = self._writer.match(text) if self._writer is not None and text.startswith("[") else None
        name = found[0].strip() if found else ""
        known = self._readers.get(name)
        self._new = None
        self._crowded = known is None and len(self._readers) >= MAX_WRITERS
        if known is None and len(self._readers) < MAX_WRITERS:
            known = TracebackReader(self._source)
            self._new = name, known
        self.latest = known or self._readers[""]
        return self.latest

    def keep(self) -> None:
        """The line has been read: keep its process's reader if a traceback has begun there."""
        if self._new is not None and self._new[1].begun:
            self._readers[self._new[0]] = self._new[1]
        self.mixed = self.mixed or (self._crowded and self.latest.begun)

    def expect_code(self, wanted: bool) -> None:
        """Whether the next line of the latest line's process is the code of a frame."""
        self._waiting += wanted - self.latest.want_code
        self.latest.want_code = wanted

    def end(self) -> Iterator[Traceback]:
        """The log ended: what was begun."""
        for reader in self._readers.values():
            done = reader.end()
            if done is not None:
                yield done
