"""Put an analysis into words: the one document that every format prints, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from postmortem import __version__
from postmortem.diagnosis.classify import bucket_odds
from postmortem.faults import Faults, notices
from postmortem.jobconfig.values import DEFAULT, MAX_DATASETS
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Attempt, BucketOdds, Dated, JobConfig, Notice, Oom, is_whole
from postmortem.pipeline import Analysis
from postmortem.report import chronicle, findings, made, outlook, skipped
from postmortem.report import document as doc
from postmortem.report.settings import Row, defaults_of, that_matter
from postmortem.report.texts import Texts
from postmortem.text import LogText

MAX_OOMS = 2000


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
        if (item := faults.guard("remedies", partial(findings.remedy, one, analysis, texts), lambda: None)) is not None
    ]
    notes = (*notices(faults.found), *analysis.warnings, *_cut(attempt, left_out))
    # no card can be put into a machine whose GPU shares the system's memory
    other_card = not diagnosis.facts.get("run.unified")
    return doc.Report(
        schema_version=doc.SCHEMA_VERSION,
        tool=doc.Tool(name="aitk-postmortem", version=__version__, patterns=knowledge.version),
        input=_input(analysis, redacted=redacted, ticket=ticket),
        run=run_of(analysis),
        failure=findings.failure(analysis, texts, knowledge),
        memory=findings.memory_of(analysis),
        oom_events=[_oom_event(oom, analysis) for oom in attempt.ooms[:MAX_OOMS]],
        buckets=tables,
        config=_config(analysis, defaults),
        remedies=fixes,
        timeline=timeline,
        pace=pace,
        steps=steps,
        ledger=findings.ledger(analysis),
        forecast=outlook.forecast_item(analysis.forecast),
        forecast_missing=outlook.missing(analysis.forecast, texts),
        ladder=[outlook.rung_item(rung, texts) for rung in analysis.ladder],
        card_needed_gib=outlook.card_needed_gib(analysis.forecast, analysis.ladder) if other_card else None,
        warnings=[_warning(item, texts) for item in notes],
        will_not_help=[findings.useless(item, texts, diagnosis.facts) for item in analysis.not_helping],
        suspects=[_suspect(odd) for odd in diagnosis.suspects],
        suspects_fit=diagnosis.facts.get("run.bucket_fits") if diagnosis.suspects else None,
        skips=skips,
        settings=[_setting_row(row, defaults) for row in settings],
        capture=[doc.CaptureItem(id=item, text=texts(f"capture.{item}")) for item in diagnosis.missing],
        regressions=[findings.regression(item, texts) for item in diagnosis.regressions],
        lang=lang,
    )


def _input(analysis: Analysis, *, redacted: bool, ticket: bool) -> doc.Input:
    return doc.Input(
        source=LogText(analysis.source),
        bytes=analysis.scanned.bytes,
        lines=analysis.scanned.lines,
        encoding=analysis.encoding,
        attempts=len(analysis.attempts),
        attempt=analysis.attempt.index,
        options=made.options(analysis, redacted=redacted, ticket=ticket),
        beside=made.beside(analysis),
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


def _dated(dated: Dated | None) -> doc.DatedPart | None:
    if dated is None:
        return None
    return doc.DatedPart(
        from_=dated.from_,
        until=dated.until,
        from_commit=dated.from_commit,
        until_commit=dated.until_commit,
        clues=_clues(dated),
    )


def _torch(dated: Dated | None) -> doc.TorchPart | None:
    if dated is None:
        return None
    return doc.TorchPart(from_=dated.from_, until=dated.until, clues=_clues(dated))


def _clues(dated: Dated) -> list[doc.ClueItem]:
    return [doc.ClueItem(line=clue.line, id=clue.id) for clue in dated.clues]


def _steps(analysis: Analysis) -> int | None:
    """How many steps the config asks for; a default says nothing of this run."""
    steps = analysis.config.values.get("train.steps")
    if steps is None or steps.source == DEFAULT or not is_whole(steps.value):
        return None
    return steps.value


def _config(analysis: Analysis, defaults: Mapping[str, Any]) -> doc.ConfigPart:
    return doc.ConfigPart(
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
    )


def _setting_row(row: Row, defaults: Mapping[str, Any]) -> doc.SettingRow:
    path, value, source, line, first = row
    return doc.SettingRow(
        path=path,
        value=doc.quoted(value),
        source=LogText(source),
        line=line,
        first_fix=first,
        default=doc.quoted(defaults.get(path.replace("[]", "[0]"))),
    )


def _sides(config: JobConfig) -> list[int]:
    """The resolutions of the datasets in their order; AI Toolkit makes a table of buckets for each."""
    sides: list[int] = []
    for index in range(MAX_DATASETS):
        value = config.values.get(f"datasets[{index}].resolution")
        if value is None:
            break
        found = value.value if isinstance(value.value, list) else [value.value]
        sides.extend(side for side in found if is_whole(side))
    return sides


def _buckets(analysis: Analysis) -> list[doc.BucketItem]:
    """The batch shapes, with the resolution where tables and resolutions are as many, and the odds where counted."""
    sides = _sides(analysis.config)
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


def _suspect(odds: BucketOdds) -> doc.SuspectItem:
    return doc.SuspectItem(
        bucket=odds.bucket.label, files=odds.bucket.files, batches=odds.batches, share=round(odds.share, 4)
    )


def _oom_event(oom: Oom, analysis: Analysis) -> doc.OomEvent:
    attempt = analysis.attempt
    return doc.OomEvent(
        line=chronicle.line_of(oom.place, attempt),
        step=oom.step,
        phase=oom.phase,
        caught=oom.caught,
        signature=oom.pattern,
        bucket=_named(analysis, oom),
        start=chronicle.start_of(oom.place, attempt),
        end=chronicle.end_of(oom.place, attempt),
    )


def _named(analysis: Analysis, oom: Oom) -> str | None:
    """The bucket that failed, where only one can be meant."""
    weighed = analysis.diagnosis.skips
    return weighed.label if weighed is not None and oom.phase == "training_step" and oom.kind == "gpu_oom" else None


def _cut(attempt: Attempt, left_out: int) -> Iterator[Notice]:
    """What the document's own limits leave out."""
    if len(attempt.ooms) > MAX_OOMS:
        yield Notice("ooms_left_out", None, {"count": len(attempt.ooms), "shown": MAX_OOMS})
    if left_out:
        yield Notice("timeline_left_out", None, {"count": left_out})


def _warning(item: Notice, texts: Texts) -> doc.WarningItem:
    return doc.WarningItem(id=item.id, text=texts.words(f"warning.{item.id}", item.values), line=item.line)
