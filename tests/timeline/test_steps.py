"""Skipped steps are recovered exactly, whether banners come in place or in one lump at the end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Analyse
from tests.simulate import BANNER, bar, buckets, config, finished, head, training

START = head(config()) + buckets({"512x512": 20, "768x768": 10, "1024x1024": 6})


def runs_of_at_most_three(steps: set[int]) -> set[int]:
    kept: set[int] = set()
    for step in sorted(steps):
        if not {step - 1, step - 2, step - 3} <= kept:
            kept.add(step)
    return kept


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 59), max_size=25).map(runs_of_at_most_three), st.booleans())
def test_every_skip_of_a_run_that_lives(run: Analyse, skipped: set[int], buffered: bool) -> None:
    analysis = run(START + training(60, skipped, buffered=buffered) + finished())
    assert sorted(oom.step for oom in analysis.attempt.ooms if oom.step is not None) == sorted(skipped)
    assert analysis.attempt.good_steps == 60 - len(skipped)
    assert analysis.diagnosis.outcome == ("completed_with_skips" if skipped else "completed")


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 40), st.sets(st.integers(0, 30), max_size=6).map(runs_of_at_most_three), st.booleans())
def test_the_abort_comes_on_the_fourth_in_a_row(run: Analyse, first: int, earlier: set[int], buffered: bool) -> None:
    scattered = {step for step in earlier if step < first - 1}
    skipped = scattered | set(range(first, first + 4))
    analysis = run(START + training(60, skipped, buffered=buffered))
    assert [oom.step for oom in analysis.attempt.ooms] == sorted(skipped)
    assert analysis.diagnosis.step == first + 3
    assert analysis.diagnosis.kind == "gpu_oom"
    assert [oom.caught for oom in analysis.attempt.ooms] == [True] * (len(skipped) - 1) + [False]


def test_held_back_banners_are_noticed_and_said(run: Analyse) -> None:
    late = run(START + training(60, {5, 20}, buffered=True) + finished())
    prompt = run(START + training(60, {5, 20}, buffered=False) + finished())
    assert late.attempt.buffered
    assert not prompt.attempt.buffered
    assert "buffered_log" in [notice.id for notice in late.warnings]


def test_a_resumed_run_counts_good_steps_from_where_it_resumed(run: Analyse) -> None:
    resume = "#### IMPORTANT RESUMING FROM output/mugs/mugs_000000250.safetensors ####\nFound step 250 in metadata, starting from there\n"
    analysis = run(START + resume + training(400, {252, 253, 254, 255}, start=250))
    assert analysis.attempt.start_step == 250
    assert analysis.attempt.good_steps == 2
    assert (analysis.diagnosis.class_, analysis.diagnosis.step) == ("early_step", 255)


def test_a_thinned_out_bar_places_what_it_can(run: Analyse) -> None:
    log = START + training(60, {3, 40}, buffered=False) + finished()
    lines = [line for line in log.split("\n") if "mugs: " not in line]
    lines.insert(
        len(START.split("\n")), "mugs:  50%|#####     | 30/60 [01:00<01:00,  2.00s/it, lr: 1.0e-04 loss: 4.0e-01]"
    )
    analysis = run("\n".join(lines))
    assert {oom.step for oom in analysis.attempt.ooms} <= {None, 30, 31}
    assert not analysis.attempt.skips_confirmed


def test_banners_held_back_together_have_no_step_of_their_own(run: Analyse) -> None:
    """Where the bar was thinned out as well, only the step at the end is known."""
    bars = bar("mugs", 0, 40, 0, "").lstrip("\r") + "\n" + bar("mugs", 5, 40, 9, ", loss: 0.1").lstrip("\r") + "\n"
    lump = "".join(BANNER.format(count) for count in (1, 1, 2, 3))
    log = (
        head(config())
        + bars
        + lump
        + "Error running job: OOM during training step 3 times in a row, aborting training\n"
    )
    assert [oom.step for oom in run(log).attempt.ooms] == [None, None, None, None, 5]


def test_the_counters_of_a_row_tell_its_steps_where_the_bar_lags(run: Analyse) -> None:
    """A collector gave every draw a line of its own, and the bar was a count behind at the third banner."""
    bars = [bar("mugs", n, 40, n, ", loss: 0.1").lstrip("\r") + "\n" for n in (20, 21)]
    row = [BANNER.format(count) for count in (1, 2, 3)]
    abort = "Error running job: OOM during training step 3 times in a row, aborting training\n"
    log = head(config()) + bars[0] + row[0] + row[1] + bars[1] + row[2] + abort
    assert [oom.step for oom in run(log).attempt.ooms] == [20, 21, 22, 23]
    # a count of two far behind one of one belongs to another row
    far = bar("mugs", 35, 40, 70, ", loss: 0.2").lstrip("\r") + "\n"
    assert [oom.step for oom in run(head(config()) + bars[0] + row[0] + far + row[1]).attempt.ooms] == [20, 35]


def lagging(total: int, skipped: set[int], *, start: int = 0, until: int | None = None, quiet: bool = False) -> str:
    """Training before 2026-08-21: the bar shows the step just run. `quiet`: the UI's logger holds its moves back."""
    out = [bar("mugs", start, total, 0, "")]
    postfix, n = "", start
    for step in range(start, total if until is None else until):
        elapsed = 2 * (step - start + 1)
        if step in skipped:
            row = next(back for back in (1, 2, 3) if step - back not in skipped)
            out.append(BANNER.format(row))
        else:
            postfix = f", lr: 1.0e-04 loss: {0.3 + step / 100000:.5f}"
            out.append(bar("mugs", n, total, elapsed, postfix))
        n = step
        if not quiet or step == start:
            out.append(bar("mugs", n, total, elapsed, postfix))
    return "".join([*out, bar("mugs", n, total, elapsed, postfix)] if until is None else out)


