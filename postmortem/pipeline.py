"""The whole pipe, pure: logs and configs in, one analysis out. The command line and the fleet both run this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from postmortem import rooms
from postmortem.diagnosis.dating import TOOLKIT
from postmortem.faults import Fault, Faults
from postmortem.faults import notices as notices_of
from postmortem.jobconfig import ConfigText, effective
from postmortem.knowledge.history import History
from postmortem.model import (
    Attempt,
    DatasetSizes,
    Diagnosis,
    FolderWitness,
    JobConfig,
    JobDatabase,
    Kept,
    NotHelping,
    Notice,
    Rung,
    ScanResult,
    Suggestion,
)
from postmortem.scan import Lexicon, scan
from postmortem.scan.segments import BULK_FROM, Cutting, in_place
from postmortem.text import LogText
from postmortem.timeline import build, confirm, kept
from postmortem.vram import Card, Forecast, Ledger, Refusal, ledger

MAX_OTHERS = 12
"""Other jobs in the input that a report names; the newest."""


MAX_ATTEMPTS = 60
"""Attempts that a history of one input holds; the newest."""


class NothingRecognised(ValueError):
    """No line of the input is one that a training program prints."""


class NoSuchAttempt(ValueError):
    """The attempt asked for is not in the input; `count` says how many are."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class Source(msgspec.Struct, frozen=True):
    """One log to read: the name that evidence cites, its encoding, its UTF-8 chunks, what was undone to get them."""

    name: str
    encoding: str
    chunks: Iterable[bytes]
    repairs: tuple[str, ...] = ()


class Pace(msgspec.Struct, frozen=True):
    """How logs are read, which changes the time that it takes and nothing else: `bulk_from` and `cutting` as `scan`
    takes them."""

    bulk_from: int = BULK_FROM
    cutting: Cutting = in_place


class Beside(msgspec.Struct, frozen=True):
    """What is known besides logs and configs.

    `skipped_steps` is what a loss database says of the newest log, `folder` what the run's folder holds, `database`
    the UI's jobs (both tell of the newest attempt of a job), `gpu_mib` the card's size where the log does not tell it,
    `versions` AI Toolkit's history, without which a log stays undated, `datasets` the folders of the job's datasets,
    in order or by name, for the buckets that a log lacks, `faults` what of all this could not be had
    through a fault of ours, `notices` what of it was left unread.
    """

    skipped_steps: Sequence[int] | None = None
    gpu_mib: float | None = None
    folder: FolderWitness | None = None
    database: JobDatabase | None = None
    versions: History | None = None
    datasets: Sequence[DatasetSizes] = ()
    faults: tuple[Fault, ...] = ()
    notices: tuple[Notice, ...] = ()


class Analysis(msgspec.Struct, frozen=True):
    """Everything that is known of a run, for the report to put into words."""

    source: str
    encoding: str
    scanned: ScanResult
    attempts: tuple[Attempt, ...]
    attempt: Attempt
    config: JobConfig
    diagnosis: Diagnosis
    suggestions: tuple[Suggestion, ...]
    not_helping: tuple[NotHelping, ...]
    ladder: tuple[Rung, ...]
    ledger: Ledger
    card: Card
    forecast: Forecast | Refusal
    kept: Kept
    warnings: tuple[Notice, ...]
    beside: Beside
    config_files: tuple[str, ...] = ()
    """The configs that were read, most trusted first; the settings are the first usable one's."""
    asked_attempt: int | None = None
    """The attempt that the user asked for."""
    faults: tuple[Fault, ...] = ()
    """The rooms that failed: what they would have said is missing, and `warnings` says so."""

    def failed(self, *rooms: str) -> Fault | None:
        """The first fault of one of these rooms."""
        return next((fault for fault in self.faults if fault.room in rooms), None)


