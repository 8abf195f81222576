"""Which bucket fails, weighed exactly against the epochs that were drawn."""

from __future__ import annotations

from math import comb

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
