"""When a run counts as over, over every kind of witness, without a second of waiting."""

from __future__ import annotations

import pytest

from postmortem.fleet.watch.state import Change, Hint, LogStat, Move, Pace, Process, Run

PACE = Pace(interval_s=2.0, quiet_s=1800.0)
NEVER = float("inf")


def log(size: int = 100, inode: int = 7, path: str = "log.txt", mtime: int = 1) -> LogStat:
    return LogStat(path, inode, size, mtime)


def seen(*, at: float = 0.0, age: float = 0.0) -> Run:
    run = Run()
    assert run.see(log(), at, age) is Change.FIRST
    return run


def test_a_growing_log_is_not_even_opened() -> None:
    run = seen()
    for poll in range(1, 50):
        assert run.see(log(100 + poll), 2.0 * poll) is Change.GREW
        assert run.move(2.0 * poll, PACE) is Move.WAIT


def test_a_still_log_is_looked_at_once_and_its_witnesses_asked_now_and_then() -> None:
    run = seen()
    assert run.move(3.9, PACE) is Move.WAIT
    assert run.move(4.0, PACE) is Move.TAIL
    run.hint = Hint.OPEN
    assert run.move(4.0, PACE) is Move.ASK
    run.answer(Process.UNKNOWN, None, 4.0)
    assert run.move(4.0, PACE) is Move.WAIT
    assert run.see(log(), 6.0) is Change.NONE
    assert run.move(6.0, PACE) is Move.WAIT
    assert run.move(8.0, PACE) is Move.ASK


def patience(hint: Hint, process: Process, job: str | None) -> float:
    run = seen()
    run.hint = hint
    run.answer(process, job, 0.0)
    return run.patience_s(PACE)


@pytest.mark.parametrize(
    ("hint", "process", "job", "seconds"),
    [
        # the log says that it is over
        (Hint.ENDED, Process.UNKNOWN, None, 4),
        (Hint.ENDED, Process.GONE, "running", 4),
        # … and its process is still on its way out
        (Hint.ENDED, Process.ALIVE, None, 30),
        # an error that the program may survive: its process settles it
        (Hint.ERROR, Process.GONE, None, 4),
        (Hint.ERROR, Process.UNKNOWN, None, 20),
        (Hint.ERROR, Process.ALIVE, None, NEVER),
        # the log ends without a word
        (Hint.OPEN, Process.GONE, None, 20),
        (Hint.OPEN, Process.UNKNOWN, None, 1800),
        (Hint.OPEN, Process.ALIVE, None, NEVER),
        (Hint.DONE, Process.UNKNOWN, None, 60),
        (Hint.DONE, Process.ALIVE, None, NEVER),
        (Hint.DONE, Process.GONE, None, 4),
        # the UI's word
        (Hint.OPEN, Process.UNKNOWN, "error", 4),
        (Hint.OPEN, Process.GONE, "error", 4),
        (Hint.OPEN, Process.UNKNOWN, "stopped", 20),
        (Hint.OPEN, Process.ALIVE, "error", NEVER),
        # it runs in a container whose numbers are not ours
        (Hint.OPEN, Process.GONE, "running", 1800),
    ],
)
def test_how_long_a_still_log_is_given(hint: Hint, process: Process, job: str | None, seconds: float) -> None:
    assert patience(hint, process, job) == seconds


def test_a_process_that_writes_after_its_death_is_another_one() -> None:
    run = seen()
    run.hint = Hint.OPEN
    run.answer(Process.GONE, None, 4.0)
    assert run.see(log(150), 6.0) is Change.GREW  # the UI's line on how it ended
    assert not run.pid_lies
    run.hint = Hint.OPEN
    run.answer(Process.GONE, None, 10.0)
    assert run.see(log(200), 60.0) is Change.GREW
    run.hint = Hint.OPEN
    run.answer(Process.GONE, None, 64.0)
    assert run.patience_s(PACE) == 1800


def test_what_the_ui_says_of_another_run_is_dropped() -> None:
    run = seen()
    run.hint = Hint.OPEN
    run.job_lies = True
    run.answer(Process.UNKNOWN, "error", 4.0)
    assert run.patience_s(PACE) == 1800


@pytest.mark.parametrize(("hint", "at"), [(Hint.ENDED, 50.0), (Hint.OPEN, 58.0)])
def test_a_log_that_is_old_at_first_sight_is_judged_at_once_or_after_a_few_looks(hint: Hint, at: float) -> None:
    run = seen(at=50.0, age=86400.0)
    assert run.move(50.0, PACE) is Move.TAIL
    run.hint = hint
    judged = []
    for now in (50.0, 52.0, 54.0, 56.0, 58.0):
        run.answer(Process.UNKNOWN, None, now)
        if run.move(now, PACE) is Move.JUDGE:
            judged.append(now)
    assert judged[0] == at


def test_a_file_time_in_the_future_is_no_age() -> None:
    run = seen(at=50.0, age=-86400.0)
    assert run.still_since == 50.0


def test_settled_stays_settled_until_the_log_changes() -> None:
    run = seen()
    run.settle()
    assert run.move(1e6, PACE) is Move.WAIT
    assert run.see(log(101), 1e6) is Change.GREW
    assert run.move(1e6 + 4, PACE) is Move.TAIL


def test_rotation_is_a_new_attempt_and_a_rename_alone_is_none() -> None:
    run = seen()
    assert run.see(log(path="logs/0_log.txt"), 2.0) is Change.NONE
    assert run.see(log(10, inode=8), 4.0) is Change.REPLACED
    assert run.replaced


def test_truncation_is_a_new_attempt() -> None:
    run = seen()
    assert run.see(log(20), 2.0) is Change.REPLACED


def test_a_log_that_is_away_for_a_moment() -> None:
    run = seen()
    assert run.see(None, 2.0) is Change.LOST
    assert run.see(None, 4.0) is Change.NONE
    assert run.move(100.0, PACE) is Move.WAIT
    assert run.see(log(), 102.0) is Change.NONE
    assert run.see(None, 104.0) is Change.LOST
    assert run.see(log(10, inode=9), 106.0) is Change.REPLACED


def test_a_single_pass_stays_only_for_what_is_due_soon() -> None:
    run = seen()
    assert run.soon(0.0, PACE)
    run.hint = Hint.OPEN
    run.answer(Process.UNKNOWN, None, 4.0)
    assert not run.soon(4.0, PACE)
    run.answer(Process.GONE, None, 4.0)
    assert run.soon(4.0, PACE)
    run.settle()
    assert not run.soon(4.0, PACE)