def analyse(
    source: str,
    logs: Sequence[Source],
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    *,
    attempt: int | None = None,
    skipped_steps: Sequence[int] | None = None,
    gpu_mib: float | None = None,
    folder: FolderWitness | None = None,
    database: JobDatabase | None = None,
    versions: History | None = None,
    datasets: Sequence[DatasetSizes] = (),
    faults: Sequence[Fault] = (),
    notices: Sequence[Notice] = (),
    pace: Pace = Pace(),
) -> Analysis:
    """Analyse a run. `logs` come oldest first; the rest as in `Beside`.

    Raises NothingRecognised when no log holds a single known line, NoSuchAttempt for a number out of range.
    """
    beside = Beside(skipped_steps, gpu_mib, folder, database, versions, datasets, tuple(faults), tuple(notices))
    scans, attempts = _read(logs, lexicon, skipped_steps, pace)
    if attempt is not None and not 1 <= attempt <= len(attempts):
        raise NoSuchAttempt(len(attempts))
    chosen = attempts[attempt - 1] if attempt is not None else choose(attempts)
    one = _one(source, logs, scans, attempts, chosen, configs, lexicon, beside)
    return one if attempt is None else msgspec.structs.replace(one, asked_attempt=attempt)


def analyse_each(
    source: str,
    logs: Sequence[Source],
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    beside: Beside = Beside(),
    pace: Pace = Pace(),
) -> tuple[Analysis, ...]:
    """An analysis of each attempt in the input, oldest first (the newest `MAX_ATTEMPTS`).

    The files beside the logs may have been edited between attempts, so they speak for the newest one only; an
    earlier attempt has the config that its own log holds, or none. Raises NothingRecognised.
    """
    scans, attempts = _read(logs, lexicon, beside.skipped_steps, pace)
    beside = _told_of_the_rest(beside, attempts)
    return tuple(
        _one(source, logs, scans, attempts, one, configs if one is attempts[-1] else (), lexicon, beside)
        for one in attempts[-MAX_ATTEMPTS:]
    )


def analyse_run(
    source: str,
    logs: Sequence[Source],
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    beside: Beside = Beside(),
    pace: Pace = Pace(),
) -> tuple[Analysis, tuple[Analysis, ...]]:
    """The analysis that `analyse` gives, and those that `analyse_each` gives of the same job where it had several
    attempts; each log is read once. Of the history the UI's database says nothing. Raises
    NothingRecognised.
    """
    scans, attempts = _read(logs, lexicon, beside.skipped_steps, pace)
    chosen = choose(attempts)
    found = _one(source, logs, scans, attempts, chosen, configs, lexicon, beside)
    if len(attempts) == 1:
        return found, ()
    alone = _told_of_the_rest(msgspec.structs.replace(beside, database=None), attempts)
    history = tuple(
        _one(source, logs, scans, attempts, one, configs if one is attempts[-1] else (), lexicon, alone)
        for one in attempts[-MAX_ATTEMPTS:]
        if same_job(one, found.attempt)
    )
    return found, history


def _told_of_the_rest(beside: Beside, attempts: Sequence[Attempt]) -> Beside:
    """`beside` with the notice that a history does not go back to the first attempt, where it does not."""
    count = len(attempts) - MAX_ATTEMPTS
    if count <= 0:
        return beside
    notice = Notice("attempts_left_out", None, {"count": count, "read": MAX_ATTEMPTS})
    return msgspec.structs.replace(beside, notices=(*beside.notices, notice))


def _read(
    logs: Sequence[Source], lexicon: Lexicon, skipped_steps: Sequence[int] | None, pace: Pace
) -> tuple[list[ScanResult], tuple[Attempt, ...]]:
    lexicon.broken.clear()
    scans = [scan(log.chunks, lexicon, log.name, bulk_from=pace.bulk_from, cutting=pace.cutting) for log in logs]
    attempts = build(scans, lexicon)
    if not attempts:
        raise NothingRecognised
    return scans, (*attempts[:-1], confirm(attempts[-1], skipped_steps))


