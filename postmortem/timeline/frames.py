"""What a traceback's frames say: the phase, and whether the failing call copies to page-locked host memory."""

from __future__ import annotations

import re

from postmortem.knowledge.log_schema import Facts
from postmortem.model import Frame, Traceback
from postmortem.scan.lexicon import Compiled, Lexicon

MAX_FRAMED = 1024
"""Frames whose entries are kept."""


def subject(frame: Frame) -> str:
    """A frame as the expressions of `frame` entries see it: ``path|function|code line``."""
    return f"{frame.path.reveal().replace(chr(92), '/')}|{frame.function}|{frame.code.reveal()}"


def _entries_of(text: str, lexicon: Lexicon) -> tuple[Compiled, ...]:
    """The `frame` entries that a frame matches; a traceback is asked more than once, and many runs have the same."""
    known = lexicon.framed.get(text)
    if known is None:
        failed = lexicon.broken.times
        known = tuple(item for item in lexicon.frames if item.match(text))
        if lexicon.broken.times == failed:
            if len(lexicon.framed) >= MAX_FRAMED:
                lexicon.framed.clear()
            lexicon.framed[text] = known
    return known


def phase_of(traceback: Traceback, lexicon: Lexicon) -> tuple[str | None, Frame | None]:
    """The phase that the weightiest frame tells (the innermost of equals), and that frame."""
    best: tuple[int, int] | None = None
    phase: str | None = None
    where: Frame | None = None
    for depth, frame in enumerate(traceback.frames):
        for item in _entries_of(subject(frame), lexicon):
            sets = item.pattern.sets
            if sets.phase and (best is None or (sets.weight, depth) >= best):
                best, phase, where = (sets.weight, depth), sets.phase, frame
    return phase, where


def shortage(traceback: Traceback, lexicon: Lexicon) -> Facts | None:
    """What ran out as the failing call tells it, whatever the error says: a copy to the CPU locks pages there.

    Of the program's own frames only the innermost counts: what the failing call was, not what led there.
    """
    for frame in reversed(traceback.frames):
        text = subject(frame)
        for item in _entries_of(text, lexicon):
            if item.pattern.sets.resource:
                return item.pattern.sets
        if _own(text):
            return None
    return None


_WRAPS = re.compile(r"__\w+__|\w*(?:wrap|call|impl|context|inner|apply$)\w*|_fn|fn|<lambda>|<module>")
"""Functions that stand between a call and what it names: modules, decorators, autograd."""


def tells_call(traceback: Traceback) -> bool:
    """Whether the frames tell which call of the program itself failed.

    They do not where none of its own frames is left (a paste, a traceback into which another was written), or where the
    frame after its last one is no function that its code calls: the frames between are gone.
    """
    last = next((at for at, frame in reversed(list(enumerate(traceback.frames))) if _own(subject(frame))), None)
    if last is None:
        return False
    if last + 1 == len(traceback.frames):
        return True
    called = traceback.frames[last + 1].function
    code = traceback.frames[last].code.reveal()
    # `_apply` is no wrapper: it is how torch moves a module that `to`, `cuda` or `cpu` was called on
    return not code or called in code or (called != "_apply" and _WRAPS.fullmatch(called) is not None)


def _own(text: str) -> bool:
    path = text.split("|", 1)[0]
    return "site-packages" not in path and "dist-packages" not in path


_LIBRARY = re.compile(r"/lib(?:64)?/python\d|/python[\d.]*/lib/|^<frozen ", re.IGNORECASE)
"""Python's own modules, on Linux, macOS and Windows."""


def innermost_own(traceback: Traceback) -> Frame | None:
    """The innermost frame that is neither in an installed package nor in Python's own modules: where the program's
    own code failed."""
    for frame in reversed(traceback.frames):
        text = subject(frame)
        if _own(text) and not _LIBRARY.search(text.split("|", 1)[0]):
            return frame
    return None
