"""A job of several processes: the config is that of the one at work, or unknown where nothing tells which it was."""

from __future__ import annotations

import json

from tests.conftest import Analyse
from tests.simulate import config, finished, head, training

FIRST = config(train__batch_size=4, train__steps=60)
SECOND = config(train__batch_size=1, train__steps=60)
OOM = "Error running job: CUDA out of memory. Tried to allocate 2.00 GiB\n"
LOADS = "Loading ZImage model\nLoading transformer\n"


def two(first: dict[str, object] = FIRST, second: dict[str, object] = SECOND) -> str:
    """The head of a job of two processes."""
    one = head(first).replace("Running  1 process", "Running  2 processes")
    return one.replace("\n\n####", f"\n{json.dumps(second, indent=4)}\n\n####", 1)


def test_the_first_process_is_at_work_until_its_bar_is_full(run: Analyse) -> None:
    analysis = run(two() + training(60, [], until=20) + "\n" + OOM)
    assert len(analysis.attempts) == 1
    assert analysis.config.get("train.batch_size") == 4
    assert analysis.config.values["train.batch_size"].line is not None


def test_a_process_that_never_trained_is_the_first(run: Analyse) -> None:
    assert run(two() + OOM).config.get("train.batch_size") == 4


def test_the_second_loads_after_the_first_is_done(run: Analyse) -> None:
    analysis = run(two() + training(60, []) + finished() + LOADS + OOM)
    assert analysis.config.get("train.batch_size") == 1


def test_the_second_trains_after_the_first_is_done(run: Analyse) -> None:
    analysis = run(two() + training(60, []) + finished() + LOADS + training(60, [], until=20) + "\n" + OOM)
    assert analysis.config.get("train.batch_size") == 1


def test_between_two_processes_what_differs_is_unknown(run: Analyse) -> None:
    analysis = run(two() + training(60, []) + finished() + OOM)
    assert analysis.config.get("train.batch_size") is None
    assert analysis.config.get("train.gradient_checkpointing") is True
    notice = next(notice for notice in analysis.warnings if notice.id == "processes_differ")
    assert notice.values["settings"] == "train.batch_size"


def test_a_process_that_trains_nothing_may_be_any(run: Analyse) -> None:
    analysis = run(two({**FIRST, "type": "extract_lora"}) + OOM)
    assert analysis.config.get("train.batch_size") is None


def test_the_total_of_the_bar_tells_the_process_where_a_part_of_the_log_is_missing(run: Analyse) -> None:
    second = config(train__batch_size=1, train__steps=80)
    assert run(two(second=second) + training(80, [], until=20) + "\n" + OOM).config.get("train.batch_size") == 1
