"""The part of the report on failed training steps: how many, whose batches probably, what was never learnt."""

from __future__ import annotations

from typing import Any

from postmortem.model import Skips
from postmortem.pipeline import Analysis
from postmortem.report import document as doc
from postmortem.report.texts import Texts
from postmortem.text import Words

LIVED = ("completed_with_skips", "completed", "incomplete", "stopped")
MAX_NAMED = 4


def part(analysis: Analysis, texts: Texts) -> doc.SkipsPart | None:
    """What is known of the failed training steps; None where there was none or it was no memory failure."""
    attempt, weighed = analysis.attempt, analysis.diagnosis.skips
    failing = [oom for oom in attempt.ooms if oom.phase == "training_step" and oom.kind == "gpu_oom"]
    caught = [oom for oom in failing if oom.caught]
    lived = analysis.diagnosis.outcome in LIVED
    if not failing or analysis.diagnosis.kind != "gpu_oom" or (weighed is None and not (caught and lived)):
        return None
    steps = attempt.good_steps + len(failing)
    never = weighed.best if weighed is not None and weighed.fits and lived else ()
    files = sum(row.bucket.files for row in never) if never else None
    every = sum(bucket.files for bucket in attempt.buckets)
    says: list[Words] = []
    if weighed is not None and attempt.trained:
        says.append(_shapes(weighed, len(failing), steps, texts))
    if lived and caught and attempt.trained and steps:
        values: dict[str, Any] = {
            "steps": len(caught),
            "share": _percent(len(caught) / steps),
            "files": files,
            "files_share": _percent(files / every) if files and every else None,
            "buckets": _labels(weighed) if weighed else "",
        }
        always = weighed is not None and weighed.always
        key = ("never_learnt" if always else "hardly_learnt") if files else "dropped"
        if not attempt.good_steps:
            key = "all_dropped"
        says.append(texts.words(f"skips.{key}", values))
    return doc.SkipsPart(
        failed=len(failing),
        steps=steps,
        buckets=sorted({row.bucket.label for row in weighed.best}) if weighed else [],
        share=round(weighed.share, 4) if weighed and weighed.best else None,
        odds=round(weighed.odds, 3) if weighed and weighed.best else None,
        fits=weighed.fits if weighed else None,
        files=files,
        files_share=round(files / every, 4) if files and every else None,
        says=says,
    )


def _shapes(weighed: Skips, failed: int, steps: int, texts: Texts) -> Words:
    """One sentence: the number of failures against the share of the shapes that explain it best."""
    labels = len({row.bucket.label for row in weighed.best})
    if not weighed.best or not weighed.fits:
        key = "none"
    elif weighed.fitting > 1:
        key = "several" if weighed.odds < 0.5 else "likely"
    else:
        key = "one" if labels == 1 else "set"
    values = {
        "failed": failed,
        "steps": steps,
        "buckets": _labels(weighed),
        "share": _percent(weighed.share),
        "odds": _percent(weighed.odds),
        "others": weighed.fitting - 1,
    }
    return texts.words(f"skips.{key}", values)


def _labels(weighed: Skips) -> str:
    labels = list(dict.fromkeys(row.bucket.label for row in weighed.best))
    return ", ".join(labels[:MAX_NAMED]) + (" …" if len(labels) > MAX_NAMED else "")


def _percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.1 else f"{100 * share:.0f}"
