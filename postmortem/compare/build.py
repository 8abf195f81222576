"""Put a comparison into words: the one document that every format prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from postmortem import __version__
from postmortem.compare import document as doc
from postmortem.compare.changes import Change, between
from postmortem.compare.conclude import PROOFS, Conclusion, conclude
from postmortem.compare.reach import failed
from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigChange, Suggestion
from postmortem.pipeline import Analysis, same_job
from postmortem.report import document as report_doc
from postmortem.report.document import quoted
from postmortem.report.texts import Texts, size
from postmortem.text import LogText, Words

MAX_SHAPES = 6
SINGLE = "log"
"""What evidence calls the only log of an input; it says nothing that the input's own name does not."""


def build(attempts: Sequence[Analysis], knowledge: Knowledge, lang: str = "en") -> doc.Comparison:
    """The comparison of two or more attempts, oldest first.

    It is on the last two, or, where both are fine, on the last failed attempt and the one after it.
    """
    texts = Texts(knowledge, lang)
    steps = [_step(one, other, knowledge) for one, other in pairwise(attempts)]
    at = _pair(attempts)
    earlier, later = attempts[at], attempts[at + 1]
    changes, conclusion = steps[at]
    bearing = [change for change in changes if change.bears] if changes is not None else None
    rest = [change for change in changes if not change.bears] if changes is not None else None
    helped = [c for found, end in steps for c in found or () if c.bears and _helped(end, found)]
    vain = [c for found, end in steps for c in found or () if c.bears and end.id in ("not_enough", "none_enough")]
    return doc.Comparison(
        schema_version=doc.SCHEMA_VERSION,
        tool=report_doc.Tool(name="aitk-postmortem", version=__version__, patterns=knowledge.version),
        failed=at + 1,
        retry=at + 2,
        conclusion=_conclusion(conclusion, bearing, earlier, later, texts),
        variables=len(bearing) if bearing is not None else None,
        changes=_items(bearing, texts),
        no_bearing=_items(rest, texts),
        circumstances=list(_circumstances(earlier, later, texts)),
        history=[
            _attempt(index, one, steps[index - 1] if index else None, texts) for index, one in enumerate(attempts)
        ],
        helped=_items(helped, texts) or [],
        in_vain=_items(vain, texts) or [],
        next_fix=_next(attempts, texts),
        notes=list(_notes(earlier, later, changes, texts)),
        lang=lang,
    )


def _helped(end: Conclusion, found: Sequence[Change] | None) -> bool:
    """Whether the one change of this step carried the run past a failure."""
    alone = sum(1 for change in found or () if change.bears) == 1
    return end.id in PROOFS or (end.id == "later" and alone)


def _step(earlier: Analysis, later: Analysis, knowledge: Knowledge) -> tuple[tuple[Change, ...] | None, Conclusion]:
    changes = None
    if earlier.config.known and later.config.known:
        changes = between(earlier, later, earlier if failed(earlier) else later, knowledge)
    return changes, conclude(earlier, later, changes)


def _pair(attempts: Sequence[Analysis]) -> int:
    last = len(attempts) - 2
    if failed(attempts[-1]) or failed(attempts[-2]):
        return last
    return next((index for index in range(last, -1, -1) if failed(attempts[index])), last)


def _conclusion(
    found: Conclusion, bearing: Sequence[Change] | None, earlier: Analysis, later: Analysis, texts: Texts
) -> doc.ConclusionItem:
    names = [LogText(_title(change, texts).reveal()) for change in bearing or ()]
    values: dict[str, Any] = {
        "variables": names or None,
        "count": len(names),
        "phase": later.diagnosis.phase,
        "until": found.reach.until,
        "revert": LogText(_title(found.revert_first, texts).reveal()) if found.revert_first else None,
    }
    advice: list[Words] = []
    if found.id == "later" and len(names) == 1:
        advice.append(texts.words("compare.advice.one_helped", values))
    if found.id == "not_yet":
        which = "run_until" if found.reach.until is not None else "run_on"
        advice.append(texts.words(f"compare.advice.{which}", values))
    if found.revert_first is not None:
        advice.append(texts.words("compare.advice.revert_first", values))
    if texts.has(f"compare.advice.{found.id}"):
        advice.append(texts.words(f"compare.advice.{found.id}", values))
    return doc.ConclusionItem(
        id=found.id,
        proven=found.proven,
        passes=found.reach.verdict,
        run_until_step=found.reach.until if found.id == "not_yet" else None,
        revert_first=LogText(found.revert_first.id) if found.revert_first else None,
        text=texts.words(f"compare.conclusion.{found.id}", values),
        advice=advice,
    )


def _items(changes: Sequence[Change] | None, texts: Texts) -> list[doc.VariableItem] | None:
    if changes is None:
        return None
    return [
        doc.VariableItem(
            id=LogText(change.id),
            title=_title(change, texts),
            bears=change.bears,
            edits=[_edit(edit) for edit in change.edits],
        )
        for change in changes
    ]


