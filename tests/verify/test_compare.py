"""Labels and lists of two reports."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.verify.compare import ABSENT, Labels, equal, pairs


def differing(sent: Any, found: Any) -> list[tuple[str, Any, Any]]:
    return [(pair.path, pair.sent, pair.found) for pair in pairs(sent, found, "", Labels()) if not pair.same]


def test_labels_may_be_numbered_otherwise_but_must_tell_the_same_apart() -> None:
    assert not differing(["<user-1> <user-2>", "<user-1>"], ["<user-2> <user-1>", "<user-2>"])
    assert differing(["<user-1>", "<user-1>"], ["<user-1>", "<user-2>"])
    assert differing(["<user-1>", "<user-2>"], ["<user-1>", "<user-1>"])
    assert differing(["<user-1>"], ["<path-1>"])
    assert differing(["<user-1> a"], ["<user-2> b"])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, 0, False),
        ("1", 1, False),
        (0.1 + 0.2, 0.3, True),
        (300.0, 300.1, False),
        (2**62, 2**62 + 1.0, True),
    ],
)
def test_a_truth_value_is_no_number(one: Any, other: Any, same: bool) -> None:
    assert equal(one, other, Labels()) is same


def test_of_lists_that_are_not_as_long_only_what_is_new_or_gone_differs() -> None:
    rows = [{"id": name, "value": at} for at, name in enumerate("abcd")]
    assert differing(rows[:1] + rows[2:], rows) == [("[]", ABSENT, rows[1])]
    assert differing([*rows, {"id": "e"}], rows) == [("[4]", {"id": "e"}, ABSENT)]
    changed = [rows[0], {"id": "c", "value": 9}, rows[3]]
    assert differing(changed, rows) == [("[1].value", 9, 2), ("[]", ABSENT, rows[1])]


def test_a_key_with_dots_stands_in_brackets() -> None:
    assert differing({"a": {"x.y": 1}}, {"a": {"x.y": 2}}) == [("a[x.y]", 1, 2)]
