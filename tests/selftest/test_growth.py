"""What `patterns test` says of slow expressions; the clock is one that counts characters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from postmortem.knowledge import safety
from postmortem.knowledge.schema import Knowledge
from postmortem.selftest import growth


def with_clock(monkeypatch: pytest.MonkeyPatch, time_of: Callable[[int], float]) -> list[str]:
    """Let a line take what its length says; the lines that were tried."""
    tried: list[str] = []

    def fastest(search: Any, line: str) -> float:
        tried.append(line)
        return time_of(len(line))

    monkeypatch.setattr(growth, "_fastest", fastest)
    return tried


ONE = growth.Tried("my.entry", "regex", "no room for [^x]*x", False, safety.LONGEST, ("no room for x",))


def test_linear_time_is_fine_however_slow_the_machine_is(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = with_clock(monkeypatch, lambda size: size * 1e-4)
    assert growth.measured(ONE) is None
    assert max(map(len, tried)) >= safety.LONGEST - 100
    assert any(line.startswith("no room for a") and line.endswith("\x00") for line in tried)
    assert any(line.count(ONE.examples[0]) > 100 for line in tried)


def test_more_than_linear_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with_clock(monkeypatch, lambda size: (size / 10_000) ** 2)
    told = growth.measured(ONE)
    assert told is not None
    assert "no room for" in told


def test_what_never_ends_is_tried_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = with_clock(monkeypatch, lambda size: 5.0)
    assert growth.measured(ONE) is not None
    assert len(tried) == 1


def test_a_slow_entry_is_named_and_not_tried(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = with_clock(monkeypatch, lambda size: 0.0)
    slow = msgspec.structs.replace(knowledge.patterns[0], regex="(a+)+b", fields={})
    one = msgspec.structs.replace(knowledge, patterns=(slow,), redactions=())
    (told,) = growth.problems(one)
    assert told.startswith(f"{slow.id}: regex: can take exponential time on a line that repeats 'a'")
    assert not any("aaaaaaaa" in line for line in tried)


def test_every_expression_is_looked_at(knowledge: Knowledge) -> None:
    assert {one.entry for one in growth.expressions(knowledge)} == {entry.id for entry in knowledge.patterns}
    assert {one.entry for one in growth.redactions(knowledge)} == {entry.id for entry in knowledge.redactions}
