"""Faults of our own: one room that fails leaves a gap in the report that is named, and the rest stands.

A fault has a short code that stays the same over versions as long as the same function fails in the same way, so that
it can be told in an issue, and a trace of places without any value: what a log or a config held is in neither.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TypeVar

import msgspec

from postmortem.model import Notice
from postmortem.text import LogText

Value = TypeVar("Value")
PACKAGE = "postmortem"
MAX_PLACES = 60
MAX_MESSAGE = 300
PASSING = (MemoryError,)
"""What no room can go on after, though Python counts it among the ordinary errors."""
VERDICT = "diagnosis"
"""The room without which there is no verdict: its fault is told by the exit status too."""


listener: Callable[[Fault], None] | None = None
"""Who looks for causes (`--debug`) hears of each fault as it happens; nothing else depends on it."""


class Fault(msgspec.Struct, frozen=True):
    """What failed: the room, the code, the kind of error, and the places that led to it, innermost last.

    `message` is the error's own; it may quote a log, and is for the eyes of who runs us only.
    """

    room: str
    code: str
    error: str
    message: LogText
    places: tuple[str, ...]
    subject: str = ""
    """Which of many it was: the id of a pattern."""


class Faults:
    """Runs the rooms of one report, and keeps what went wrong."""

    def __init__(self) -> None:
        self.found: list[Fault] = []

    def guard(self, room: str, work: Callable[[], Value], instead: Callable[[], Value]) -> Value:
        """What `work` gives, or what stands `instead` of it where it fails."""
        try:
            return work()
        except PASSING:
            raise
        except Exception as error:  # any: this is where a fault of ours is kept from ending the report
            self.found.append(noted(error, room))
            return instead()


def notices(faults: Iterable[Fault]) -> tuple[Notice, ...]:
    """What the reader of the report must know of them."""
    return tuple(notice(one) for one in faults)


def notice(fault: Fault) -> Notice:
    """The warning that names the part of the report that is missing."""
    return Notice(f"fault_{fault.room}", None, {"code": fault.code, "subject": fault.subject})


def fault_of(error: BaseException, room: str, subject: str = "") -> Fault:
    """`error` as a fault of `room`."""
    places = list(_places(error.__traceback__))
    own = [place for place in places if place[0].startswith(PACKAGE)] or places
    module, function, _ = own[-1] if own else ("", "", 0)
    name = type(error).__name__
    message = ""
    with contextlib.suppress(Exception):  # an error may fail to say what it is
        message = str(error)[:MAX_MESSAGE]
    return Fault(
        room=room,
        code=f"{room}-{_digest(name, module, function)}",
        error=name,
        message=LogText(message),
        places=tuple(f"{module}:{line} {function}" for module, function, line in places[-MAX_PLACES:]),
        subject=subject,
    )


def noted(error: BaseException, room: str, subject: str = "") -> Fault:
    """`error` as a fault, of which the listener, if there is one, has heard."""
    fault = fault_of(error, room, subject)
    if listener is not None:
        listener(fault)
    return fault


def lines(fault: Fault) -> Iterator[str]:
    """The fault for who looks for its cause (`--debug`): places only, no locals and no source."""
    yield f"fault {fault.code}: {fault.error}: {fault.message.reveal()}"
    yield from (f"  {place}" for place in fault.places)


def _places(trace: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    while trace is not None:
        code = trace.tb_frame.f_code
        yield str(trace.tb_frame.f_globals.get("__name__", "?")), code.co_name, trace.tb_lineno
        trace = trace.tb_next


def _digest(*parts: str) -> str:
    from hashlib import blake2b

    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=3).hexdigest()
