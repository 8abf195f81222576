"""The log lines that prove the verdict, each with what it proves, in file order; a dozen at most."""

from __future__ import annotations

from postmortem.model import Attempt, Evidence, Place
from postmortem.text import LogText


def collect(attempt: Attempt, place: Place | None, kind: str, phase: str) -> tuple[Evidence, ...]:
    """Evidence for a verdict that stands on `place`."""
    found: dict[tuple[str, int], Evidence] = {}

    def add(where: Place | None, what: str, text: LogText, pattern: str | None = None) -> None:
        if where is not None and (where.source, where.line) not in found:
            known = where.end > 0 and where.source == attempt.source
            start, end = (where.offset, where.end) if known else (None, None)
            found[where.source, where.line] = Evidence(where.line, what, text, where.source, pattern, start, end)

    if kind == "none" and attempt.end.outcome == "incomplete":
        return ()
    times = attempt.step_times
    if kind == "vram_spill" and times is not None:
        add(times.place, "slowdown", times.text)
    if attempt.end.event is not None:
        add(attempt.end.event.place, attempt.end.event.role, attempt.end.event.text, attempt.end.event.pattern)
    for error in attempt.errors:
        if place is not None and error.place == place:
            add(place, error.role, error.text, error.pattern)
    caught = [oom for oom in attempt.ooms if oom.caught]
    for oom in (*caught[:3], *caught[-2:]):
        what = "skip" if oom.phase == "training_step" else "swallowed"
        add(oom.place, what, oom.text, None if oom.by_bar else oom.pattern)
    traceback = attempt.end.traceback
    aborted = attempt.end.event is not None and attempt.end.event.role == "abort"
    if traceback is not None and attempt.end_frame is not None and not aborted:
        add(
            attempt.end_frame.place,
            "frame",
            LogText(f"{attempt.end_frame.function}: {attempt.end_frame.code.reveal()}"),
        )
    before = [
        stage
        for stage in attempt.stages
        if stage.event != "bar_main" and place is not None and stage.place.offset <= place.offset
    ]
    if before and before[-1].phase == phase:
        add(before[-1].place, "phase", before[-1].text, before[-1].pattern)
    if attempt.main_bar_place is not None and attempt.main_bar_text and kind != "none":
        add(attempt.main_bar_place, "bar", attempt.main_bar_text)
    return tuple(found[key] for key in sorted(found))
