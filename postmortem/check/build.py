"""Put a check into words: the one document that every format prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postmortem import __version__
from postmortem.check import document as doc
from postmortem.check.phases import TRAINING, Phase, card_of_all, fits_of, weigh
from postmortem.check.risks import facts_of, first_try, risks
from postmortem.check.trial import WATCH, Condition, Trial, against, is_stable, trial
from postmortem.compare.changes import Change
from postmortem.diagnosis.expected import expected
from postmortem.knowledge.schema import Knowledge
from postmortem.model import JobConfig, Range, Suggestion
from postmortem.pipeline import Analysis
from postmortem.report import document as report_doc
from postmortem.report import outlook
from postmortem.report.texts import Texts, size
from postmortem.text import LogText, Words
from postmortem.vram import Card, Forecast

MAX_JOBS = 12
MAX_NAMES = 8


def build(
    source: str,
    jobs: Sequence[JobConfig],
    knowledge: Knowledge,
    lang: str = "en",
    *,
    gpu_mib: float | None = None,
    log: Analysis | None = None,
) -> doc.Check:
    """The check of every process of a job config (the first `MAX_JOBS`), each against the same card and stable run.

    `gpu_mib` is the card as the user says; without it, the one that the stable run's log names.
    """
    texts = Texts(knowledge, lang)
    seen = log.card.capacity if log is not None else None
    capacity = gpu_mib if gpu_mib is not None else seen
    origin = "option" if gpu_mib is not None else "log" if seen is not None else None
    return doc.Check(
        schema_version=doc.SCHEMA_VERSION,
        tool=report_doc.Tool(name="aitk-postmortem", version=__version__, patterns=knowledge.version),
        input=doc.CheckInput(
            config=LogText(source), log=LogText(log.source) if log is not None else None, processes=len(jobs)
        ),
        card=doc.CardPart(capacity=None if capacity is None else round(capacity, 1), source=origin),
        jobs=[
            _job(number, config, Card(capacity), log, knowledge, texts)
            for number, config in enumerate(jobs[:MAX_JOBS], start=1)
        ],
        lang=lang,
    )


def _job(
    number: int, config: JobConfig, card: Card, log: Analysis | None, knowledge: Knowledge, texts: Texts
) -> doc.JobItem:
    stable = against(log, config, knowledge)
    buckets = stable.buckets if stable else ()
    training = expected(config, TRAINING, knowledge, buckets)
    weighed = weigh(config, training, buckets, card, knowledge)
    first = first_try(training.facts, knowledge)
    found = trial(config, training, weighed, card, stable, first, knowledge)
    known = facts_of(training, weighed, stable=is_stable(stable), proven=found.verdict == "proven")
    fits = fits_of(weighed)
    return doc.JobItem(
        process=number,
        name=config.job_name,
        arch=LogText(training.arch) if training.arch else None,
        family=training.family,
        fits=fits,
        headline=_headline(fits, weighed, texts),
        card_gib=card_of_all(weighed),
        phases=[_phase(phase, texts) for phase in weighed],
        previews=bool(known["job.samples"]),
        risks=[
            doc.RiskItem(
                id=risk.id,
                severity=risk.severity,
                text=texts.words(f"check.risk.{risk.id}", known),
                guide=risk.guide,
                source=risk.source,
            )
            for risk in risks(known, knowledge)
        ],
        first_try=doc.AdviceItem(id=first.id, text=texts(f"check.first_try.{first.id}")) if first else None,
        trial=_trial(found, texts),
        warnings=[
            report_doc.WarningItem(id=item.id, text=texts.words(f"warning.{item.id}", item.values), line=item.line)
            for item in config.warnings
        ],
    )


def _headline(fits: str, weighed: Sequence[Phase], texts: Texts) -> Words:
    """The worst phase in one sentence."""
    worst = weighed[0].found if weighed else None
    if not isinstance(worst, Forecast):
        return texts.words("check.verdict.none")
    key = "partly" if fits == "unknown" and worst.usable is not None else fits
    values = {"phase": worst.phase, "size": _shown(worst.need, texts), "card": _shown(worst.usable, texts)}
    return texts.words(f"check.verdict.{key}", values)


def _phase(phase: Phase, texts: Texts) -> doc.PhaseItem:
    planned = phase.planned
    return doc.PhaseItem(
        phase=phase.name,
        forecast=outlook.forecast_item(phase.found),
        forecast_missing=outlook.missing(phase.found, texts),
        card_gib=phase.card_gib,
        fixes=[_fix(item, texts) for item in planned.suggestions],
        ladder=[outlook.rung_item(rung, texts) for rung in planned.ladder],
        # where a fix has no figure, nobody can say that all together are not enough
        card_needed_gib=outlook.card_needed_gib(phase.found, planned.ladder)
        if _all_sized(planned.suggestions)
        else None,
    )


def _all_sized(suggestions: Sequence[Suggestion]) -> bool:
    return all(item.peak is not None or not item.changes for item in suggestions)


def _fix(item: Suggestion, texts: Texts) -> doc.FixItem:
    return doc.FixItem(
        rank=item.rank,
        id=item.id,
        title=texts(f"remedy.{item.id}.title"),
        changes=outlook.change_items(item.changes),
        saving=outlook.span(item.saving),
        peak=outlook.span(item.peak),
        need=outlook.span(item.need),
        fits=item.fits,
        cost=texts(f"remedy.{item.id}.cost"),
        ui=texts(f"remedy.{item.id}.ui"),
        guide=item.guide,
    )


def _trial(found: Trial, texts: Texts) -> doc.TrialPart:
    key = found.verdict if found.on else f"{found.verdict}_off"
    return doc.TrialPart(
        on=found.on,
        verdict=found.verdict,
        text=texts(f"check.trial.{key}"),
        conditions=[
            doc.ConditionItem(
                id=condition.id,
                holds=condition.holds,
                reason=condition.reason,
                title=texts(f"check.condition.{condition.id}.title"),
                text=texts.words(f"check.condition.{condition.id}.{condition.reason}", _values(condition, texts)),
            )
            for condition in found.conditions
        ],
        changes=outlook.change_items(found.changes),
        watch=[texts(f"check.watch.{name}") for name in WATCH] if _may_run_off(found) else [],
    )


def _may_run_off(found: Trial) -> bool:
    return found.verdict in ("yes", "proven") or (found.verdict == "open" and not found.on)


def _values(condition: Condition, texts: Texts) -> dict[str, Any]:
    """What fills a condition's text: sizes and the names of variables in words."""
    values: dict[str, Any] = {}
    for name, value in condition.values.items():
        if name == "names":
            shown = [_title(change, texts) for change in value[:MAX_NAMES]]
            values[name] = [*shown, LogText("…")] if len(value) > MAX_NAMES else shown
        else:
            values[name] = _shown(value, texts) if isinstance(value, (Range, float)) else value
    return values


def _title(change: Change, texts: Texts) -> LogText:
    return LogText(texts(f"compare.variable.{change.id}") if change.named else change.id)


def _shown(found: Range | float | None, texts: Texts) -> LogText | None:
    if found is None:
        return None
    if isinstance(found, Range):
        span = outlook.span(found)
        assert span is not None  # a range has one
        return LogText(outlook.between(span, texts))
    return LogText(size(found))
