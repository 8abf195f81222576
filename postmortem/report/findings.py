"""What was found, as parts of the document: the failure and its evidence, the memory it died of, what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmortem.knowledge.fingerprint import fingerprint
from postmortem.knowledge.schema import Knowledge
from postmortem.model import NotHelping, RegressionFound, Suggestion
from postmortem.pipeline import Analysis
from postmortem.report import document as doc
from postmortem.report import outlook
from postmortem.report.texts import Texts
from postmortem.text import LogText


def failure(analysis: Analysis, texts: Texts, knowledge: Knowledge) -> doc.Failure:
    """The verdict, with the lines that prove it."""
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


def _shown_by(what: str, analysis: Analysis) -> dict[str, float]:
    """The figures that a line of evidence proves and does not hold itself: a pace is read off many draws of a bar."""
    times = analysis.attempt.step_times
    if what != "slowdown" or times is None:
        return {}
    return {"before_s": round(times.before_s, 1), "after_s": round(times.after_s, 1)}


def _error(analysis: Analysis) -> LogText | None:
    """The error itself, where it is no memory failure and so all there is to say."""
    event = analysis.attempt.end.event
    return event.text if analysis.diagnosis.kind == "not_memory" and event is not None else None


def regression(item: RegressionFound, texts: Texts) -> doc.RegressionItem:
    """A known regression whose symptoms the failure shows."""
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


def memory_of(analysis: Analysis) -> doc.Memory:
    """The sizes of the event that the verdict stands on."""
    diagnosis = analysis.diagnosis
    return doc.Memory(**{key: _round(value) for key, value in diagnosis.memory_mib.items()}, device=diagnosis.device)


def ledger(analysis: Analysis) -> doc.LedgerPart:
    """The card's memory at the failure as a sum."""
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


def _round(value: float | None) -> float | None:
    """Two digits after the point, unless that would make a small request nothing."""
    if value is None:
        return None
    return round(value, 2) if value >= 1 else round(value, 6)


def useless(item: NotHelping, texts: Texts, facts: Mapping[str, Any]) -> doc.UselessItem:
    """A popular fix that cannot touch this failure, and why."""
    return doc.UselessItem(
        id=item.id,
        name=texts(f"remedy.{item.id}.name"),
        why=outlook.why_not(item, texts, facts),
        saving=outlook.span(item.saving),
    )


def remedy(item: Suggestion, analysis: Analysis, texts: Texts) -> doc.RemedyItem:
    """A fix that helps, with the lines of the log that give what it changes."""
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
        changes=outlook.change_items(item.changes),
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
