"""What a row says beyond the report: the hours lost, and what became of fixes in later attempts."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.fleet.find import find
from postmortem.fleet.row import Row
from postmortem.fleet.work import work
from postmortem.scan import Lexicon
from tests.simulate import ABORT, RESULT, config, finished, head, training

HOUR = 3600
SAVED = "\nSaving at step {0}\nSaved checkpoint to output/mugs/mugs_{0:09d}.safetensors\nSaved optimizer to output/mugs/optimizer.pt\n"


def row(folder: Path, lexicon: Lexicon, log: str, *older: str) -> Row:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "log.txt").write_text(log)
    for number, text in enumerate(older):
        (folder / "logs").mkdir(exist_ok=True)
        (folder / "logs" / f"{number}_log.txt").write_text(text)
    (target,) = find([folder.parent])
    return work(target, lexicon).row


def test_without_a_checkpoint_all_is_lost(tmp_path: Path, lexicon: Lexicon) -> None:
    found = row(tmp_path / "a", lexicon, head(config()) + training(400, {100, 101, 102, 103}))
    assert found.hours == found.hours_lost == pytest.approx(100 * 2 / HOUR, abs=1e-3)


def test_what_a_checkpoint_keeps_is_not_lost(tmp_path: Path, lexicon: Lexicon) -> None:
    log = (
        head(config()) + training(400, [], until=51) + SAVED.format(50) + training(400, {100, 101, 102, 103}, start=51)
    )
    found = row(tmp_path / "a", lexicon, log)
    assert found.step == 103 and found.hours is not None
    assert found.hours_lost == pytest.approx(found.hours * (1 - 50 / 104), rel=0.03)


def test_a_run_that_went_on_lost_the_dropped_steps(tmp_path: Path, lexicon: Lexicon) -> None:
    found = row(tmp_path / "a", lexicon, head(config()) + training(400, {50, 120, 300}) + finished())
    assert found.outcome == "completed_with_skips"
    assert found.hours_lost == pytest.approx(3 * 2 / HOUR, abs=1e-4)


def test_what_did_not_fail_or_tells_no_time_lost_nothing_known(tmp_path: Path, lexicon: Lexicon) -> None:
    assert row(tmp_path / "a", lexicon, head(config()) + training(400, []) + finished()).hours_lost is None
    message = f"Error running job: {ABORT}\n{RESULT}"
    assert row(tmp_path / "b" / "c", lexicon, head(config()) + message).hours_lost is None


@pytest.mark.parametrize(
    ("after", "applied"),
    [(2, True), (1, True), (4, False), (3, False)],
    ids=["as advised", "further", "not", "not enough"],
)
def test_a_fix_counts_as_applied_also_where_the_user_went_further(
    tmp_path: Path, lexicon: Lexicon, after: int, applied: bool
) -> None:
    before = head(config(train__batch_size=4)) + training(400, {0, 1, 2, 3})
    later = head(config(train__batch_size=after)) + training(40, []) + finished()
    found = row(tmp_path / "job", lexicon, later, before)
    first = found.retries[0]
    assert (first.fix, first.applied) == ("reduce_batch_size", applied)


def test_a_later_fix_that_was_taken_is_told_too(tmp_path: Path, lexicon: Lexicon) -> None:
    before = head(config(train__batch_size=4)) + training(400, {0, 1, 2, 3})
    lower = config(train__batch_size=4, datasets__resolution=[512, 768])
    found = row(tmp_path / "job", lexicon, head(lower) + training(40, []) + finished(), before)
    assert [(retry.fix, retry.applied, retry.passed) for retry in found.retries] == [
        ("reduce_batch_size", False, True),
        ("drop_largest_resolution", True, True),
    ]
