"""The fuzzers' targets hold for their first inputs, and for all that once broke one (tests/fuzz/found)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.seeds import FOUND, OF, seeds, words
from tests.fuzz.targets import TARGETS

FINDINGS = sorted(path for path in FOUND.rglob("*") if path.is_file())


def test_every_target_has_seeds() -> None:
    assert OF.keys() == TARGETS.keys()
    assert {path.parent.name for path in FINDINGS} <= TARGETS.keys()
    assert len(set(words())) > 300


@pytest.mark.parametrize("name", TARGETS)
def test_the_first_inputs_break_nothing(name: str) -> None:
    some = list(seeds(name))
    assert len(some) >= 5
    for data in some[:: max(1, len(some) // 60)]:
        TARGETS[name](data)


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke_a_promise_breaks_none(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())
