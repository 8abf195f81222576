"""What a watcher has to say: one event for each thing that happened to a run."""

from __future__ import annotations

from pathlib import Path

import msgspec

from postmortem.report.document import Report
from postmortem.report.encode import plain, terminal
from postmortem.text import printable


class Event(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One thing that happened.

    `event` is `failed` (a report was written, or could not be: then `reports` is empty), `changed` (more is known of
    the same failure), `written` (a report that could not be written before), `later` (another attempt ended without a
    failure after one that was reported) or `cleared` (the run went on, its report was taken away). `run` is the run's
    folder or log. The other fields are those of the report; `later` and `cleared` give only attempt and outcome.
    """

    event: str
    run: str
    reports: list[str]
    attempt: int
    attempts: int
    outcome: str
    kind: str | None = None
    resource: str | None = None
    class_: str | None = None
    phase: str | None = None
    step: int | None = None
    job: str | None = None
    headline: str | None = None
    first_fix: str | None = None


def event_of(what: str, run: Path, reports: list[Path], report: Report, *, failure: bool = True) -> Event:
    """The event on `report`, as it is shown to people (redacted or not)."""
    event = Event(
        event=what,
        run=printable(str(run)),
        reports=[printable(str(path)) for path in reports],
        attempt=report.input.attempt,
        attempts=report.input.attempts,
        outcome=report.run.outcome,
    )
    if not failure:
        return event
    found = report.failure
    return msgspec.structs.replace(
        event,
        kind=found.kind,
        resource=found.resource,
        class_=found.class_,
        phase=found.phase,
        step=found.step,
        job=terminal(report.run.job_name, 200) if report.run.job_name is not None else None,
        headline=plain(found.headline)[:400],
        first_fix=report.remedies[0].id if report.remedies else None,
    )


def for_hook(event: Event, run: Path, reports: list[Path]) -> dict[str, str]:
    """What a command is told: paths as the system has them, words of ours, and no more than a line of the log's."""
    fields = ("outcome", "kind", "resource", "class", "phase", "step", "attempt", "job", "headline", "first_fix")
    values = msgspec.to_builtins(event)
    told = {name: "" if values[name] is None else str(values[name]) for name in fields}
    # absolute: a run called `-x` is no option, and a command may change its folder
    by_suffix = {path.suffix.removeprefix("."): str(path.absolute()) for path in reports}
    return {
        **told,
        "run": str(run.absolute()),
        "report": by_suffix.get("md", ""),
        "report_html": by_suffix.get("html", ""),
    }
