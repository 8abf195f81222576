"""What an exit code or a signal means, wherever one was printed; the words are in patterns/text."""

from __future__ import annotations

from postmortem.model import Attempt, Event

_MEANINGS = {
    "sigkill": ("137", "-9", "sigkill"),
    "segfault": ("139", "-11", "sigsegv"),
    "abort": ("134", "-6", "sigabrt"),
    "bus_error": ("135", "-7", "sigbus"),
    "sigterm": ("143", "-15", "sigterm"),
    "interrupt": ("130", "-2", "sigint", "3221225786", "-1073741510", "0xc000013a"),
    "access_violation": ("3221225477", "-1073741819", "0xc0000005"),
    "no_memory": ("3221225495", "-1073741801", "0xc0000017", "3221225773", "-1073741523", "0xc000012d"),
    "stack_overflow": ("3221225725", "-1073741571", "0xc00000fd"),
    "fail_fast": ("3221226505", "-1073740791", "0xc0000409"),
    "dll_init": ("3221225794", "-1073741502", "0xc0000142"),
}
BY_CODE = {code: meaning for meaning, codes in _MEANINGS.items() for code in codes}


def code_of(event: Event) -> str | None:
    """The exit code or signal that `event` carries, as printed but in lower case."""
    text = event.groups.get("code") or event.groups.get("signal")
    return text.reveal().lower() if text is not None else None


def meaning_of(attempt: Attempt) -> tuple[str, str, int] | None:
    """(meaning, code as printed, line) of the last code that stands at the attempt's end; None without one known."""
    events = [attempt.end.event, *reversed(attempt.closing)]
    for event in events:
        code = code_of(event) if event is not None else None
        if event is not None and code in BY_CODE:
            printed = event.groups.get("code") or event.groups["signal"]
            return BY_CODE[code], printed.reveal(), event.place.line
    return None
