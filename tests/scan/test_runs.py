"""Bars taken together say what they say one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.scan import Lexicon, scan
from postmortem.scan.segments import Cutter, Region
from tests.simulate import bar, config, head, training

NEVER = 1 << 62
NAMES = ("mugs", "mugs2", "50% mugs", "Generating Images", "", "OOM during training step")
PREFIXES = ("", "2026-02-03T04:05:{:02d}.123456789Z ", "[12:00:{:02d}] ", "2026-02-03 04:05:{:02d} [INFO] ")
RATES = (" 2.00s/it", " 1.85it/s", "12.00s/it", "     ?s/it", " 2.0]s/it", " 2,00s/it", " 2.00s|it")
GLUED = ("", "", "", "  ", "\x1b[A", "Error running job: CUDA out of memory", " and more", "\nSaving at step 4\n")


def log_of(seed: int) -> str:
    """A log of bars in which anything may change at any draw, mostly nothing but the digits."""
    roll = random.Random(seed)
    out = [head(config())] if roll.random() < 0.5 else []
    name, prefix, end = roll.choice(NAMES), roll.choice(PREFIXES), roll.choice(("\r", "\r", "\n", "\r\n"))
    total, n, clock, doubled = roll.choice((40, 900, 99_999)), roll.choice((0, 0, 95)), 0, roll.random() < 0.2
    postfix = ""
    uneven = roll.choice(((), (), (1, 100, "1:00"), ("", ",", "9]9")))
    rare = roll.choice((0.002, 0.02, 0.2))
    for _ in range(roll.randrange(30, 400)):
        if roll.random() < rare:
            name = roll.choice(NAMES)
        if roll.random() < rare:
            total = roll.choice((40, 900, 99_999))
        if roll.random() < rare:
            n = roll.choice((0, n, max(0, n - 1), n + 2))
        step = roll.random()
        if step > rare:
            postfix = f", lr: 1.0e-04 loss: {roll.randrange(1000, 9999) / 1000:.3f}e-01"
        drawn = [bar(name, n, total, clock, postfix), bar(name, n + 1, total, clock, postfix)]
        left = roll.choice((10, 99, *uneven))
        guess = roll.choice(RATES[:2]) if roll.random() > rare else roll.choice(RATES)
        for draw in drawn[1:] if step < rare else drawn:
            draw = draw.replace("10:00,  2.00s/it", f"{left}:00, {guess}")
            text = prefix.format(clock % 60) + draw[1:] + (roll.choice(GLUED) if roll.random() < rare else "")
            out += [("\r" if end == "\r" else "") + text + ("" if end == "\r" else end)] * (2 if doubled else 1)
        n += 1
        clock += 2
        if roll.random() < rare:
            out.append(
                roll.choice(("Error running job: no\n", "\n", "# OOM during training step, skipping batch 1/3 #\n"))
            )
    return "".join(out)


@given(st.integers(0, 10**9), st.integers(1, 60_000))
@settings(deadline=None)
def test_together_or_one_by_one(lexicon: Lexicon, seed: int, size: int) -> None:
    data = log_of(seed).encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    one_by_one = scan([data], lexicon, bulk_from=NEVER)
    assert scan([data], lexicon, bulk_from=0) == one_by_one
    assert scan(chunks, lexicon, bulk_from=0) == one_by_one


@pytest.mark.parametrize("seed", range(3))
def test_a_run_takes_most_of_an_even_log(lexicon: Lexicon, seed: int) -> None:
    """Else the test above would prove nothing."""
    skipped = set(random.Random(seed).sample(range(100, 900), 30))
    data = training(900, skipped, buffered=True).encode()
    cutter = Cutter(lexicon.bars, bulk_from=0)
    pieces = [*cutter.feed(data), *cutter.finish()]
    rows = sum(piece.rows for piece in pieces if not isinstance(piece, tuple | Region))
    assert rows > 0.9 * data.count(b"%|")
    span = next(item for item in scan([data], lexicon, bulk_from=0).items)
    assert {n for start, end in span.unproven for n in range(start, end)} == skipped  # type: ignore[union-attr]
