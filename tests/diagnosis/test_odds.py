"""Which bucket fails, weighed exactly against the epochs that were drawn."""

from __future__ import annotations

from collections import Counter
from math import comb
from typing import Any

import pytest

from postmortem.diagnosis.classify import bucket_odds
from postmortem.diagnosis.odds import weigh
from postmortem.model import Bucket, BucketOdds
from postmortem.text import LogText


def rows(table: dict[str, int], batch: int = 1) -> tuple[BucketOdds, ...]:
    buckets = []
    for line, (label, files) in enumerate(table.items(), 1):
        width, height = label.split("x")
        buckets.append(Bucket(LogText("/data"), int(width), int(height), 1, files, 1, line))
    return bucket_odds(buckets, batch)


TABLE = rows({"512x512": 40, "768x768": 57, "1024x1536": 3})


def test_three_skips_of_a_small_bucket_leave_no_other() -> None:
    """All three batches of an epoch of 100 and nothing in the 31 after it: only the largest gives that."""
    found = weigh(TABLE, [5, 60, 99], 0, 131)
    assert found is not None
    assert (found.label, found.fits, found.always) == ("1024x1536", True, True)
    assert found.share == pytest.approx(0.03)
    assert found.odds > 0.98


def test_more_failures_in_an_epoch_than_batches_rule_a_bucket_out() -> None:
    found = weigh(TABLE, [1, 2, 3, 4], 0, 50)
    assert found is not None
    assert found.label is None
    assert [row.bucket.label for row in found.best] != ["1024x1536"]
    # the same number over two epochs is no contradiction
    other = weigh(TABLE, [1, 50, 99, 150], 0, 160)
    assert other is not None
    assert [row.bucket.label for row in other.best] == ["1024x1536"]


def test_a_few_failures_in_part_of_an_epoch_say_little() -> None:
    found = weigh(rows({"512x512": 30, "768x768": 4, "1024x1024": 3, "1152x896": 3}), [4, 7], 0, 20)
    assert found is not None
    assert found.label is None
    assert found.fitting > 1


def test_a_single_failure_names_no_bucket() -> None:
    found = weigh(TABLE, [5], 0, 20)
    assert found is not None
    assert found.label is None


def test_too_many_for_any_group_of_the_largest() -> None:
    found = weigh(rows({"512x512": 90, "1024x1024": 10}), list(range(40)), 0, 80)
    assert found is not None
    assert not found.fits


def test_odds_of_larger_shapes_are_never_smaller_than_of_the_set_that_needs_them() -> None:
    found = weigh(rows({"512x512": 20, "768x768": 10, "1024x1024": 5}), [3, 9, 20, 30, 33], 0, 35)
    assert found is not None
    by_label = {row.bucket.label: row.odds for row in found.rows}
    assert by_label["1024x1024"] == pytest.approx(1.0, abs=0.02)
    assert (by_label["512x512"] or 0) < 0.02


def test_the_share_of_a_part_of_an_epoch_is_hypergeometric() -> None:
    """Two shapes, 10 of 20 batches drawn, 2 of the 3 large ones failed: exact likelihoods, worked out by hand."""
    found = weigh(rows({"512x512": 17, "1024x1024": 3}), [0, 1], 0, 10)
    assert found is not None
    met = [comb(3, k) * comb(17, 10 - k) / comb(20, 10) for k in range(4)]
    always, sometimes = met[2], met[2] / 3 + met[3] / 4
    large = 0.75 * always + 0.25 * sometimes
    all_shapes = 0.25 / 11  # ten batches were drawn of "all shapes, sometimes"
    lone = 0.1 * (0.75 * 0.0 + 0.25 * sum(comb(17, k) * comb(3, 10 - k) / comb(20, 10) / (k + 1) for k in range(7, 11)))
    assert found.odds == pytest.approx(large / (large + all_shapes + lone))


def test_accumulation_draws_several_batches_a_step() -> None:
    table = rows({"512x512": 95, "1024x1024": 5})
    one, four = (weigh(table, [2, 5, 9, 12], 0, 20, per_step) for per_step in (1, 4))
    assert one is not None and four is not None
    # 4 in 20 batches are too many for a share of 5 %, 4 in 20 steps of 4 batches are not
    assert (one.fits, four.fits) == (False, True)


def test_unknown_steps_are_counted_over_all_epochs() -> None:
    found = weigh(TABLE, [None, None, None, None], 0, 160)
    assert found is not None
    assert found.fits
    assert weigh(TABLE, [], 0, 100) is None
    assert weigh(rows({"1024x1024": 5}), [1], 0, 100) is None


