"""An attempt that is slow from its first step on, told by an earlier attempt of the same job with the same settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import msgspec

from postmortem.model import Attempt, StepTimes, Stretch
from postmortem.timeline.rates import COLLAPSE, MIN_SECONDS, STEADY, median

_MIN_STEPS = 10
"""Slow steps from which the pace of an attempt counts."""
_NO_PACE = ("save", "sample", "logging", "performance_log_every", "sqlite_db_path")
"""Sections of a process that do not decide how long a step takes."""


def against_earlier(attempt: Attempt, earlier: Sequence[Attempt]) -> Attempt:
    """`attempt` with the slowdown against the last of `earlier` that ran the same job, where all of it is slow.

    Each of its stretches must have been slower by COLLAPSE than what was usual then, and the settings that decide
    the pace must be known and the same.
    """
    if attempt.step_times is not None or not attempt.stretches or attempt.main_bar_place is None:
        return attempt
    before = next((one for one in reversed(earlier) if one.stretches and _same_job(one, attempt)), None)
    if before is None or before.step_times is not None or _steps(before.stretches) < STEADY:
        return attempt
    usual = median([stretch.step_s for stretch in before.stretches])
    steps = _steps(attempt.stretches)
    spent = fsum(_steps([stretch]) * stretch.step_s for stretch in attempt.stretches)
    if usual <= 0 or steps < _MIN_STEPS or spent < MIN_SECONDS:
        return attempt
    if min(stretch.step_s for stretch in attempt.stretches) < COLLAPSE * usual:
        return attempt
    slow = StepTimes(
        usual,
        spent / steps,
        attempt.stretches[0].first_step,
        attempt.main_bar_place,
        attempt.main_bar_text,
        attempt.stretches[-1].last_step,
        spent - steps * usual,
        lasting=True,
    )
    return msgspec.structs.replace(attempt, step_times=slow)


def _steps(stretches: Sequence[Stretch]) -> int:
    return sum(stretch.last_step - stretch.first_step + 1 for stretch in stretches)


def _same_job(one: Attempt, other: Attempt) -> bool:
    names = [attempt.job_name.reveal() if attempt.job_name else None for attempt in (one, other)]
    mine, theirs = _pace(one), _pace(other)
    return names[0] == names[1] and names[0] is not None and mine is not None and mine == theirs


def _pace(attempt: Attempt) -> dict[str, Any] | None:
    """The settings of an attempt that decide how long its steps take; None where its log does not hold them."""
    given = attempt.dump.value if attempt.dump else None
    if given is None:
        return None
    kept = {key: value for key, value in given.items() if key not in _NO_PACE}
    train = kept.get("train")
    if isinstance(train, Mapping):
        kept["train"] = {key: value for key, value in train.items() if key != "steps"}
    return kept
