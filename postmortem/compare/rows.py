"""The lines that the terminal and Markdown share."""

from __future__ import annotations

from postmortem.compare.document import AttemptItem
from postmortem.report.texts import Texts


def outcome(item: AttemptItem, texts: Texts) -> str:
    """How an attempt ended: outcome, phase where it failed, skipped batches."""
    parts = [texts(f"word.outcome.{item.outcome}")]
    if item.kind not in ("none", "unknown") and item.phase != "unknown":
        parts.append(texts(f"phase.{item.phase}.title"))
    if item.skipped_batches:
        parts.append(texts("compare.word.skipped", {"count": item.skipped_batches}))
    return " · ".join(parts)


def steps(item: AttemptItem, texts: Texts) -> str:
    """How far an attempt got."""
    parts = []
    if item.start_step:
        parts.append(texts("word.resumed", {"step": item.start_step}))
    if item.failure_step is not None:
        parts.append(texts("compare.word.failed_at", {"step": item.failure_step}))
    if item.last_completed_step is not None:
        parts.append(texts("compare.word.reached", {"step": item.last_completed_step, "total": item.total_steps}))
    return " · ".join(parts) or texts("compare.word.no_step")
