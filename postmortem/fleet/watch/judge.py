"""The whole analysis of a run that seems to be over: what is said of it, and which bytes that stands on."""

from __future__ import annotations

from pathlib import Path

import msgspec

from postmortem.fleet.watch.stamp import Stamp, digest
from postmortem.intake import Intake, jobdb, open_path
from postmortem.intake.folders import MAX_OLD_LOGS
from postmortem.pipeline import Analysis
from postmortem.reading import analysis_of
from postmortem.report import build
from postmortem.report.document import Report
from postmortem.scan import Lexicon

MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")
FAILED = ("failed", "killed")
TAIL = 4096
"""Bytes before the end of a log that tell it from another of the same length: bars hold times and losses."""
_ROW_SAYS = frozenset({"db_stopped", "db_completed"})
"""Notices that the UI's database knows how a log that just ends came to its end, and that it was no failure."""


class Judged(msgspec.Struct, frozen=True):
    """A report, what it was made from, the mark for it, and what it means for a watcher.

    `log` is the file of the attempt. `failed`: there is something to report. `open`: nothing says that the run is over
    but that nothing more comes. `stale_row`: the UI's row is of another run, for this log was not written under the UI.
    `many`: attempts are counted from somewhere in the middle, for the folder holds more logs than are read.
    """

    report: Report
    analysis: Analysis
    opened: Intake
    log: Path
    stamp: Stamp
    failed: bool
    open: bool
    stale_row: bool
    many: bool


def judge(
    path: Path, lexicon: Lexicon, lang: str, database: Path | None, *, folder: bool, upto: str | None = None
) -> Judged:
    """Analyse the run at `path`; `upto` names the newest log that counts, if it was moved aside and another began.

    Raises IntakeError, NothingRecognised and OSError.
    """
    opened = open_path(path, again=True)
    if upto is not None:
        opened = _until(opened, upto)
    files = {log.name: path / log.name if folder else path for log in opened.logs}
    sizes = {name: file.stat().st_size for name, file in files.items()}
    jobs = jobdb.read(database) if database is not None and upto is None else None
    analysis = analysis_of(opened, lexicon, database=jobs)
    report = build(analysis, lexicon.knowledge, lang)
    log = files[analysis.attempt.source]
    stamp = Stamp(
        attempt=report.input.attempt,
        line=analysis.attempt.first_line,
        bytes=sizes[analysis.attempt.source],
        tail=tail_of(log, sizes[analysis.attempt.source]),
        claims=_claims(report),
        outcome=report.run.outcome,
    )
    memory = report.failure.kind in MEMORY_KINDS
    open_end = report.run.outcome == "incomplete" and not memory
    explained = upto is not None or any(notice.id in _ROW_SAYS for notice in report.warnings)
    return Judged(
        report=report,
        analysis=analysis,
        opened=opened,
        log=log,
        stamp=stamp,
        failed=report.run.outcome in FAILED or memory or (open_end and not explained),
        open=open_end,
        stale_row=_stale_row(analysis),
        many=len(opened.logs) > MAX_OLD_LOGS,
    )


def same_attempt(old: Stamp, new: Judged) -> bool:
    """Whether a report marked `old` is on the attempt that was judged now, whatever came to its log since."""
    counted = new.stamp.attempt == old.attempt or new.many
    return counted and new.stamp.line == old.line and continues(new.log, old)


def continues(log: Path, old: Stamp) -> bool:
    """Whether `log` still holds the bytes that a report marked `old` stands on."""
    try:
        return log.stat().st_size >= old.bytes and tail_of(log, old.bytes) == old.tail
    except OSError:
        return False


def tail_of(log: Path, size: int) -> str:
    """A digest of the last of the first `size` bytes of `log`. Raises OSError."""
    with log.open("rb") as file:
        file.seek(max(0, size - TAIL))
        return digest(file.read(min(size, TAIL)))


def _until(opened: Intake, newest: str) -> Intake:
    """What was opened as it was before a later attempt began: what lies beside the logs is of that one."""
    names = [log.name for log in opened.logs]
    kept = opened.logs[: names.index(newest) + 1] if newest in names else opened.logs
    return msgspec.structs.replace(opened, logs=kept, configs=(), folder=None)


def _stale_row(analysis: Analysis) -> bool:
    """Whether what the UI's row says cannot be of this run: its log has a head, and no job id of the UI in it."""
    attempt = analysis.attempt
    by_row = attempt.end.place is not None and attempt.end.place.source == jobdb.NAME
    return (by_row or attempt.end.outcome == "incomplete") and attempt.has_header and attempt.job_id is None


def _claims(report: Report) -> str:
    failure = report.failure
    parts = (report.run.outcome, failure.kind, failure.resource, failure.class_, failure.phase, failure.step)
    return digest("\0".join(str(part) for part in (*parts, failure.signature)).encode())
