"""Groups: their order, the facts that set them apart, what helped; and the fixes over all."""

from __future__ import annotations

from math import comb

import pytest

from postmortem.fleet.facts import Fact, _chance
from postmortem.fleet.groups import fixes_of
from postmortem.fleet.row import Retry, Row
from postmortem.fleet.table import frame
from postmortem.knowledge.schema import Knowledge
from tests.fleet.rows import dead, fine, grouped

HEALTHY = [fine(number, gradient_checkpointing=number >= 2) for number in range(40)]


def test_a_fact_counts_the_group_against_those_that_did_not_fail(knowledge: Knowledge) -> None:
    sick = [dead(number, gradient_checkpointing=number == 0) for number in range(12)]
    (group,) = grouped([*sick, *HEALTHY], knowledge)
    assert group.facts[0] == Fact("gradient_checkpointing", "=", False, 11, 12, 2, 40, True)


def test_what_most_healthy_runs_share_too_is_no_fact(knowledge: Knowledge) -> None:
    healthy = [fine(number, low_vram=number % 3 != 0) for number in range(40)]
    sick = [dead(number, low_vram=True, gradient_checkpointing=True) for number in range(12)]
    (group,) = grouped([*sick, *healthy], knowledge)
    assert [fact.column for fact in group.facts] == ["family"] or group.facts == []
    assert "low_vram" not in [fact.column for fact in group.facts]


@pytest.mark.parametrize("sick", [1, 2])
def test_so_few_runs_share_nothing(knowledge: Knowledge, sick: int) -> None:
    (group,) = grouped([*(dead(number) for number in range(sick)), *HEALTHY], knowledge)
    assert group.facts == []


def test_with_few_healthy_runs_nothing_is_told_apart(knowledge: Knowledge) -> None:
    (group,) = grouped([*(dead(number) for number in range(30)), *HEALTHY[2:9]], knowledge)
    assert group.facts == []


def test_chance_is_no_fact(knowledge: Knowledge) -> None:
    healthy = [fine(number, ema=number % 4 == 0) for number in range(40)]
    sick = [dead(number, ema=number < 3, gradient_checkpointing=True, family=None) for number in range(5)]
    (group,) = grouped([*sick, *healthy], knowledge)
    assert group.facts == []


def test_runs_whose_logs_do_not_tell_are_not_counted(knowledge: Knowledge) -> None:
    sick = [dead(number, gradient_checkpointing=None if number < 3 else False) for number in range(12)]
    (group,) = grouped([*sick, *HEALTHY], knowledge)
    assert (group.facts[0].runs, group.facts[0].of) == (9, 9)
    silent = [dead(number, gradient_checkpointing=None if number < 8 else False) for number in range(12)]
    (group,) = grouped([*silent, *HEALTHY], knowledge)
    assert "gradient_checkpointing" not in [fact.column for fact in group.facts]


def test_a_number_is_a_side_and_not_one_value(knowledge: Knowledge) -> None:
    sick = [
        dead(number, batch_size=(2, 4, 8)[number % 3], first_fix="reduce_batch_size", gradient_checkpointing=True)
        for number in range(12)
    ]
    (group,) = grouped([*sick, *HEALTHY], knowledge)
    fact = group.facts[0]
    assert (fact.column, fact.relation, fact.value, fact.runs, fact.others, fact.fixed) == (
        *("batch_size", ">=", 2, 12, 0),
        True,
    )


def test_what_the_first_fix_changes_comes_first(knowledge: Knowledge) -> None:
    healthy = [fine(number, gradient_checkpointing=number >= 8, family="SDXL") for number in range(40)]
    (group,) = grouped([*(dead(number) for number in range(12)), *healthy], knowledge)
    assert [fact.column for fact in group.facts] == ["gradient_checkpointing", "family"]


def test_the_largest_resolution_is_the_one_that_counts(knowledge: Knowledge) -> None:
    healthy = [fine(number, resolutions="512,768") for number in range(40)]
    sick = [
        dead(number, resolutions="512,1536" if number % 2 else "1024", first_fix="drop_largest_resolution")
        for number in range(12)
    ]
    (group,) = grouped([*sick, *healthy], knowledge)
    assert (group.facts[0].column, group.facts[0].relation, group.facts[0].value) == ("max_resolution", ">=", 1024)


def test_the_chance_is_fishers() -> None:
    def exact(runs: int, of: int, others: int, others_of: int) -> float:
        having, total = runs + others, of + others_of
        ways = sum(comb(having, hit) * comb(total - having, of - hit) for hit in range(runs, min(of, having) + 1))
        return ways / comb(total, of)

    for numbers in [(5, 5, 1, 20), (3, 10, 2, 40), (44, 44, 2, 310), (0, 4, 3, 9), (4, 4, 9, 9)]:
        assert _chance(*numbers) == pytest.approx(exact(*numbers), rel=1e-6)


def other(number: int, hours: float | None) -> Row:
    return dead(
        number,
        class_="sampling",
        phase="mid_sampling",
        first_fix="shrink_preview",
        fingerprint="b" * 16,
        hours_lost=hours,
    )


def test_groups_are_ranked_by_runs_or_by_hours(knowledge: Knowledge) -> None:
    rows = [*(dead(number, hours_lost=0.1) for number in range(5)), *(other(number, 9.0) for number in range(5, 8))]
    assert [group.runs for group in grouped(rows, knowledge)] == [5, 3]
    assert [group.hours for group in grouped(rows, knowledge, "hours")] == [27.0, 0.5]


def test_hours_say_of_how_many_runs_they_are(knowledge: Knowledge) -> None:
    (group,) = grouped([other(1, 2.5), other(2, None), other(3, 0.5)], knowledge)
    assert (group.hours, group.timed, group.runs) == (3.0, 2, 3)
    (silent,) = grouped([other(1, None)], knowledge)
    assert silent.hours is None


def test_duplicates_and_what_was_not_read_count_for_nothing(knowledge: Knowledge) -> None:
    rows = [dead(1), dead(2, duplicate_of="dead_1"), Row(run="x", path="x", status="error", error="no")]
    (group,) = grouped(rows, knowledge)
    assert group.runs == 1


def test_the_order_of_rows_does_not_matter(knowledge: Knowledge) -> None:
    rows = [*(dead(number, family="SDXL" if number % 2 else "Wan 2.1") for number in range(12)), *HEALTHY]
    backwards = grouped(rows[::-1], knowledge)
    for one, two in zip(grouped(rows, knowledge), backwards, strict=True):
        assert (one.facts, one.families, one.fix, one.runs) == (two.facts, two.families, two.fix, two.runs)


def test_fixes_are_ranked_over_all_groups() -> None:
    tried = [Retry("a" * 16, "enable_gradient_checkpointing", True, number != 0) for number in range(3)]
    passed_over = [Retry("a" * 16, "enable_gradient_checkpointing", False, True)]
    rows = [
        *(dead(number) for number in range(4)),
        dead(8, fingerprint="c" * 16, class_="steady_training"),
        *(other(number, 5.0) for number in range(10, 13)),
        fine(20, retries=[*tried, *passed_over]),
        dead(21, first_fix=None, fingerprint="d" * 16),
    ]
    first, second = fixes_of(frame(rows), rows)
    assert (first.fix, first.runs, first.groups, first.tried, first.helped) == (
        *("enable_gradient_checkpointing", 5, 2),
        *(3, 2),
    )
    assert (second.fix, second.runs, second.hours) == ("shrink_preview", 3, 15.0)
    assert [fix.fix for fix in fixes_of(frame(rows), rows, "hours")] == [second.fix, first.fix]