def _title(change: Change, texts: Texts) -> Words:
    if change.named:
        return texts.words(f"compare.variable.{change.id}")
    return Words(LogText(change.id))


def _edit(edit: ConfigChange) -> doc.EditItem:
    return doc.EditItem(path=LogText(edit.path), from_=quoted(edit.before), to=quoted(edit.after))


def _attempt(
    index: int, one: Analysis, step: tuple[tuple[Change, ...] | None, Conclusion] | None, texts: Texts
) -> doc.AttemptItem:
    attempt, diagnosis = one.attempt, one.diagnosis
    bearing = [change for change in step[0] if change.bears] if step and step[0] is not None else None
    return doc.AttemptItem(
        number=index + 1,
        source=LogText(one.source if attempt.source == SINGLE else f"{one.source}:{attempt.source}"),
        attempt=attempt.index,
        job_name=attempt.job_name or one.config.job_name,
        outcome=diagnosis.outcome,
        kind=diagnosis.kind,
        class_=diagnosis.class_,
        phase=diagnosis.phase,
        start_step=attempt.start_step,
        failure_step=diagnosis.step,
        last_completed_step=attempt.last_completed_step,
        total_steps=attempt.total_steps,
        skipped_batches=sum(1 for oom in attempt.ooms if oom.caught and oom.phase == "training_step"),
        config_known=one.config.known,
        changes=_items(bearing, texts),
        conclusion=step[1].id if step else None,
    )


def _circumstances(earlier: Analysis, later: Analysis, texts: Texts) -> Iterator[doc.CircumstanceItem]:
    """What differs besides the config, as far as both logs tell."""
    for name, before, after in zip(_CIRCUMSTANCES, _surroundings(earlier), _surroundings(later)):
        if before is not None and after is not None and before != after:
            yield doc.CircumstanceItem(
                id=name, title=texts(f"compare.circumstance.{name}"), from_=LogText(before), to=LogText(after)
            )


_CIRCUMSTANCES = ("trainer", "card", "device", "other_processes", "buckets", "start_step")


def _surroundings(one: Analysis) -> tuple[str | None, ...]:
    sizes, attempt = one.diagnosis.memory_mib, one.attempt
    total, other = sizes.get("gpu_total"), sizes.get("other_processes")
    shapes = [f"{bucket.label}: {bucket.files}" for bucket in attempt.buckets]
    shown = ", ".join(shapes[:MAX_SHAPES]) + (f" … ({len(shapes)})" if len(shapes) > MAX_SHAPES else "")
    return (
        one.diagnosis.trainer,
        size(total) if total is not None else None,
        str(one.diagnosis.device) if one.diagnosis.device is not None else None,
        size(other) if other is not None else None,
        shown or None,
        str(attempt.start_step),
    )


def _notes(
    earlier: Analysis, later: Analysis, changes: Sequence[Change] | None, texts: Texts
) -> Iterator[doc.NoteItem]:
    for which, one in (("failed", earlier), ("retry", later)):
        if not one.config.known:
            yield doc.NoteItem(id=f"config_unknown_{which}", text=texts.words(f"compare.note.config_unknown_{which}"))
    names = [LogText(n.reveal()) if (n := a.attempt.job_name or a.config.job_name) else None for a in (earlier, later)]
    differ = any(change.identity for change in changes or ())
    if not same_job(earlier.attempt, later.attempt) or differ:
        values = {"one": names[0], "other": names[1]}
        yield doc.NoteItem(id="different_jobs", text=texts.words("compare.note.different_jobs", values))
    left_out = next((notice for notice in later.warnings if notice.id == "attempts_left_out"), None)
    if left_out is not None:
        words = texts.words("compare.note.attempts_left_out", left_out.values)
        yield doc.NoteItem(id="attempts_left_out", text=words)
    unknown = [edit.path for change in changes or () if not change.named for edit in change.edits]
    if any(path in one.config.others for path in unknown for one in (earlier, later)):
        yield doc.NoteItem(id="bearing_not_known", text=texts.words("compare.note.bearing_not_known"))


def _next(attempts: Sequence[Analysis], texts: Texts) -> doc.NextFix | None:
    """The next fix, where the last attempt still fails."""
    if not failed(attempts[-1]):
        return None
    for item in attempts[-1].suggestions:
        if not any(_tried(item, one) for one in attempts[:-1] if failed(one)):
            return doc.NextFix(
                id=item.id, title=texts(f"remedy.{item.id}.title"), changes=[_edit(edit) for edit in item.changes]
            )
    return None


def _tried(item: Suggestion, one: Analysis) -> bool:
    """Whether all that the fix would set was in force in this attempt already."""
    return bool(item.changes) and all(
        (value := one.config.values.get(edit.path)) is not None and value.value == edit.after for edit in item.changes
    )
