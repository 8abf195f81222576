"""Collect the frames of a Python traceback, also when other output is woven into it or every line is doubled."""

from __future__ import annotations

import re
from copy import copy

from postmortem.model import Event, Frame, Place, Traceback
from postmortem.text import LogText

MAX_FRAMES = 400
MAX_DIGITS = 10
_NO_CODE = re.compile(
    r'File "|Traceback |(?:[A-Za-z_]\w{0,60}\.){0,8}\w{0,60}(?:Error|Exception|Interrupt|Exit|Warning)\b|[~^]+\s*$'
)
"""What may follow a frame instead of its code where a logger took the indentation away."""
_TWICE = re.compile(r"(?:(?P<module>[\w.]{1,100})(?P=module)\.\.)?(?P<name>[A-Za-z]\w{1,80})(?P=name): : ")


def once(text: str) -> str:
    """An exception line whose pieces were each written twice (`KeyErrorKeyError: : 'x''x'`), as it was meant."""
    found = _TWICE.match(text) if ": : " in text[:400] else None
    if found is None:
        return text
    message = text[found.end() :].rstrip()
    half = len(message) // 2
    if len(message) % 2 == 0 and message[:half] == message[half:]:
        message = message[:half]
    module = f"{found['module']}." if found["module"] else ""
    return f"{module}{found['name']}: {message}"


class TracebackReader:
    """Gathers frames between a traceback's head and its exception line."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._frames: list[Frame] = []
        self._start: Place | None = None
        self._doubled = False
        self._repeated = False
        self._flat = False
        self.left_out = 0
        """Frames beyond what is kept of one traceback, in all."""
        self._over = False
        self.want_code = False
        """Whether the line before was a frame, whose code comes next."""

    @property
    def begun(self) -> bool:
        """Whether there is anything of a traceback that no exception line closed yet."""
        return self._start is not None

    @property
    def open(self) -> bool:
        """Whether frames have been read that no exception line closed yet."""
        return bool(self._frames)

    @property
    def full(self) -> bool:
        """Whether further frames are only passed over, with their code."""
        return self._over

    def copy(self) -> TracebackReader:
        """The same, that goes on by itself."""
        other = copy(self)
        other._frames = list(self._frames)
        return other

    def begin(self, place: Place) -> Traceback | None:
        """A new head: returns what the unfinished one before it had, if it had any frames."""
        done = self.end() if self._frames else None
        self._start = place
        return done

    def frame(self, event: Event, *, flat: bool = False) -> None:
        """One frame line, `flat` if it is not indented. A doubled line (AI Toolkit's `--log` once wrote stderr twice)
        counts once. One without a number gets that of its code line, if that has one (see `code`)."""
        self._flat = flat
        path = event.groups["path"]
        function = event.groups["function"].reveal()
        line = event.groups.get("line") if event.event != "frame_unnumbered" else None
        number = int(line.reveal()) if line is not None else 0
        if self._start is None:
            self._start = event.place
        if self._frames:
            last = self._frames[-1]
            if (
                last.path == path
                and last.function == function
                and not last.code
                and last.place.line + 1 == event.place.line
            ):
                self._repeated = True
                return
        self._over = len(self._frames) >= MAX_FRAMES
        if not self._over:
            self._frames.append(Frame(event.place, path, function, LogText(""), number))
        else:
            self.left_out += 1

    def code(self, text: str, number: str = "") -> bool:
        """The line after a frame; True if it is that frame's code: deeper indented than a frame line, if those are.

        `number` is what the line says of its place in the file, for a frame that does not say it itself.
        """
        if not self._frames or not (text.startswith("    ") or (self._flat and not _NO_CODE.match(text))):
            return False
        if self._over:
            return True
        code = text.strip()
        half = len(code) // 2
        if len(code) % 2 == 0 and code[:half] == code[half:]:
            code = code[:half]
            self._doubled = self._doubled or self._repeated
        last = self._frames[-1]
        told = int(number) if not last.number and number.isdecimal() and len(number) < MAX_DIGITS else last.number
        self._frames[-1] = Frame(last.place, last.path, last.function, LogText(code[:400]), told)
        return True

    def close(self, exception: Event) -> Traceback:
        """The exception line has come."""
        done = Traceback(self._start or exception.place, tuple(self._frames), exception, self._doubled)
        self._forget()
        return done

    def end(self) -> Traceback | None:
        """The log ended, or a new traceback began, before the exception line came."""
        if not self._frames:
            self._start = None
            return None
        done = Traceback(self._start or self._frames[0].place, tuple(self._frames), None, self._doubled)
        self._forget()
        return done

    def _forget(self) -> None:
        self._frames = []
        self._start = None
        self._doubled = False
        self._repeated = False
        self._over = False
