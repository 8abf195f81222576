"""The rooms of one analysis in their order, each of which may fail without taking the others with it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.diagnosis import diagnose, previews
from postmortem.diagnosis.dating import TOOLKIT, date
from postmortem.diagnosis.facts import family_of
from postmortem.diagnosis.memory import KEYS
from postmortem.diagnosis.regressions import fitting, regression_facts
from postmortem.faults import Faults
from postmortem.jobconfig import ConfigText
from postmortem.knowledge.history import History
from postmortem.model import (
    Attempt,
    DatasetSizes,
    Diagnosis,
    FolderWitness,
    JobConfig,
    JobDatabase,
    Notice,
    ScanResult,
)
from postmortem.remedies import Plan, plan
from postmortem.scan import Lexicon, scan
from postmortem.vram import Card, Estimate, Forecast, Refusal, card_of, outlook


def joined(
    chosen: Attempt, folder: FolderWitness | None, database: JobDatabase | None, scanned: ScanResult, lexicon: Lexicon
) -> tuple[Attempt, tuple[ConfigText, ...]]:
    """`chosen` with what the UI's database says of it, and the config that it keeps."""
    if database is None:
        return chosen, ()
    from postmortem.timeline import jobrow

    row = jobrow.row_of(chosen, folder.name if folder is not None else None, database)
    if row is None:
        return chosen, ()
    message = scan([row.info.encode()], lexicon, database.name)
    config = (ConfigText(database.name, row.config),) if row.config is not None else ()
    return jobrow.join(chosen, row, message, scanned.bytes, lexicon), config


def verdict(
    chosen: Attempt,
    config: JobConfig,
    scanned: ScanResult,
    lexicon: Lexicon,
    versions: History | None,
    gpu_mib: float | None,
    trainer: str | None,
    history: Sequence[Attempt],
    faults: Faults,
) -> tuple[Diagnosis, Card, Forecast | Refusal, Plan]:
    """What the run died of, its memory by the forecast, and what helps."""
    knowledge = lexicon.knowledge
    diagnosis = faults.guard(
        "diagnosis",
        lambda: diagnose(chosen, config, knowledge, trainer, history),
        lambda: no_verdict(chosen, trainer),
    )
    if versions is not None and diagnosis.trainer in (TOOLKIT, None):
        undated = diagnosis
        diagnosis = faults.guard("dating", lambda: dated(undated, scanned, chosen, lexicon, versions), lambda: undated)

    def forecast() -> tuple[Card, Forecast | Refusal, Estimate | None]:
        card = card_of(diagnosis, [chosen, *reversed(history)], gpu_mib)
        return (card, *outlook(diagnosis, config, chosen, card, knowledge))

    card, expected, estimate = faults.guard("forecast", forecast, lambda: (Card(), Refusal("fault"), None))
    planned = faults.guard("remedies", lambda: plan(diagnosis, config, knowledge, estimate), Plan)
    return diagnosis, card, expected, planned


def no_verdict(attempt: Attempt, trainer: str | None) -> Diagnosis:
    """What stands in place of a diagnosis that failed: how the run ended, and that nothing else is known."""
    return Diagnosis(
        kind="unknown",
        resource=None,
        class_=None,
        phase="unknown",
        step=None,
        signature=None,
        confidence="low",
        headline="fault",
        headline_values={},
        evidence=(),
        factors=(),
        memory_mib=dict.fromkeys(KEYS),
        device=None,
        family=None,
        arch=None,
        trainer=trainer,
        outcome=attempt.end.outcome,
        facts={},
    )


def bucketed(
    attempt: Attempt,
    config: JobConfig,
    datasets: Sequence[DatasetSizes],
    scanned: ScanResult,
    lexicon: Lexicon,
    versions: History | None,
    trainer: str | None,
    history: Sequence[Attempt],
) -> tuple[Attempt, tuple[Notice, ...]]:
    """`attempt` with the buckets of its datasets where the log has none, and what the reader should know of that."""
    from postmortem.diagnosis import rebuild

    knowledge = lexicon.knowledge
    dated = date(scanned.items, attempt, knowledge, versions)[0] if versions is not None else None
    try:
        found = rebuild.tables(config, datasets, family_of(config, attempt.stages, knowledge)[0], dated, versions)
    except rebuild.Unusable as problem:
        return attempt, (problem.notice,)
    if attempt.buckets:
        differs = rebuild.changed(attempt, found)
        return attempt, (differs,) if differs else ()
    tried = [msgspec.structs.replace(attempt, buckets=one) for one in found]
    index = rebuild.settle([(one.buckets, diagnose(one, config, knowledge, trainer, history)) for one in tried])
    if index is None:
        return attempt, (Notice("buckets_ambiguous"),)
    notice = "buckets_rebuilt" if len(found) == 1 else "buckets_rebuilt_newest"
    return tried[index], (Notice(notice, None, {"files": sum(one.files for one in datasets)}),)


def agreed(attempt: Attempt, diagnosis: Diagnosis) -> Attempt:
    """`attempt` with its failed preview in the phase that the diagnosis found it to be."""
    if diagnosis.facts.get("run.preview_unplaced") is not False or diagnosis.phase == attempt.end_phase:
        return attempt
    ooms = tuple(
        msgspec.structs.replace(oom, phase=diagnosis.phase) if oom.phase == attempt.end_phase else oom
        for oom in attempt.ooms
    )
    return msgspec.structs.replace(attempt, ooms=ooms, end_phase=diagnosis.phase)


def _placed(diagnosis: Diagnosis, phase: str | None) -> Diagnosis:
    """`diagnosis` of a preview whose phase turned out to be `phase`."""
    if phase is None:
        return diagnosis
    return msgspec.structs.replace(
        diagnosis,
        phase=phase,
        headline="gpu_oom.sampling_baseline" if phase == "baseline_sampling" else "gpu_oom.sampling",
        headline_values={**diagnosis.headline_values, "phase": phase},
        facts={**diagnosis.facts, "failure.phase": phase, "run.preview_unplaced": False},
    )


def dated(diagnosis: Diagnosis, scanned: ScanResult, attempt: Attempt, lexicon: Lexicon, history: History) -> Diagnosis:
    """`diagnosis` with the versions that the log can be of, and the known regressions that fit."""
    dated, torch, notices = date(scanned.items, attempt, lexicon.knowledge, history)
    if diagnosis.facts.get("run.preview_unplaced"):
        diagnosis = _placed(diagnosis, previews.which(attempt, dated, lexicon, history))
    found = fitting(diagnosis.facts, dated, torch, lexicon.knowledge, history)
    return msgspec.structs.replace(
        diagnosis,
        facts={**diagnosis.facts, **regression_facts(found)},
        warnings=(*diagnosis.warnings, *notices),
        dated=dated,
        torch=torch,
        regressions=found,
    )
