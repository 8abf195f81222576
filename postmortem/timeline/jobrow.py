"""The UI's database as a second witness: how a run ended, and the error's message where the log lacks it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from postmortem.model import Attempt, End, Event, JobDatabase, JobRow, Notice, Oom, Place, ScanResult
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText
from postmortem.timeline import ooms

_MEMORY = ("oom", "host_oom", "abort")
_PROVEN = 10
"""Good steps after which a log that breaks off still tells what kind of run it was."""
_ENDINGS = {
    "completed": "completed",
    "completed_with_skips": "completed",
    "failed": "error",
    "killed": "error",
    "stopped": "stopped",
}


def row_of(attempt: Attempt, name: LogText | None, database: JobDatabase) -> JobRow | None:
    """The job's row: by the id that the log prints, else by the job's name (`name` where the log has none)."""
    if attempt.job_id is not None:
        found = [row for row in database.rows if row.id.reveal() == attempt.job_id.reveal()]
    else:
        job = attempt.job_name or name
        found = [row for row in database.rows if job is not None and row.name.reveal() == job.reveal()]
    return found[0] if len(found) == 1 else None


def join(attempt: Attempt, row: JobRow, message: ScanResult, end_offset: int, lexicon: Lexicon) -> Attempt:
    """`attempt` with what the row adds. `message` is the row's own, scanned; `end_offset` is where the log ends.

    The log's word stands: only where it names no error at all does an allocator's message in the row count.
    """
    error = next((item for item in message.items if isinstance(item, Event) and item.role in _MEMORY), None)
    silent = row.status == "error" and _names_no_error(attempt)
    if silent and error is not None:
        place = Place(1, end_offset, message.source)
        joined = _with_message(attempt, row, msgspec.structs.replace(error, place=place, caught=False), lexicon)
        used = True
    else:
        joined, used = attempt, False
    notices = _notices(attempt, row, message, error, used=used, silent=silent)
    return msgspec.structs.replace(joined, warnings=(*attempt.warnings, *notices))


def _names_no_error(attempt: Attempt) -> bool:
    """The log breaks off, or only tells that the process ended."""
    event = attempt.end.event
    quiet = event is None or event.role == "exit"
    return quiet and attempt.end.outcome in ("incomplete", "failed") and not any(not o.caught for o in attempt.ooms)


def _with_message(attempt: Attempt, row: JobRow, error: Event, lexicon: Lexicon) -> Attempt:
    whole = attempt.end.event is not None or attempt.end.traceback is not None
    told = error.phase or ("training_step" if error.role == "abort" else None)
    phase, step = "unknown", None
    if whole:
        place = attempt.end.place or error.place
        phase = told or ooms.phase_at(place, attempt.end.traceback, attempt.stages, lexicon)
        step = attempt.end_step
    elif attempt.good_steps >= _PROVEN and not _ahead(attempt, row):
        # what the message itself does not tell may stand in the part of the log that is missing
        phase = told or phase
    oom = Oom(
        place=error.place,
        pattern=error.pattern,
        phase=phase,
        caught=False,
        step=step,
        kind=error.kind or "gpu_oom",
        resource=error.resource if error.role != "abort" else "vram",
        sizes_mib=error.sizes_mib,
        others_mib=error.others_mib,
        device=error.device,
        implied=error.role == "abort",
        text=error.text,
    )
    return msgspec.structs.replace(
        attempt,
        ooms=(*attempt.ooms, oom),
        errors=(*attempt.errors, error),
        end=End("failed", error.place, error),
        end_phase=phase,
        end_step=step,
    )


def _ahead(attempt: Attempt, row: JobRow) -> bool:
    last = attempt.last_bar if attempt.last_bar is not None else attempt.start_step
    return row.step is not None and row.step > last + 1


def _notices(
    attempt: Attempt, row: JobRow, message: ScanResult, error: Event | None, *, used: bool, silent: bool
) -> Iterator[Notice]:
    name = LogText(message.source)
    if used:
        yield Notice("db_message", None, {"file": name})
    elif silent and row.info.strip():
        yield Notice("db_info", None, {"file": name, "info": LogText(row.info)})
    if _ahead(attempt, row) and (attempt.trained or used):
        yield Notice("db_step_ahead", None, {"file": name, "step": row.step, "last": attempt.last_bar})
    outcome = attempt.end.outcome
    if outcome == "incomplete" and row.status in ("running", "completed", "stopped"):
        yield Notice(f"db_{row.status}", None, {"file": name})
    elif outcome in _ENDINGS and row.status in _ENDINGS.values() and _ENDINGS[outcome] != row.status:
        yield Notice("db_status_differs", None, {"file": name, "status": LogText(row.status), "outcome": outcome})
    elif error is not None and row.status == "error" and not used and _another(attempt, error):
        yield Notice("db_error_differs", None, {"file": name, "info": LogText(row.info)})


def _another(attempt: Attempt, error: Event) -> bool:
    """Whether the log names an error of another kind than the row's."""
    event = attempt.end.event
    kinds = {oom.kind for oom in attempt.ooms}
    return event is not None and event.role not in ("exit", "consequence") and (error.kind or "gpu_oom") not in kinds
