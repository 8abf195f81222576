"""The whole pipe, pure: logs and configs in, one analysis out. The command line and the fleet both run this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from postmortem.diagnosis import diagnose
from postmortem.jobconfig import ConfigText, effective
from postmortem.model import Attempt, Diagnosis, JobConfig, NotHelping, Notice, ScanResult, Suggestion
from postmortem.remedies import plan
from postmortem.scan import Lexicon, scan
from postmortem.text import LogText
from postmortem.timeline import build, confirm
from postmortem.vram import Ledger, ledger

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
    ledger: Ledger
    warnings: tuple[Notice, ...]


def analyse(
    source: str,
    logs: Sequence[Source],
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    *,
    attempt: int | None = None,
    skipped_steps: Sequence[int] | None = None,
) -> Analysis:
    """Analyse a run. `logs` come oldest first; `skipped_steps` is what a database beside the newest one says.

    Raises NothingRecognised when no log holds a single known line, NoSuchAttempt for a number out of range.
    """
    scans, attempts = _read(logs, lexicon, skipped_steps)
    if attempt is not None and not 1 <= attempt <= len(attempts):
        raise NoSuchAttempt(len(attempts))
    chosen = attempts[attempt - 1] if attempt is not None else choose(attempts)
    return _one(source, logs, scans, attempts, chosen, configs, lexicon)


def analyse_each(
    source: str,
    logs: Sequence[Source],
    configs: Sequence[ConfigText],
    lexicon: Lexicon,
    *,
    skipped_steps: Sequence[int] | None = None,
) -> tuple[Analysis, ...]:
    """An analysis of each attempt in the input, oldest first (the newest `MAX_ATTEMPTS`).

    The files beside the logs may have been edited between attempts, so they speak for the newest one only; an
    earlier attempt has the config that its own log holds, or none. Raises NothingRecognised.
    """
    scans, attempts = _read(logs, lexicon, skipped_steps)
    return tuple(
        _one(source, logs, scans, attempts, one, configs if one is attempts[-1] else (), lexicon)
        for one in attempts[-MAX_ATTEMPTS:]
    )


def _read(
    logs: Sequence[Source], lexicon: Lexicon, skipped_steps: Sequence[int] | None
) -> tuple[list[ScanResult], tuple[Attempt, ...]]:
    scans = [scan(log.chunks, lexicon, log.name) for log in logs]
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
) -> Analysis:
    history = [a for a in attempts[: chosen.index - 1] if same_job(a, chosen)]
    scanned = next(s for s in reversed(scans) if s.source == chosen.source)
    config = effective(chosen.dump, configs, lexicon.knowledge)
    diagnosis = diagnose(chosen, config, lexicon.knowledge, _trainer(scans), history)
    suggestions, useless = plan(diagnosis, config, lexicon.knowledge)
    log = next(log for log in logs if log.name == scanned.source)
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
        for other in attempts[-MAX_OTHERS:]
        if not same_job(other, chosen)
    )
    repaired = tuple(Notice(f"repaired_{name}", None, {}) for name in log.repairs)
    return Analysis(
        source=source,
        encoding=log.encoding,
        scanned=scanned,
        attempts=attempts,
        attempt=chosen,
        config=config,
        diagnosis=diagnosis,
        suggestions=suggestions,
        not_helping=useless,
        ledger=ledger(diagnosis.memory_mib),
        warnings=(*config.warnings, *diagnosis.warnings, *others, *scanned.warnings, *repaired),
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
