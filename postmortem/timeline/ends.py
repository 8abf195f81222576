"""How an attempt ended: done, failed, killed, stopped, or the log just ends."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.model import BarSpan, End, Event, Item, Oom, Traceback
from postmortem.timeline import training_bar

ERRORS = frozenset({"oom", "host_oom", "other_error", "abort", "exception", "consequence", "crash"})
"""Roles of events that say that something went wrong."""
KILL_CODES = frozenset({"137", "-9"})
STOP_CODES = frozenset({"130", "143", "-2", "-15"})
CRASH_CODES = frozenset({"139", "-11", "11", "134", "-6", "3221225477", "0xc0000005", "3221226505", "0xc0000409"})


def end_of(items: Sequence[Item], name: str | None) -> End:
    """The end of the attempt that `items` are, before its OOMs are known (see `settle`)."""
    went_on = _last_sign(items, name)
    events = [
        item
        for item in items
        if isinstance(item, Event) and not (item.role in _PROCESS_ENDS and item.place.offset < went_on)
    ]
    fatal = _fatal(items, events, name)
    kill = _last(events, "kill")
    stop = _last(events, "stop")
    crash = _last(events, "crash")
    codes = [event for event in events if event.role == "exit"]
    done = any(event.event == "result_completed" or _count(event, "completed") for event in events)
    failed = any(_count(event, "failed") for event in events if event.role == "result")
    if stop is not None and (fatal is None or fatal[0].place.offset > stop.place.offset or _is_interrupt(fatal[0])):
        return End("stopped", stop.place, stop)
    killed = kill or next((code for code in codes if _code(code) in KILL_CODES), None)
    if fatal is not None and not (killed is not None and (_wrapper(fatal[0]) or _explained(fatal[0], kill))):
        event, traceback = fatal
        return End("failed", event.place, event, traceback)
    if kill is not None:
        return End("killed", kill.place, kill)
    for code in codes:
        value = _code(code)
        if value in STOP_CODES:
            return End("stopped", code.place, code)
        if value in KILL_CODES:
            return End("killed", code.place, code)
        if value in CRASH_CODES:
            return End("failed", code.place, code)
    if crash is not None:
        return End("failed", crash.place, crash)
    if failed:
        place = next(event.place for event in events if _count(event, "failed"))
        return End("failed", place)
    if done or _reached_total(items, name):
        return End("completed", items[-1].place)
    bad = next((code for code in codes if _code(code) not in ("0", "")), None)
    if bad is not None:
        return End("failed", bad.place, bad)
    gone = next((code for code in codes if code.event == "echo"), None)
    if gone is not None:
        return End("failed", gone.place, gone)
    loose = _last_traceback(items)
    if loose is not None and loose.place.offset >= _last_progress(items, name):
        return End("failed", loose.place, None, loose)
    return End("incomplete", None)


def settle(end: End, found: Sequence[Oom], main: Sequence[BarSpan]) -> End:
    """The end once the OOMs are known: a run that came through with dropped batches says so."""
    if end.outcome == "completed" and any(oom.caught and oom.phase == "training_step" for oom in found):
        return msgspec.structs.replace(end, outcome="completed_with_skips")
    return end


def _fatal(items: Sequence[Item], events: Sequence[Event], name: str | None) -> tuple[Event, Traceback | None] | None:
    """The error that ended the attempt, with no progress after it, and its traceback.

    One failure is printed up to four times (old handler, `Error running job`, the traceback, its chain), and a
    native one is followed by the shell's word on how the process died.
    """
    errors = _standing_errors(events)
    if not errors:
        return None
    progress = _last_progress(items, name)
    last = [error for error in errors if error.place.offset >= progress]
    if not last:
        return None
    cause = _cause(last)
    tracebacks = [item for item in items if isinstance(item, Traceback)]
    closing = next((t for t in tracebacks if t.exception is not None and t.exception.pattern == cause.pattern), None)
    if closing is None:
        closing = next((t for t in reversed(tracebacks) if t.place.offset >= cause.place.offset), None)
    return cause, closing


def _standing_errors(events: Sequence[Event]) -> list[Event]:
    """The errors that may be a verdict on the run, in order.

    None is one that the program printed before it went on loading, caching or previewing (a failed optional
    import, a download that is tried again), nor a bare exception line in a run that then ended well. What names
    the job's end always stands.
    """
    completed = any(_count(event, "completed") for event in events)
    standing: list[Event] = []
    went_on = False
    for item in reversed(events):
        ended = _ends_job(item)
        if item.role in ERRORS and not item.caught:
            survived = went_on and item.role in ("exception", "other_error")
            noted = completed and item.role == "exception"
            if ended or not (survived or noted):
                standing.append(item)
        if ended:
            went_on = False
        elif item.role == "marker" and item.event in _GOES_ON:
            went_on = True
    return standing[::-1]


def _ends_job(event: Event) -> bool:
    return bool(event.carriers) and any("running_job" in carrier for carrier in event.carriers)


_GOES_ON = frozenset(
    (
        *("job_banner", "process_count", "load_model", "model_loaded", "network_created", "dataset", "found"),
        *("bucket_header", "caching_latents", "caching_text", "baseline", "skip_first_sample"),
    )
)


_PROCESS_ENDS = frozenset({"kill", "exit", "crash"})
"""Roles of events that say that a process has ended. Where the run goes on below, it was another one."""


def _last_sign(items: Sequence[Item], name: str | None) -> int:
    """Where the program last showed that it lives: went on loading or caching, took a step (a byte offset)."""
    marked = (
        item.place.offset
        for item in reversed(items)
        if isinstance(item, Event) and item.role == "marker" and item.event in _GOES_ON
    )
    return max(next(marked, -1), _last_progress(items, name))


_SAYS_MOST = ("abort", "oom", "host_oom", "other_error", "crash", "exception")
"""Roles by how much they say of the cause: a crash or a bare exception often only follows from what is above it."""


def _cause(errors: Sequence[Event]) -> Event:
    """Of the errors at the end, the one that says most; of several prints of it, the fullest."""
    if errors[-1].role == "consequence":
        return errors[-1]
    named = [error for error in errors if error.role != "consequence"]
    if not named:
        return errors[-1]
    ended = [error for error in named if _ends_job(error) and error.role != "exception"]
    best = min((ended or named), key=lambda error: _SAYS_MOST.index(error.role)).role
    same = [error for error in named if error.role == best]
    tail = [error for error in same if error.pattern == same[-1].pattern]
    return max(tail, key=lambda error: (len(error.sizes_mib), -error.place.offset))


def _explained(error: Event, kill: Event | None) -> bool:
    """A crash that says nothing of why, beside whoever killed for memory and says so."""
    return error.role == "crash" and kill is not None and kill.kind == "host_oom"


def _wrapper(error: Event) -> bool:
    """A bare exception that only passes on that a child process died."""
    return error.role == "exception" and not _ends_job(error)


def _last_progress(items: Sequence[Item], name: str | None) -> int:
    """Where training last went on, or a checkpoint was last saved (a byte offset); -1 if never."""
    before: int | None = None
    found = -1
    for item in items:
        if training_bar.is_span(item, name):
            if before is not None and item.last_n > before:
                found = max(found, item.place.offset)
            before = item.last_n
        elif isinstance(item, Event) and item.event == "saved_checkpoint":
            found = max(found, item.place.offset)
    return found


def _reached_total(items: Sequence[Item], name: str | None) -> bool:
    spans = training_bar.spans(items, name)
    if not spans:
        return False
    last = spans[-1]
    saved = any(
        isinstance(item, Event) and item.event == "saved_checkpoint" and item.place.offset > last.place.offset
        for item in items
    )
    return last.last_n >= last.total or (last.last_n == last.total - 1 and saved)


def _is_interrupt(event: Event) -> bool:
    return event.exception == "KeyboardInterrupt" or event.role == "stop"


def _last(events: Sequence[Event], role: str) -> Event | None:
    return next((event for event in reversed(events) if event.role == role), None)


def _last_traceback(items: Sequence[Item]) -> Traceback | None:
    return next((item for item in reversed(items) if isinstance(item, Traceback)), None)


def _count(event: Event, group: str) -> int:
    text = event.groups.get(group)
    digits = text.reveal() if text else ""
    return int(digits) if digits.isdecimal() and len(digits) < 9 else 0


def _code(event: Event) -> str:
    text = event.groups.get("code") or event.groups.get("signal")
    return text.reveal().lower() if text else ""
