"""A second witness for skipped steps: what a database beside the log says, against what the bar says."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.model import Attempt, Notice


def confirm(attempt: Attempt, skipped: Sequence[int] | None) -> Attempt:
    """`attempt` with its skipped steps taken from the witness where the bar could not place them.

    Where both know them, agreement is noted, and so is the opposite: then the log's word stands.
    """
    banners = [oom for oom in attempt.ooms if oom.caught and oom.phase == "training_step"]
    if not skipped or not banners:
        return attempt
    end = attempt.last_bar if attempt.last_bar is not None else max(skipped)
    here = [step for step in skipped if attempt.start_step <= step <= end]
    placed = [oom.step for oom in banners]
    if attempt.skips_confirmed:
        # the database has no row for the first step of a run, and may not have been flushed for the last ones
        agrees = set(here) <= {step for step in placed if step is not None}
        note = Notice("loss_log_agrees" if agrees else "loss_log_differs", None, {"count": len(here)})
        return msgspec.structs.replace(attempt, warnings=(*attempt.warnings, note))
    if len(here) != len(banners):
        return attempt
    steps = iter(here)
    ooms = tuple(
        msgspec.structs.replace(oom, step=next(steps)) if oom.caught and oom.phase == "training_step" else oom
        for oom in attempt.ooms
    )
    note = Notice("loss_log_steps", None, {"count": len(here)})
    return msgspec.structs.replace(attempt, ooms=ooms, skips_confirmed=True, warnings=(*attempt.warnings, note))
