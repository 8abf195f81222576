"""How long things took, by the times in front of the lines."""

from __future__ import annotations

import pytest

from postmortem.model import Stamp
from postmortem.text import LogText
from postmortem.timeline.clock import elapsed
from tests.conftest import Analyse
from tests.simulate import bar, config, head

STEPS = [f", lr: 1.0e-04 loss: {0.3 + step / 1000:.3f}" for step in range(100)]


def stamp(seconds: float, kind: str = "clock") -> Stamp:
    return Stamp(seconds, kind, LogText(""))


def test_a_clock_that_passes_midnight_goes_on() -> None:
    times = [stamp(86_390), stamp(10), None, stamp(20), stamp(86_000), stamp(5)]
    assert elapsed(times, times[0]) == [0, 20, None, 30, 86_010, 86_415]


def test_times_of_another_kind_are_not_compared() -> None:
    assert elapsed([stamp(50, "uptime"), stamp(70)], stamp(60)) == [None, 10]


def stamped(steps: int, *, wall: float, clock: float, last: str | None = None) -> str:
    """A log with one draw a line, each `wall` seconds after the one before; `clock` is what the bar counts a step."""
    lines = [f"2026-02-03T00:00:00Z {line}" for line in head(config()).split("\n")]
    for step in range(steps):
        seconds = round(100 + wall * (step + 1))
        at = f"2026-02-03T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z "
        for n in (step, step + 1):
            lines.append(at + bar("mugs", n, 400, round(clock * (step + 1)), STEPS[step])[1:])
    return "\n".join([*lines, *([last] if last else [])]) + "\n"


def test_a_log_that_stood_still_before_it_ended(run: Analyse) -> None:
    found = run(stamped(50, wall=2, clock=2, last="2026-02-03T00:43:20Z Killed"))
    assert found.attempt.pace.silent_s == pytest.approx(2600 - 200)
    notice = next(item for item in found.warnings if item.id == "stood_still")
    assert notice.values == {"minutes": 40}


def test_steps_by_two_clocks(run: Analyse) -> None:
    same, slower = run(stamped(50, wall=2, clock=2)), run(stamped(50, wall=6, clock=2))
    assert (same.attempt.pace.bar_step_s, same.attempt.pace.wall_step_s) == (2, 2)
    assert (slower.attempt.pace.bar_step_s, slower.attempt.pace.wall_step_s) == (2, 6)
    assert "wall_slower" not in {item.id for item in same.warnings}
    assert "wall_slower" in {item.id for item in slower.warnings}


def test_phases_take_the_time_until_the_next(run: Analyse) -> None:
    text = (
        "[10:00:00] Running 1 job\n[10:00:05] Running  1 process\n[10:00:10] Loading ZImage model\n"
        "[10:01:10] Caching latents for /data\n[10:01:40] Error running job: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    )
    pace = run(text).attempt.pace
    assert dict(pace.phases) == {"model_load": 60, "cache_latents": 30}
    assert pace.whole_s == 100


def test_without_times_nothing_is_said(run: Analyse) -> None:
    pace = run(head(config())).attempt.pace
    assert (pace.whole_s, pace.phases, pace.silent_s, pace.wall_step_s) == (None, (), None, None)
