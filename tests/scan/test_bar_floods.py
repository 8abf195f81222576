"""Floods of bars: what comes last is read, and how much was passed over is said."""

from __future__ import annotations

import os
from random import Random
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postmortem.model import BarSpan, Event
from postmortem.scan import Lexicon, drawing, items, scan, scanner
from postmortem.scan.bars import Fold
from postmortem.scan.drawing import LATE, MAX_IN_A_ROW
from tests.conftest import Analyse
from tests.scan.draws import TEXTS
from tests.simulate import ABORT, BANNER, bar, config, finished, head, training
from tests.test_equal import differs
from tests.ways import CUTTINGS, MODES, anyhow, scanned

MANY = MAX_IN_A_ROW + 3 * LATE
COUNT = int(os.environ.get("LAWS_N", "60"))


def others(count: int) -> str:
    """Bars each of a new name, drawn once."""
    return "".join(bar(f"part {number}", 9, 20, 9, "") for number in range(count))


def spans(log: str, lexicon: Lexicon) -> list[BarSpan]:
    return [item for item in scan([log.encode()], lexicon).items if isinstance(item, BarSpan)]


def test_what_comes_last_in_a_flood_of_bars_is_read(lexicon: Lexicon) -> None:
    found = spans(others(MANY), lexicon)
    assert [span.description.reveal() for span in found[-LATE:]] == [f"part {n}" for n in range(MANY - LATE, MANY)]


def test_all_that_was_passed_over_is_counted(lexicon: Lexicon) -> None:
    found = scan([others(MANY).encode()], lexicon)
    (notice,) = (notice for notice in found.warnings if notice.id == "too_many_events")
    assert notice.values["count"] == MANY - len(found.items)


def test_no_flood_of_bars_costs_a_reading_of_each(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = mock.Mock(side_effect=Fold.draw, autospec=True)
    monkeypatch.setattr(Fold, "draw", lambda *values: drawn(*values))
    scan([others(10 * MAX_IN_A_ROW).encode()], lexicon)
    assert drawn.call_count <= MAX_IN_A_ROW + LATE + 2


def test_steps_between_events_are_no_flood(lexicon: Lexicon) -> None:
    rows = "".join(
        bar("mugs", 50 * n, 10**6, 9, "") + bar("Generating Images", 1, 4, 1, "") + "Saving at step 1\n"
        for n in range(1, 2000)
    )
    found = scan([rows.encode()], lexicon)
    assert sum(item.description.reveal() == "mugs" for item in found.items if isinstance(item, BarSpan)) > 400
    assert isinstance(found.items[-1], Event)


def test_a_run_that_fails_behind_a_flood_of_bars_is_told(run: Analyse) -> None:
    log = head(config()) + others(MANY) + "\n" + training(40, []) + f"\nError running job: {ABORT}\n"
    analysis = run(log)
    assert (analysis.diagnosis.outcome, analysis.diagnosis.kind) == ("failed", "gpu_oom")
    assert analysis.attempts[-1].last_completed_step == 39


def test_and_one_that_ends_well(run: Analyse) -> None:
    assert run(head(config()) + others(MANY) + "\n" + training(40, []) + finished()).diagnosis.kind == "none"


def test_steps_skipped_without_end_are_counted_and_the_last_is_kept(lexicon: Lexicon) -> None:
    rows = [f"{BANNER.format(1)}{bar('mugs', number, 10**6, 9, '')}\n" for number in range(40)]
    few = mock.patch.multiple(items, MAX_SKIPS=6, MAX_ALIKE=6, MAX_SPANS=6)
    with few, mock.patch.multiple(drawing, MAX_IN_A_ROW=8, LATE=4):
        found = scan(["".join(rows).encode()], lexicon)
    skips = [item for item in found.items if isinstance(item, Event)]
    lines = [n for n, row in enumerate("".join(rows).split("\n"), 1) if "OOM during" in row]
    assert [skip.place.line for skip in skips[-2:]] == lines[-2:]
    assert isinstance(found.items[-1], BarSpan)
    assert found.items[-1].last_n == 39
    (notice,) = found.warnings
    assert 0 < notice.values["count"] < 80


def kinds(seed: int, count: int) -> str:
    """Draws of a few names and texts that repeat, in any order: what floods of bars are mixed of."""
    random = Random(seed)
    texts = random.sample(TEXTS, 3)
    weights = [8, *(random.choice((0, 0.1, 1, 8)) for _ in texts)]
    rows = []
    for number in range(count):
        kind = random.choices(range(4), weights)[0]
        name = random.choice(("mugs", "mugs", "Generating Images", f"part {number}"))
        rows.append(texts[kind - 1] if kind else bar(name, random.choice((number, 5)), 9999, number, ""))
    return "".join(rows)


@given(
    st.integers(0, 1 << 30),
    st.sampled_from(["", head(config())]),
    st.sampled_from([(3, 2), (8, 3), (8, 9), (25, 7)]),
    st.integers(1, 9),
)
@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_flood_says_the_same_however_it_is_read(seed: int, before: str, bounds: tuple[int, int], alike: int) -> None:
    data = (before + kinds(seed, 150)).encode()
    row, late = bounds
    with (
        mock.patch.multiple(drawing, MAX_IN_A_ROW=row, LATE=late),
        mock.patch.multiple(items, MAX_ALIKE=alike, MAX_SKIPS=alike),
        mock.patch.multiple(scanner, PATIENCE=2),
    ):
        plain = scanned(data, MODES[0], CUTTINGS["one piece"])
        for mode in MODES:
            for cutting in (CUTTINGS["one piece"], anyhow):
                assert not differs(plain, scanned(data, mode, cutting)), mode.name
        with mock.patch.object(scanner.Scanner, "_count_line", return_value=False):
            assert not differs(plain, scanned(data, MODES[0], anyhow)), "each line read"
        with mock.patch.object(scanner, "PATIENCE", 1 << 30):
            assert not differs(plain, scanned(data, MODES[0], anyhow)), "no flood of text"
