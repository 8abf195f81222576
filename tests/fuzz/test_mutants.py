"""No mutated log breaks a promise: a few in each run of the suite, as many as wanted with `make mutants N=100000`."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.forms import LESS, SAME
from tests.fuzz import checks
from tests.fuzz.mutants import mutants

COUNT = int(os.environ.get("MUTANTS_N", "120"))
BATCH = min(500, -(-COUNT // 2))
FORMS = {**SAME, **LESS}


def _formed(name: str, text: str) -> bytes | None:
    """The text in a form; None where the form was made for whole logs and cannot be given to a torn one."""
    try:
        return FORMS[name](text)
    except Exception:
        return None


@pytest.mark.parametrize("batch", range(-(-COUNT // BATCH)))
def test_a_mutant_breaks_no_promise(batch: int) -> None:
    @seed(batch)
    @settings(
        max_examples=BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(mutants(), st.integers(1, 9000), st.integers(0, 7))
    def law(data: bytes, size: int, turn: int) -> None:
        whole = checks.check_log(data, whole=turn == 0, lang="ko" if turn == 1 else "en")
        if turn % 2:
            checks.check_chunks(data, (size, 1 + size // 7))
        if turn == 2:
            checks.check_input(data)
        if turn == 4:
            formed = _formed(sorted(FORMS)[size % len(FORMS)], data.decode("utf-8", "replace"))
            if formed is not None:
                checks.check_input(formed)
        if turn == 6:
            assert checks.check_log(data) == whole  # nothing is remembered from one log to the next

    law()
