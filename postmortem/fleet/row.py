"""One run as one row: what `analyze` says of it, in typed columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from postmortem.compare.reach import reach
from postmortem.fleet.fingerprint import fingerprint, identity
from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigChange
from postmortem.pipeline import Analysis
from postmortem.report.build import MAX_OOMS, run_of
from postmortem.report.document import Run
from postmortem.report.encode import terminal
from postmortem.report.findings import memory_of
from postmortem.text import LogText, printable
from postmortem.vram import card_class_gib

MAX_TEXT = 200
MAX_PATH = 1000
MEMORY = ("gpu_oom", "host_oom", "vram_spill")


class Retry(msgspec.Struct, frozen=True):
    """What became of a fix that the report on a failed attempt offered: whether the next attempt had it, and whether
    that got past the place of the failure. The first fix is always told, another one where it was applied.
    `fingerprint` is the failed attempt's."""

    fingerprint: str
    fix: str
    applied: bool
    passed: bool


class Row(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One run. `null` where the log does not say. Sizes are MiB, steps AI Toolkit's own.

    `status` is analysed or error (then `error` says why); `duplicate_of` names the run with the same bytes
    that stands for both. `card_gib` is the card's size as sold, `resolutions` and `optimizer` as in the config,
    `quantization` the type of the model's weights or none, `text_encoder` cached, unloaded or resident, `first_fix`
    the fix that ranks first and `fit` the forecast's verdict on it; `from_date` and `until_date` are the versions of
    AI Toolkit that the log can be of, `hours` what the attempt took on the card and `hours_lost` what of that no
    checkpoint keeps (of a run that dropped batches: the dropped steps). `cause`, `exception` and `place` tell what the
    `fingerprint` stands on, which is the same for the same failure.
    """

    run: str
    path: str
    status: str
    error: str | None = None
    duplicate_of: str | None = None
    attempt: int | None = None
    attempts: int | None = None
    job: str | None = None
    trainer: str | None = None
    family: str | None = None
    arch: str | None = None
    card_gib: int | None = None
    outcome: str | None = None
    kind: str | None = None
    resource: str | None = None
    class_: str | None = None
    phase: str | None = None
    step: int | None = None
    last_completed_step: int | None = None
    total: int | None = None
    confidence: str | None = None
    signature: str | None = None
    request_mib: float | None = None
    capacity_mib: float | None = None
    allocated_mib: float | None = None
    skipped_steps: int | None = None
    batch_size: int | None = None
    resolutions: str | None = None
    num_frames: int | None = None
    gradient_checkpointing: bool | None = None
    quantization: str | None = None
    low_vram: bool | None = None
    layer_offloading: bool | None = None
    text_encoder: str | None = None
    latents_on_disk: bool | None = None
    optimizer: str | None = None
    rank: int | None = None
    ema: bool | None = None
    sampling: bool | None = None
    preview_side: int | None = None
    factors: str | None = None
    first_fix: str | None = None
    fit: str | None = None
    from_date: str | None = None
    until_date: str | None = None
    torch: str | None = None
    hours: float | None = None
    hours_lost: float | None = None
    cause: str | None = None
    exception: str | None = None
    place: str | None = None
    fingerprint: str | None = None
    bytes: int | None = None
    lines: int | None = None
    retries: list[Retry] = []


def shown_name(name: str, longest: int = MAX_TEXT) -> str:
    """A path or a part of one as the tables show it: on one line, nothing that acts; of what would show nothing at all
    (bytes that are no UTF-8, as file systems have them), its code."""
    try:
        text = os.fsencode(name).decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        text = name
    return printable(text)[:longest] or ascii(name)[1:-1][:longest]


def row_of(run: str, path: str, analysis: Analysis, knowledge: Knowledge, history: Sequence[Analysis] = ()) -> Row:
    """The row of `analysis`, with what its report would say; `history` are the job's attempts, oldest first, where it
    had several."""
    diagnosis, told, memory = analysis.diagnosis, run_of(analysis), memory_of(analysis)
    known_as = identity(analysis, knowledge)
    facts = diagnosis.facts
    known = analysis.config.known
    capacity = memory.gpu_total or analysis.card.capacity
    return Row(
        run=shown_name(run),
        path=shown_name(path, MAX_PATH),
        status="analysed",
        attempt=analysis.attempt.index,
        attempts=len(analysis.attempts),
        job=_text(told.job_name),
        trainer=told.trainer,
        family=told.family,
        arch=_text(told.arch),
        card_gib=card_class_gib(capacity) if capacity else None,
        outcome=told.outcome,
        kind=diagnosis.kind,
        resource=diagnosis.resource,
        class_=diagnosis.class_,
        phase=diagnosis.phase,
        step=diagnosis.step,
        last_completed_step=told.last_completed_step,
        total=told.total_steps,
        confidence=diagnosis.confidence,
        signature=diagnosis.signature,
        request_mib=memory.tried_to_allocate,
        capacity_mib=memory.gpu_total,
        allocated_mib=memory.pytorch_allocated,
        skipped_steps=sum(one.caught and one.phase == "training_step" for one in analysis.attempt.ooms[:MAX_OOMS]),
        batch_size=_number(facts.get("job.batch_size")),
        resolutions=_resolutions(analysis) if known else None,
        num_frames=_number(facts.get("job.num_frames")),
        gradient_checkpointing=_switch(analysis, "train.gradient_checkpointing"),
        quantization=_quantization(analysis) if known else None,
        low_vram=_switch(analysis, "model.low_vram"),
        layer_offloading=_switch(analysis, "model.layer_offloading"),
        text_encoder=_text_encoder(facts) if known else None,
        latents_on_disk=facts.get("job.latents_on_disk") if known else None,
        optimizer=_name(analysis.config.get("train.optimizer")) if known else None,
        rank=_number(facts.get("job.rank")),
        ema=_switch(analysis, "train.ema_config.use_ema"),
        sampling=bool(facts.get("job.samples")) if known else None,
        preview_side=_number(facts.get("job.preview_side")) if known else None,
        factors=" ".join(sorted(factor.id for factor in diagnosis.factors)) or None,
        first_fix=analysis.suggestions[0].id if analysis.suggestions else None,
        fit=analysis.suggestions[0].fits if analysis.suggestions else None,
        from_date=told.dated.from_ if told.dated else None,
        until_date=told.dated.until if told.dated else None,
        torch=told.torch.from_ if told.torch else None,
        hours=_hours(analysis),
        hours_lost=_hours_lost(analysis, told),
        cause=(known_as.cause or known_as.mechanism) if known_as else None,
        exception=known_as.error if known_as else None,
        place=known_as.place if known_as else None,
        fingerprint=known_as.fingerprint if known_as else None,
        bytes=analysis.scanned.bytes,
        lines=analysis.scanned.lines,
        retries=retries(history, knowledge),
    )


def retries(history: Sequence[Analysis], knowledge: Knowledge) -> list[Retry]:
    """For each failed attempt that another followed: which of its fixes that had, and did it get past the failure."""
    found: list[Retry] = []
    for failing, later in pairwise(history):
        if failing.diagnosis.kind not in MEMORY or not later.config.known:
            continue
        name, passed = fingerprint(failing, knowledge) or "", reach(failing, later).verdict == "passed"
        for index, fix in enumerate(failing.suggestions):
            applied = bool(fix.changes) and all(_applied(change, later) for change in fix.changes)
            if applied or (index == 0 and fix.changes):
                found.append(Retry(name, fix.id, applied, passed))
    return found


def _applied(change: ConfigChange, later: Analysis) -> bool:
    """Whether the next attempt has the value that was advised, or went further the same way."""
    have = later.config.get(change.path)
    if have == change.after:
        return True
    before, after, now = _number(change.before), _number(change.after), _number(have)
    if before is None or after is None or now is None:
        return False
    return now <= after < before if after < before else now >= after > before


def _text(text: LogText | None) -> str | None:
    return terminal(text, MAX_TEXT) if text is not None else None


def _name(value: Any) -> str | None:
    return printable(value)[:80] if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53 else None


def _switch(analysis: Analysis, path: str) -> bool | None:
    value = analysis.config.get(path) if analysis.config.known else None
    return value if isinstance(value, bool) else None


def _resolutions(analysis: Analysis) -> str | None:
    sides: set[int] = set()
    for path, value in analysis.config.values.items():
        if path.startswith("datasets[") and path.endswith("].resolution"):
            given = value.value if isinstance(value.value, list) else [value.value]
            sides.update(side for side in given if _number(side) is not None)
    return ",".join(str(side) for side in sorted(sides)[:20]) or None


def _quantization(analysis: Analysis) -> str | None:
    if not analysis.config.get("model.quantize"):
        return "none"
    return _name(analysis.config.get("model.qtype")) or "quantized"


def _text_encoder(facts: Any) -> str:
    if facts.get("job.te_cached"):
        return "cached"
    return "resident" if facts.get("job.te_resident") else "unloaded"


def _hours(analysis: Analysis) -> float | None:
    """What the attempt took: by the lines' own times, else the steps done at the bar's pace."""
    pace, attempt = analysis.attempt.pace, analysis.attempt
    seconds = pace.whole_s
    if seconds is None and pace.bar_step_s is not None:
        seconds = pace.bar_step_s * attempt.good_steps
    return round(seconds / 3600, 4) if seconds is not None else None


def _hours_lost(analysis: Analysis, told: Run) -> float | None:
    """What of the attempt's time is lost: all that no checkpoint keeps; None where the log does not tell.

    A run that went on lost the steps that it dropped, one that paged memory what the slow steps cost on top.
    """
    kind, attempt = analysis.diagnosis.kind, analysis.attempt
    hours = _hours(analysis)
    if kind == "none" or hours is None:
        return None
    times = attempt.step_times
    if kind == "vram_spill":
        return round(times.lost_s / 3600, 4) if times is not None else None
    ooms = sum(oom.phase == "training_step" for oom in attempt.ooms)
    if attempt.end.outcome not in ("failed", "killed"):
        step_s = analysis.attempt.pace.bar_step_s
        return round(ooms * step_s / 3600, 4) if step_s is not None and ooms else None
    done, safe = attempt.good_steps + ooms, told.safe_step
    if safe is None and any(warning.id == "checkpoint_missing" for warning in analysis.warnings):
        safe = told.last_saved_step  # saved, and since moved; or the folder is a copy without it
    kept = min(max(0, safe - attempt.start_step), done) if safe is not None else 0
    return round(hours * (1 - kept / done), 4) if done else hours
