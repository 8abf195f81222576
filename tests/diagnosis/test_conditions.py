"""The condition language: three values, no surprises."""

from __future__ import annotations

import pytest

from postmortem.diagnosis.conditions import ConditionError, all_hold, holds

FACTS = {"a": 3, "b": True, "c": "zimage", "d": None, "e": 3, "failure.class": None, "failure.kind": "gpu_oom"}


@pytest.mark.parametrize(
    ("condition", "result"),
    [
        ("a = 3", True),
        ("a > 3", False),
        ("a >= @e", True),
        ("a < 10.5", True),
        ("b = true", True),
        ("b = false", False),
        ("c in [flux, zimage]", True),
        ("c not in [flux]", True),
        ("c > 3", None),
        ("d = 1", None),
        ("missing != 1", None),
        ("a > @missing", None),
        ("known a", True),
        ("known d", False),
        ("unknown d", True),
        ("d = null", True),
        ("failure.class = sampling", False),
        ("failure.class != sampling", True),
        ("failure.kind in [host_oom, gpu_oom]", True),
    ],
)
def test_conditions(condition: str, result: bool | None) -> None:
    assert holds(condition, FACTS) is result


def test_an_unknown_condition_holds_only_where_the_rule_says_so() -> None:
    assert not all_hold(["a = 3", "missing > 1"], FACTS)
    assert all_hold(["a = 3", "missing > 1"], FACTS, unknown_ok=True)
    assert not all_hold(["a = 4", "missing > 1"], FACTS, unknown_ok=True)


@pytest.mark.parametrize("condition", ["", "a", "a ==", "a in 3", "1 +"])
def test_what_is_no_condition(condition: str) -> None:
    with pytest.raises(ConditionError):
        holds(condition, FACTS)