def _one(
    source: str,
    logs: Sequence[Source],
    scans: Sequence[ScanResult],
    attempts: tuple[Attempt, ...],
    chosen: Attempt,
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    known: Beside,
) -> Analysis:
    folder, database, versions = known.folder, known.database, known.versions
    files = tuple(config.name for config in configs)
    history = [a for a in attempts[: chosen.index - 1] if same_job(a, chosen)]
    scanned = next(s for s in reversed(scans) if s.source == chosen.source)
    newest = not any(same_job(later, chosen) for later in attempts[chosen.index :])
    faults = Faults()
    seen = chosen
    chosen, found = faults.guard(
        "database",
        lambda: rooms.joined(seen, folder, database if newest else None, scanned, lexicon),
        lambda: (seen, ()),
    )
    config = faults.guard(
        "config",
        lambda: effective(chosen.dump, [*configs, *found], lexicon.knowledge, chosen.other_dumps),
        lambda: JobConfig({}, ()),
    )
    trainer = _trainer(scans)
    told: tuple[Notice, ...] = ()
    if known.datasets and trainer in (TOOLKIT, None):
        before = chosen
        chosen, told = faults.guard(
            "dataset",
            lambda: rooms.bucketed(before, config, known.datasets, scanned, lexicon, versions, trainer, history),
            lambda: (before, ()),
        )
    diagnosis, card, expected, planned = rooms.verdict(
        chosen, config, scanned, lexicon, versions, known.gpu_mib, trainer, history, faults
    )
    if diagnosis.phase in ("baseline_sampling", "mid_sampling"):
        chosen = rooms.agreed(chosen, diagnosis)
    log = next(log for log in logs if log.name == scanned.source)
    strangers = [other for other in attempts if not same_job(other, chosen)]
    others = tuple(
        Notice(
            "other_job",
            other.first_line,
            {
                "job": other.job_name or LogText(""),
                "outcome": other.end.outcome,
                "attempt": other.index,
                "file": LogText(other.source),
            },
        )
        for other in strangers[-MAX_OTHERS:]
    )
    if len(strangers) > MAX_OTHERS:
        others = (*others, Notice("other_jobs_left_out", None, {"count": len(strangers) - MAX_OTHERS}))
    left, beside = faults.guard(
        "folder",
        lambda: kept(chosen, folder if newest else None, config, diagnosis.phase),
        lambda: (Kept(), ()),
    )
    if database is not None and database.damaged:
        beside = (*beside, Notice("db_damaged", None, {"file": LogText(database.name)}))
    elif database is not None and not database.whole:
        values = {"file": LogText(database.name), "read": len(database.rows)}
        beside = (*beside, Notice("db_jobs_left_out", None, values))
    repaired = tuple(Notice(f"repaired_{name}", None, {}) for name in log.repairs)
    balance = faults.guard("ledger", lambda: ledger(diagnosis.memory_mib), lambda: ledger({}))
    every = (*lexicon.broken.faults, *known.faults, *faults.found)
    return Analysis(
        source=source,
        encoding=log.encoding,
        scanned=scanned,
        attempts=attempts,
        attempt=chosen,
        config=config,
        diagnosis=diagnosis,
        suggestions=planned.suggestions,
        not_helping=planned.not_helping,
        ladder=planned.ladder,
        ledger=balance,
        card=card,
        forecast=expected,
        kept=left,
        warnings=(
            *notices_of(every),
            *known.notices,
            *config.warnings,
            *diagnosis.warnings,
            *told,
            *beside,
            *others,
            *scanned.warnings,
            *repaired,
        ),
        beside=known,
        config_files=files,
        faults=every,
    )


def choose(attempts: Sequence[Attempt]) -> Attempt:
    """The latest attempt of the job that failed, or else dropped batches; what its own job superseded is history."""
    latest: list[Attempt] = []
    later: set[str | None] = set()
    for one in reversed(attempts):
        name = one.job_name.reveal() if one.job_name is not None else None
        if not later or not (name is None or None in later or name in later):
            latest.insert(0, one)
        later.add(name)
    failed = [a for a in latest if a.end.outcome in ("failed", "killed")]
    skipping = [a for a in latest if any(oom.caught for oom in a.ooms)]
    return (failed or skipping or latest)[-1]


def same_job(one: Attempt, other: Attempt) -> bool:
    """Whether two attempts are of one job; a name that the log does not give speaks against nothing."""
    return one.job_name is None or other.job_name is None or one.job_name.reveal() == other.job_name.reveal()


def _trainer(scans: Sequence[ScanResult]) -> str | None:
    best: tuple[int, str] | None = None
    for scanned in scans:
        for name, (weight, _) in scanned.trainers.items():
            if best is None or (weight, name) > best:
                best = (weight, name)
    return best[1] if best else None