@settings(max_examples=80, deadline=None)
@given(st.sets(st.integers(20, 30), max_size=6).map(runs_of_at_most_three), st.sampled_from([0, 20]), st.booleans())
def test_a_bar_that_lags_by_one_places_every_skip(run: Analyse, skipped: set[int], start: int, quiet: bool) -> None:
    shifted = {step - 20 + start for step in skipped}
    resume = f"Found step {start} in metadata, starting from there\n" if start else ""
    log = START + resume + lagging(start + 40, shifted, start=start, quiet=quiet)
    analysis = run(log + finished())
    assert [oom.step for oom in analysis.attempt.ooms] == sorted(shifted)
    assert analysis.attempt.good_steps == 40 - len(shifted)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.booleans())
def test_a_bar_that_lags_by_one_tells_the_step_of_death(run: Analyse, step: int, quiet: bool) -> None:
    error = "Error running job: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
    analysis = run(START + lagging(60, set(), until=step, quiet=quiet) + error)
    assert (analysis.diagnosis.step, analysis.attempt.good_steps) == (step, step)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.booleans())
def test_a_bar_that_lags_by_one_tells_the_four_of_an_abort(run: Analyse, first: int, quiet: bool) -> None:
    log = START + lagging(60, set(range(first, first + 3)), until=first + 3, quiet=quiet)
    analysis = run(f"{log}\nError running job: OOM during training step 3 times in a row, aborting training\n")
    assert [oom.step for oom in analysis.attempt.ooms] == list(range(first, first + 4))
    assert analysis.attempt.good_steps == first


def lagging_fast(total: int, skipped: set[int], *, every: int, seconds: float = 0.3, until: int | None = None) -> str:
    """The bar as it counted until August 2026: step k is drawn at k-1 when it ends well, then the bar goes to k."""
    out, postfix, streak = [bar("mugs", 0, total, 0, "")], "", 0
    for step in range(total if until is None else until):
        elapsed = int(seconds * (step + 1))
        if step in skipped:
            streak += 1
            out.append(BANNER.format(streak))
        else:
            streak = 0
            postfix = f", lr: 1.0e-04 loss: {0.3 + step / 100000:.5f}"
            out.append(bar("mugs", max(0, step - 1), total, elapsed, postfix))
        if step and step % every == 0:
            out.append(f"\nSaving at step {step}\nSaved checkpoint to output/mugs/mugs_{step:09d}.safetensors\n")
            out.append("\rGenerating Samples: 100%|##########| 2/2 [00:18<00:00,  9.11s/it]\n")
        else:
            out.append(bar("mugs", step, total, elapsed, postfix))
    return "".join(out)


