"""Steps that became slow: where the driver can spill, where it cannot, and what is no slowdown at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from postmortem.pipeline import Analysis
from tests.conftest import Analyse
from tests.simulate import bar, config, finished, head

WINDOWS, LINUX, WSL = "D:\\sets\\mugs", "/home/user/mugs", "/mnt/d/sets/mugs"


def steps(seconds: Callable[[int], float], count: int) -> str:
    """A bar whose step k takes `seconds(k)`."""
    clock, out = 0.0, [bar("mugs", 0, 2000, 0, "")]
    for step in range(count):
        clock += seconds(step)
        postfix = f", lr: 1.0e-04 loss: {0.3 + step / 100000:.5f}"
        out += [bar("mugs", n, 2000, round(clock), postfix) for n in (step, step + 1)]
    return "".join(out) + "\n"


def slow(run: Analyse, folder: str, factor: float, *, done: bool = False) -> Analysis:
    settings = config(datasets__folder_path=folder)
    log = head(settings) + steps(lambda step: 4 * (factor if step >= 60 else 1), 110)
    return run(log.replace("/2000", "/110") + finished() if done else log)


def ids(analysis: Analysis) -> set[str]:
    return {item.id for item in analysis.warnings}


@pytest.mark.parametrize(("folder", "factor"), [(WINDOWS, 3.5), (WINDOWS, 20), (WSL, 5)])
def test_a_spill_needs_a_driver_that_spills(run: Analyse, folder: str, factor: float) -> None:
    found = slow(run, folder, factor)
    assert (found.diagnosis.kind, found.diagnosis.resource, found.diagnosis.confidence) == (
        "vram_spill",
        "vram",
        "medium",
    )
    assert found.diagnosis.step == 60
    cost = next(item for item in found.warnings if item.id == "spill_cost")
    assert cost.values["hours"] == pytest.approx(50 * 4 * (factor - 1) / 3600, abs=0.06)


def test_linux_gives_an_oom_and_does_not_spill(run: Analyse) -> None:
    found = slow(run, LINUX, 20)
    assert (found.diagnosis.kind, found.diagnosis.class_) == ("unknown", None)
    assert {"slowdown", "slowdown_cannot_spill"} <= ids(found)
    assert "disable_sysmem_fallback" not in {item.id for item in found.suggestions}


def test_a_run_that_completed_slowly_did_not_fail(run: Analyse) -> None:
    found = slow(run, WINDOWS, 5, done=True)
    assert found.diagnosis.kind == "none"
    assert {"slowdown", "slowdown_can_spill"} <= ids(found)


def test_buckets_that_alternate_are_no_change(run: Analyse) -> None:
    """Three resolutions in random order: one in three steps is eight times slower, early and late alike."""
    mixed = run(head(config(datasets__folder_path=WINDOWS)) + steps(lambda step: 8 if step * 7 % 3 == 0 else 1, 400))
    assert mixed.attempt.step_times is None
    assert mixed.attempt.slow_stretch is None


def test_slow_first_steps_are_no_slowdown(run: Analyse) -> None:
    """Compiling takes minutes, then the steps are fast."""
    compiled = run(head(config(datasets__folder_path=WINDOWS)) + steps(lambda step: 200 if step < 6 else 2, 300))
    assert compiled.attempt.step_times is None
    assert compiled.attempt.slow_stretch is None


def test_a_slow_stretch_that_passed_has_a_cost(run: Analyse) -> None:
    found = run(head(config(datasets__folder_path=WINDOWS)) + steps(lambda step: 60 if 100 <= step < 140 else 2, 300))
    stretch = found.attempt.slow_stretch
    assert stretch is not None
    assert 95 <= stretch.from_step <= 102  # draws are sampled
    assert 138 <= stretch.to_step <= 142
    assert stretch.lost_s == pytest.approx(40 * 58, rel=0.1)
    assert "slow_stretch" in ids(found)
    assert found.diagnosis.kind == "unknown"


def test_a_mild_slowdown_says_nothing(run: Analyse) -> None:
    assert slow(run, WINDOWS, 1.8).attempt.step_times is None


def retried(run: Analyse, folder: str, factor: float, *, after: int = 30, **changes: object) -> Analysis:
    """A run at 4 s a step, stopped by the user, and its retry, slower by `factor` from its first step on."""
    first = head(config(datasets__folder_path=folder)) + steps(lambda step: 4, 60) + "\n====\nJob stopped\n====\n"
    return run(first + head(config(datasets__folder_path=folder, **changes)) + steps(lambda step: 4 * factor, after))


def test_a_retry_that_is_slow_from_its_first_step(run: Analyse) -> None:
    found = retried(run, WINDOWS, 12, train__steps=4000)
    assert (found.diagnosis.kind, found.diagnosis.step) == ("vram_spill", 0)
    assert found.attempt.step_times is not None
    assert found.attempt.step_times.factor == pytest.approx(12, rel=0.1)


def test_a_retry_whose_pace_proves_nothing(run: Analyse) -> None:
    # other settings, a pace that is no collapse, too few steps, a driver that does not spill
    assert retried(run, WINDOWS, 12, train__batch_size=8).diagnosis.kind == "unknown"
    assert retried(run, WINDOWS, 3).diagnosis.kind == "unknown"
    assert retried(run, WINDOWS, 12, after=6).diagnosis.kind == "unknown"
    assert retried(run, LINUX, 12).diagnosis.kind == "unknown"
