"""Over generated runs whose truth is known, a report says nothing but the truth."""

from __future__ import annotations

import pytest

from postmortem.knowledge.schema import Knowledge
from tests.conftest import Analyse
from tests.generate import FAILURES, MEMORY_KINDS, NO_MEMORY, draw, make, write
from tests.generate.counts import SEEDS, batch_name
from tests.truths import as_json, differences


@pytest.mark.parametrize("seeds", SEEDS, ids=batch_name)
def test_the_report_says_the_truth(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    wrong = {}
    for seed in seeds:
        case = make(seed)
        found = differences(case, as_json(run(case.log), knowledge))
        if found:
            wrong[case.id] = found
    assert not wrong


@pytest.mark.parametrize("seeds", SEEDS, ids=batch_name)
def test_no_memory_failure_is_claimed_where_there_is_none(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    for seed in seeds:
        case = write(draw(seed, NO_MEMORY))
        report = as_json(run(case.log), knowledge)
        assert report["failure"]["kind"] not in MEMORY_KINDS, case.id
        assert (report["remedies"], report["oom_events"]) == ([], []), case.id


def test_a_seed_always_gives_one_log() -> None:
    assert [make(seed) for seed in range(60)] == [make(seed) for seed in range(60)]


def test_every_failure_capture_and_era_is_generated() -> None:
    plans = [draw(seed) for seed in range(400)]
    assert {plan.failure for plan in plans} == set(FAILURES)
    assert len({(plan.mode, plan.era, plan.family) for plan in plans}) > 100
    sizes = [len(make(seed).log) for seed in range(60)]
    assert 4_000 < sum(sizes) / len(sizes) < 30_000
    assert max(sizes) < 60_000