def test_absurd_numbers_in_a_log_cost_no_time() -> None:
    """Every number is a stranger's: a table with billions of files, a bar that counts to a million million."""
    table = rows({f"{16 * side}x1024": 10**9 + side for side in range(1, 40)})
    assert weigh(table, [3, 70, 900], 0, 10**12) is None
    found = weigh(table, [3, 70, 900], 0, 200_000)
    assert found is not None
    assert not found.fits  # three failures in so many steps are nobody's share
    assert weigh(rows({"512x512": 1, "1024x1024": 1}), [1, 5, 10**5], 0, 200_000) is not None


def counted(table: dict[str, int], failing: list[int | None], start: int, steps: int, per_step: int) -> dict[str, Any]:
    """The same by counting, as the module's docstring has it: every number of draws, in whole numbers."""
    sizes = {label: int(label.split("x")[0]) * int(label.split("x")[1]) for label in table}
    levels = sorted(set(sizes.values()), reverse=True)
    total, draws = sum(table.values()), steps * per_step
    whole, rest = divmod(draws, total)
    known = [step for step in failing if step is not None and step >= start]
    epochs = Counter((step - start) * per_step // total for step in known) if len(known) == len(failing) else None
    sets = [({one for one in table if sizes[one] >= level}, 1.0) for level in levels]
    sets += [({one for one in table if sizes[one] == level}, 0.2 / len(levels)) for level in levels[1:]]

    def judged(labels: set[str], prior: float) -> tuple[float, bool, bool]:
        held = sum(table[label] for label in labels)
        if per_step == 1:
            drawn = {
                whole * held + k: comb(held, k) * comb(total - held, rest - k) / comb(total, rest)
                for k in range(rest + 1)
            }
        else:
            p = 1 - comb(total - held, per_step) / comb(total, per_step) if per_step <= total else 1.0
            drawn = {k: comb(steps, k) * p**k * (1 - p) ** (steps - k) for k in range(steps + 1)}
        if epochs is not None and per_step == 1:
            possible = max(epochs.values()) <= held
        else:
            possible = len(failing) <= held * (whole + bool(rest))
        each = epochs is None or per_step > 1 or all(epochs[epoch] == held for epoch in range(whole))
        always = drawn.get(len(failing), 0.0) if possible and each and held < total else 0.0
        sometimes = sum(p / (n + 1) for n, p in drawn.items() if n >= len(failing)) if possible else 0.0
        more = sum(p for n, p in drawn.items() if n >= len(failing))
        less = sum(p for n, p in drawn.items() if n <= len(failing))
        mean = sum(n * p for n, p in drawn.items())
        fits = possible and more >= 0.05 and (less >= 0.05 or len(failing) >= 0.4 * mean)
        return prior * (0.75 * always + 0.25 * sometimes), fits, always > 0 and whole > 0

    found = [(labels, *judged(labels, prior)) for labels, prior in sets if sum(table[one] for one in labels) <= total]
    everything = sum(weight for _, weight, _, _ in found)
    ordinary = [one for one in found if sum(table[label] for label in one[0]) < total]
    best = max(ordinary, key=lambda one: one[1])
    return {
        "odds": best[1] / everything,
        "rows": {label: sum(one[1] for one in ordinary if label in one[0]) / everything for label in table},
        "fits": best[2] and best[1] / everything >= 0.2,
        "fitting": sum(one[2] for one in ordinary),
        "always": best[3],
        "best": best[0],
        "share": sum(table[label] for label in best[0]) / total,
        "label": best[0]
        if best[2] and best[1] / everything >= 0.9 and len(failing) > 1 and len(best[0]) == 1
        else None,
    }


TWO, THREE = {"512x512": 7, "1024x1024": 2}, {"512x512": 5, "768x768": 3, "1024x1024": 2}
EQUAL = {"512x512": 6, "1024x512": 2, "512x1024": 1, "1024x1024": 3}
"""Two shapes of one size stand or fall together."""


@pytest.mark.parametrize(
    ("table", "failing", "start", "steps", "per_step"),
    [
        (TWO, [0], 0, 1, 1),
        (TWO, [1, 8], 0, 9, 1),
        (TWO, [1, 8, 10], 0, 14, 1),
        (TWO, [1, 8, 10, 17], 0, 18, 1),
        (TWO, [1, 8, 10], 0, 18, 1),
        (TWO, [10, 17], 0, 18, 1),
        (TWO, [1, 8], 0, 18, 1),
        (TWO, [0, 2, 3], 0, 9, 1),
        (TWO, [0, 2, 3, 4, 5, 6, 7], 0, 9, 1),
        (TWO, [3, 4, 8, 9], 3, 12, 1),
        (TWO, [51, 58], 50, 9, 1),
        (TWO, [49, 58], 50, 9, 1),
        (TWO, [None, None, None], 0, 14, 1),
        (TWO, [None, 3], 0, 9, 1),
        (TWO, [None] * 5, 0, 18, 1),
        (TWO, [None] * 4, 0, 18, 1),
        (THREE, [2, 5, 11], 0, 17, 1),
        (THREE, [0, 3, 7, 8, 9], 0, 10, 1),
        (THREE, [0, 3, 7], 0, 10, 1),
        (THREE, [0, 3, 7, 8, 9, 12], 0, 16, 1),
        (THREE, [4], 0, 5, 1),
        (EQUAL, [0, 4, 7], 0, 12, 1),
        (EQUAL, [0, 4, 7, 9, 10, 11], 0, 12, 1),
        (EQUAL, [1, 2], 0, 30, 1),
        (TWO, [0, 3], 0, 4, 2),
        (TWO, [0, 3, 4], 0, 9, 4),
        (TWO, [0, 1, 2, 3, 4, 5], 0, 9, 4),
        (TWO, [None, None], 0, 4, 2),
        (THREE, [1, 2, 5, 9], 0, 14, 3),
        (THREE, [1, 2, 3, 4], 1, 4, 8),
        # more accumulated batches than the data set has: every step meets every shape
        (TWO, [0, 3], 0, 9, 9),
        (TWO, [0, 3], 0, 9, 16),
        (TWO, [0, 1, 2], 0, 3, 16),
        ({"512x512": 95, "1024x1024": 5}, [3, 40, 77], 0, 90, 1),
        ({"512x512": 95, "1024x1024": 5}, [3, 40, 77, 99, 120, 188, 190, 199], 0, 200, 1),
        ({"512x512": 60, "768x768": 30, "1024x1024": 10}, list(range(0, 80, 8)), 0, 100, 1),
        ({"512x512": 60, "768x768": 30, "1024x1024": 10}, list(range(0, 80, 2)), 0, 100, 1),
    ],
)
def test_as_counted_one_by_one(
    table: dict[str, int], failing: list[int | None], start: int, steps: int, per_step: int
) -> None:
    found, want = weigh(rows(table), failing, start, steps, per_step), counted(table, failing, start, steps, per_step)
    assert found is not None
    assert (found.failures, found.steps) == (len(failing), steps)
    assert found.odds == pytest.approx(want["odds"])
    assert {row.bucket.label: row.odds for row in found.rows} == pytest.approx(want["rows"])
    assert [row.bucket for row in found.rows] == [row.bucket for row in rows(table)]
    assert {row.bucket.label for row in found.best} == want["best"]
    assert found.share == pytest.approx(want["share"])
    assert (found.fits, found.fitting, found.always) == (want["fits"], want["fitting"], want["always"])
    assert ({found.label} if found.label else None) == want["label"]


def shapes(count: int) -> tuple[BucketOdds, ...]:
    return rows({f"{16 * side}x1024": 1 for side in range(1, count + 1)})


@pytest.mark.parametrize(
    ("table", "steps", "per_step", "weighed"),
    [
        (shapes(80), 9, 1, True),
        (shapes(81), 9, 1, False),
        (shapes(2), 9, 1, True),
        (shapes(1), 9, 1, False),
        (shapes(2), 2, 1, True),
        (shapes(2), 1, 1, False),  # more failures than steps
        (shapes(2), 200_000, 1, True),
        (shapes(2), 200_001, 1, False),
        (shapes(2), 100_000, 2, True),
        (shapes(2), 100_001, 2, False),
        # more than a thousand accumulated batches are a number out of a log
        (shapes(2), 200, 10**9, True),
        (shapes(2), 201, 10**9, False),
    ],
)
def test_what_is_too_much_to_weigh(table: tuple[BucketOdds, ...], steps: int, per_step: int, weighed: bool) -> None:
    assert (weigh(table, [0, 1], 0, steps, per_step) is not None) is weighed


def test_accumulation_of_nothing_is_one_batch_a_step() -> None:
    assert weigh(rows(TWO), [1, 8], 0, 9, 0) == weigh(rows(TWO), [1, 8], 0, 9, 1)


def test_steps_that_fail_more_often_than_they_can_are_nobody_s() -> None:
    found = weigh(shapes(2), [1, 1, 1], 0, 5)
    assert found is not None
    assert (found.best, found.odds, found.fits, found.fitting, found.label) == ((), 0.0, False, 0, None)
    assert [row.odds for row in found.rows] == [0.0, 0.0]
