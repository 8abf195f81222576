"""Put an analysis into words: the one document that every format prints."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from postmortem import __version__
from postmortem.diagnosis.classify import bucket_odds
from postmortem.faults import Faults, notices
from postmortem.knowledge.fingerprint import fingerprint
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Attempt, Dated, Notice, Oom, RegressionFound, Suggestion, is_whole
from postmortem.pipeline import Analysis
from postmortem.report import chronicle, made, outlook, skipped
from postmortem.report import document as doc
from postmortem.report.settings import Row, defaults_of, that_matter
from postmortem.report.texts import Texts
from postmortem.text import LogText

MAX_OOMS = 2000
DEFAULT = "default"
"""The source of a setting that no config gives."""


def build(
    analysis: Analysis, knowledge: Knowledge, lang: str = "en", *, redacted: bool = False, ticket: bool = False
) -> doc.Report:
    """The report on `analysis`, its texts in `lang`; `redacted` says that it will be, `ticket` that it is for one."""
    texts = Texts(knowledge, lang)
    diagnosis, attempt = analysis.diagnosis, analysis.attempt
    faults = Faults()
    defaults = faults.guard("settings", lambda: defaults_of(analysis.config, knowledge), dict[str, Any])
    settings = faults.guard("settings", lambda: that_matter(analysis, knowledge), list[Row])
    skips = faults.guard("skips", lambda: skipped.part(analysis, texts), lambda: None)
    tables = faults.guard("buckets", lambda: _buckets(analysis), list[doc.BucketItem])
    timeline, left_out = faults.guard("timeline", lambda: chronicle.rows(attempt), lambda: ([], 0))
    pace = faults.guard("pace", lambda: chronicle.pace(attempt), chronicle.no_pace)
    steps = faults.guard("pace", lambda: chronicle.steps(attempt), chronicle.no_steps)
    fixes = [
        item
        for one in analysis.suggestions
        if (item := faults.guard("remedies", partial(_remedy, one, analysis, texts), lambda: None)) is not None
    ]
    return doc.Report(
        schema_version=doc.SCHEMA_VERSION,
        tool=doc.Tool(name="aitk-postmortem", version=__version__, patterns=knowledge.version),
        input=doc.Input(
            source=LogText(analysis.source),
            bytes=analysis.scanned.bytes,
            lines=analysis.scanned.lines,
            encoding=analysis.encoding,
            attempts=len(analysis.attempts),
            attempt=attempt.index,
            options=made.options(analysis, redacted=redacted, ticket=ticket),
            beside=made.beside(analysis),
        ),
        run=run_of(analysis),
        failure=_failure(analysis, texts, knowledge),
        memory=memory_of(analysis),
        oom_events=[
            doc.OomEvent(
                line=chronicle.line_of(oom.place, attempt),
                step=oom.step,
                phase=oom.phase,
                caught=oom.caught,
                signature=oom.pattern,
                bucket=_named(analysis, oom),
                start=chronicle.start_of(oom.place, attempt),
                end=chronicle.end_of(oom.place, attempt),
            )
            for oom in attempt.ooms[:MAX_OOMS]
        ],
        buckets=tables,
        config=doc.ConfigPart(
            sources=[LogText(name) for name in analysis.config.sources],
            values={
                path: doc.SettingItem(
                    value=doc.quoted(value.value),
                    source=LogText(value.source),
                    line=value.line,
                    default=msgspec.UNSET if value.source == DEFAULT else doc.quoted(defaults.get(path)),
                )
                for path, value in sorted(analysis.config.values.items())
            },
        ),
        remedies=fixes,
        timeline=timeline,
        pace=pace,
        steps=steps,
        ledger=_ledger(analysis),
        forecast=outlook.forecast_item(analysis.forecast),
        forecast_missing=outlook.missing(analysis.forecast, texts),
        ladder=[outlook.rung_item(rung, texts) for rung in analysis.ladder],
        # no card can be put into a machine whose GPU shares the system's memory
        card_needed_gib=None
        if analysis.diagnosis.facts.get("run.unified")
        else outlook.card_needed_gib(analysis.forecast, analysis.ladder),
        warnings=[
            _warning(item, texts) for item in (*notices(faults.found), *analysis.warnings, *_cut(attempt, left_out))
        ],
        will_not_help=[
            doc.UselessItem(
                id=item.id,
                name=texts(f"remedy.{item.id}.name"),
                why=outlook.why_not(item, texts, diagnosis.facts),
                saving=outlook.span(item.saving),
            )
            for item in analysis.not_helping
        ],
        suspects=[
            doc.SuspectItem(
                bucket=odd.bucket.label, files=odd.bucket.files, batches=odd.batches, share=round(odd.share, 4)
            )
            for odd in diagnosis.suspects
        ],
        suspects_fit=diagnosis.facts.get("run.bucket_fits") if diagnosis.suspects else None,
        skips=skips,
        settings=[
            doc.SettingRow(
                path=path,
                value=doc.quoted(value),
                source=LogText(source),
                line=line,
                first_fix=first,
                default=doc.quoted(defaults.get(path.replace("[]", "[0]"))),
            )
            for path, value, source, line, first in settings
        ],
        capture=[doc.CaptureItem(id=item, text=texts(f"capture.{item}")) for item in diagnosis.missing],
        regressions=[_regression(item, texts) for item in diagnosis.regressions],
        lang=lang,
    )


def run_of(analysis: Analysis) -> doc.Run:
    """What the report says of the run itself."""
    diagnosis, attempt = analysis.diagnosis, analysis.attempt
    return doc.Run(
        trainer=diagnosis.trainer,
        job_name=attempt.job_name or analysis.config.job_name,
        arch=LogText(diagnosis.arch) if diagnosis.arch else None,
        family=diagnosis.family,
        start_step=attempt.start_step if attempt.resumed or attempt.trained or attempt.has_header else None,
        last_completed_step=attempt.last_completed_step,
        total_steps=attempt.total_steps or _steps(analysis),
        last_saved_step=attempt.last_saved_step,
        safe_step=analysis.kept.step,
        safe_checkpoint=analysis.kept.checkpoint,
        safe_source=analysis.kept.source,
        outcome=diagnosis.outcome,
        dated=_dated(diagnosis.dated),
        torch=_torch(diagnosis.torch),
    )


def memory_of(analysis: Analysis) -> doc.Memory:
    """The sizes of the event that the verdict stands on."""
    diagnosis = analysis.diagnosis
    return doc.Memory(**{key: _round(value) for key, value in diagnosis.memory_mib.items()}, device=diagnosis.device)


def _dated(dated: Dated | None) -> doc.DatedPart | None:
    if dated is None:
        return None
    return doc.DatedPart(
        from_=dated.from_,
        until=dated.until,
        from_commit=dated.from_commit,
        until_commit=dated.until_commit,
        clues=[doc.ClueItem(line=clue.line, id=clue.id) for clue in dated.clues],
    )


def _torch(dated: Dated | None) -> doc.TorchPart | None:
    if dated is None:
        return None
    clues = [doc.ClueItem(line=clue.line, id=clue.id) for clue in dated.clues]
    return doc.TorchPart(from_=dated.from_, until=dated.until, clues=clues)


def _regression(item: RegressionFound, texts: Texts) -> doc.RegressionItem:
    return doc.RegressionItem(
        id=item.id,
        program=item.program,
        standing="inside" if item.inside else "possible",
        from_=item.from_,
        until=item.until,
        from_commit=item.from_commit,
        until_commit=item.until_commit,
        what=texts(f"regression.{item.id}.what"),
        do=texts(f"regression.{item.id}.do"),
        source=item.source,
        url=item.url,
    )


def _shown_by(what: str, analysis: Analysis) -> dict[str, float]:
    """The figures that a line of evidence proves and does not hold itself: a pace is read off many draws of a bar."""
    times = analysis.attempt.step_times
    if what != "slowdown" or times is None:
        return {}
    return {"before_s": round(times.before_s, 1), "after_s": round(times.after_s, 1)}


def _failure(analysis: Analysis, texts: Texts, knowledge: Knowledge) -> doc.Failure:
    diagnosis = analysis.diagnosis
    cited = {item.pattern for item in diagnosis.evidence}
    versions = {pattern.id: fingerprint(pattern) for pattern in knowledge.patterns if pattern.id in cited}
    return doc.Failure(
        kind=diagnosis.kind,
        resource=diagnosis.resource,
        class_=diagnosis.class_,
        phase=diagnosis.phase,
        step=diagnosis.step,
        signature=diagnosis.signature,
        confidence=diagnosis.confidence,
        headline=texts.words(f"headline.{diagnosis.headline}", diagnosis.headline_values),
        error=_error(analysis),
        evidence=[
            doc.EvidenceItem(
                line=item.line,
                what=item.what,
                says=texts(f"evidence.{item.what}", _shown_by(item.what, analysis)),
                text=item.text,
                source=LogText(item.source),
                pattern=item.pattern,
                pattern_version=versions.get(item.pattern) if item.pattern else None,
                start=item.start,
                end=item.end,
            )
            for item in diagnosis.evidence
        ],
        factors=[
            doc.FactorItem(id=item.id, text=texts.words(f"factor.{item.id}", item.values)) for item in diagnosis.factors
        ],
    )


def _error(analysis: Analysis) -> LogText | None:
    """The error itself, where it is no memory failure and so all there is to say."""
    event = analysis.attempt.end.event
    return event.text if analysis.diagnosis.kind == "not_memory" and event is not None else None


def _remedy(item: Suggestion, analysis: Analysis, texts: Texts) -> doc.RemedyItem:
    lines = {
        value.line
        for change in item.changes
        if (value := analysis.config.values.get(change.path)) is not None and value.line and value.source == "log"
    }
    if item.id == "change_toolkit_version" and item.why == "inside":
        program = item.facts.get("regression.program")
        told = analysis.diagnosis.torch if program == "torch" else analysis.diagnosis.dated
        lines.update(clue.line for clue in (told.clues if told else ()))
    return doc.RemedyItem(
        rank=item.rank,
        id=item.id,
        title=texts(f"remedy.{item.id}.title"),
        changes=[
            doc.ChangeItem(path=change.path, from_=doc.quoted(change.before), to=doc.quoted(change.after))
            for change in item.changes
        ],
        why=texts.words(f"remedy.{item.id}.why.{item.why}", item.facts),
        saving=outlook.span(item.saving),
        peak=outlook.span(item.peak),
        need=outlook.span(item.need),
        fits=item.fits,
        cost=texts(f"remedy.{item.id}.cost"),
        ui=texts(f"remedy.{item.id}.ui"),
        guide=doc.Guide(section=item.guide, url=item.url, source=item.source),
        evidence=sorted(lines),
    )


def _steps(analysis: Analysis) -> int | None:
    steps = analysis.config.values.get("train.steps")
    if steps is None or steps.source == "default" or not is_whole(steps.value):
        return None
    return steps.value


def _buckets(analysis: Analysis) -> list[doc.BucketItem]:
    sides: list[int] = []
    for index in range(200):
        value = analysis.config.values.get(f"datasets[{index}].resolution")
        if value is None:
            break
        found = value.value if isinstance(value.value, list) else [value.value]
        sides.extend(side for side in found if is_whole(side))
    blocks = {bucket.block for bucket in analysis.attempt.buckets}
    fits = bool(blocks) and len(sides) == max(blocks)
    weighed = analysis.diagnosis.skips
    facts = analysis.diagnosis.facts
    counted = weighed.rows if weighed else ()
    if not counted and facts.get("job.batch_size") and not facts.get("job.regularisation"):
        counted = bucket_odds(analysis.attempt.buckets, facts["job.batch_size"], facts.get("job.block_batches"))
    rows = {(row.bucket.block, row.bucket.line, row.bucket.label): row for row in counted}
    return [
        doc.BucketItem(
            dataset=bucket.dataset,
            bucket=bucket.label,
            files=bucket.files,
            resolution=sides[bucket.block - 1] if fits and bucket.block else None,
            batches=row.batches if row else None,
            share=round(row.share, 4) if row else None,
            odds=round(row.odds, 3) if row and row.odds is not None else None,
            source=bucket.source,
        )
        for bucket in analysis.attempt.buckets
        for row in (rows.get((bucket.block, bucket.line, bucket.label)),)
    ]


def _named(analysis: Analysis, oom: Oom) -> str | None:
    """The bucket that failed, where only one can be meant."""
    weighed = analysis.diagnosis.skips
    return weighed.label if weighed is not None and oom.phase == "training_step" and oom.kind == "gpu_oom" else None


def _ledger(analysis: Analysis) -> doc.LedgerPart:
    balance = analysis.ledger
    return doc.LedgerPart(
        capacity=_round(balance.capacity),
        other_processes=_round(balance.other_processes),
        non_pytorch=_round(balance.non_pytorch),
        allocated=_round(balance.allocated),
        reserved_unallocated=_round(balance.reserved_unallocated),
        free=_round(balance.free),
        unexplained=_round(balance.unexplained),
        shortage=_round(balance.shortage),
        overdrawn=_round(balance.overdrawn),
        source=balance.source,
    )


def _cut(attempt: Attempt, left_out: int) -> Iterator[Notice]:
    """What the document's own limits leave out."""
    if len(attempt.ooms) > MAX_OOMS:
        yield Notice("ooms_left_out", None, {"count": len(attempt.ooms), "shown": MAX_OOMS})
    if left_out:
        yield Notice("timeline_left_out", None, {"count": left_out})


def _warning(item: Notice, texts: Texts) -> doc.WarningItem:
    return doc.WarningItem(id=item.id, text=texts.words(f"warning.{item.id}", item.values), line=item.line)


def _round(value: float | None) -> float | None:
    """Two digits after the point, unless that would make a small request nothing."""
    if value is None:
        return None
    return round(value, 2) if value >= 1 else round(value, 6)
