"""The card as a sum that adds up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.diagnosis.memory import KEYS
from postmortem.vram import card_class_gib, ledger, next_card_gib

SIZES = st.one_of(st.none(), st.floats(0, 300_000, allow_nan=False))


@given(st.fixed_dictionaries(dict.fromkeys(KEYS, SIZES)))
def test_the_parts_never_exceed_what_there_is(memory: dict[str, float | None]) -> None:
    balance = ledger(memory)
    for name in ("non_pytorch", "unexplained", "shortage"):
        value = getattr(balance, name)
        assert value is None or value >= 0
    if balance.unexplained is not None and balance.overdrawn is None and balance.capacity is not None:
        parts = (
            *(balance.other_processes, balance.non_pytorch, balance.allocated, balance.reserved_unallocated),
            *(balance.free, balance.unexplained),
        )
        assert sum(part or 0.0 for part in parts) >= balance.capacity - 0.01


def test_a_message_that_balances() -> None:
    balance = ledger(
        {
            "tried_to_allocate": 512.0,
            "gpu_total": 24207.36,
            "free": 188.6,
            "process_in_use": 23961.6,
            "pytorch_allocated": 23347.2,
            "reserved_unallocated": 240.3,
        }
    )
    assert balance.non_pytorch == pytest.approx(374.1)
    assert balance.unexplained == pytest.approx(57.16)
    assert balance.shortage == pytest.approx(323.4)
    assert balance.overdrawn is None


def test_a_spilled_card_is_short_by_what_was_moved_too() -> None:
    balance = ledger(
        {
            "tried_to_allocate": 72.0,
            "gpu_total": 24565.76,
            "free": 0.0,
            "pytorch_allocated": 38512.64,
            "reserved_unallocated": 512.33,
        }
    )
    assert balance.overdrawn == pytest.approx(14459.21)
    assert balance.shortage == pytest.approx(14531.21)
    assert balance.unexplained == 0


@pytest.mark.parametrize(
    ("gib", "sold"),
    [
        (11.99, 12),
        (31.36, 32),
        (31.84, 32),
        (23.65, 24),
        (15.77, 16),
        (79.15, 80),
        (139.8, 141),
        (47.44, 48),
        (3.0, None),
    ],
)
def test_card_classes(gib: float, sold: int | None) -> None:
    assert card_class_gib(gib * 1024) == sold


@pytest.mark.parametrize(
    ("torch_gib", "sold_gb"),
    [
        (11.99, 12),
        (31.36, 32),
        (31.84, 32),
        (23.64, 24),
        (4.75, 5),
        (9.75, 10),
        (19.5, 20),
        (39.39, 40),
        (79.1, 80),
        (2.9, None),
    ],
)
def test_card_classes_and_slices(torch_gib: float, sold_gb: int | None) -> None:
    assert card_class_gib(torch_gib * 1024) == sold_gb


def test_the_next_card_is_one_that_can_be_bought() -> None:
    assert next_card_gib(17 * 1024) == 20
    assert next_card_gib(33 * 1024) == 40
    assert next_card_gib(1000 * 1024) is None