CACHED = "".join(f"\rCaching latents to disk: {50 * n:3d}%|#####| {n}/2 [00:0{n}<00:01,  3.33it/s]" for n in range(3))


def test_a_first_step_dropped_within_a_second_is_no_bar_written_twice(run: Analyse) -> None:
    analysis = run(START + CACHED + "\n" + lagging_fast(40, {0, 13}, every=100) + finished())
    assert [oom.step for oom in analysis.attempt.ooms] == [0, 13]


def test_a_preview_under_a_lagging_bar_stands_in_the_step_after_its_count(run: Analyse) -> None:
    """The first of four failures is the step of the preview itself, not the one after it."""
    tail = "Error running job: OOM during training step 3 times in a row, aborting training\n"
    analysis = run(START + lagging_fast(80, {42, 43, 44}, every=14, seconds=2, until=45) + "\n" + tail)
    assert analysis.attempt.sample_steps == (14, 28, 42)
    assert [oom.step for oom in analysis.attempt.ooms] == [42, 43, 44, 45]
    assert analysis.diagnosis.class_ != "after_sampling"


def test_a_loss_that_is_no_number_hides_no_dropped_batch(run: Analyse) -> None:
    log = training(60, [], until=30)
    for step in range(30, 33):
        log += bar("mugs", step, 60, 2 * step, ", lr: 1.0e-04 loss: nan")
    assert run(START + log).diagnosis.kind == "unknown"


def test_a_long_row_without_a_sign_is_no_row_of_dropped_batches(run: Analyse) -> None:
    last = f", lr: 1.0e-04 loss: {0.3 + 29 / 100000:.5f}"
    log = training(60, [], until=30).rstrip("\n") + "".join(bar("mugs", n, 60, 2 * n, last) for n in range(31, 37))
    analysis = run(START + log)
    assert analysis.diagnosis.kind == "unknown"
    assert analysis.attempt.last_completed_step == 29


@settings(max_examples=40, deadline=None)
@given(st.integers(643, 690), st.booleans())
def test_a_save_tells_how_a_bar_counts_whose_start_is_missing(run: Analyse, first: int, lags: bool) -> None:
    """Only the end of a log is left. While step 640 is saved a bar stands at 640, before 2026-08-21 at 639."""
    draws = lagging if lags else training
    log = draws(900, set(range(first, first + 3)), start=600, until=first + 3)
    cut = log.rindex("\r", 0, log.index("| 605/900"))
    moves_on = log.rindex("\r", 0, log.index(f"| {640 if lags else 641}/900"))
    save = "\n\nSaving at step 640\nSaved checkpoint to /o/mugs/mugs_000000640.safetensors\n"
    end = "\nError running job: OOM during training step 3 times in a row, aborting training\n"
    analysis = run(log[cut:moves_on] + save + log[moves_on:] + end)
    assert [oom.step for oom in analysis.attempt.ooms] == list(range(first, first + 4))
    assert analysis.diagnosis.step == first + 3


def lines_of(log: str) -> str:
    """A log whose bar's draws stand on lines of their own, as a page or a console shows it."""
    return log.replace("\r", "\n")


@pytest.mark.parametrize(("thinned", "buffered"), [(False, False), (True, False), (False, True)])
def test_a_first_streak_of_a_bar_on_lines_of_its_own(run: Analyse, thinned: bool, buffered: bool) -> None:
    log = lines_of(head(config()) + training(400, {0, 1, 2, 3}, buffered=buffered))
    if thinned:  # only the first draw was kept
        log = "\n".join(line for line in log.split("\n") if "/400 [" not in line or " 0/400 [" in line)
    found = run(log)
    assert [oom.step for oom in found.attempt.ooms] == [0, 1, 2, 3]
