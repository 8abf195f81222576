"""Runs that start, die, rotate, resume, go quiet: what the watcher writes, and that it writes it once."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from postmortem.fleet.watch.stamp import parse
from postmortem.scan import Lexicon
from tests.fleet.watch.stage import (
    ALIVE,
    DIES,
    DIES_LATER,
    FINE,
    SKIPS,
    STOPPED,
    Stage,
    append,
    rotate,
    write,
)
from tests.simulate import config, head, training

NO_PID = 4_194_303
"""Above what Linux gives out by default on small machines; where it lives after all, the test is skipped."""


@pytest.fixture
def stage(tmp_path: Path, lexicon: Lexicon) -> Stage:
    (tmp_path / "runs").mkdir()
    return Stage(tmp_path / "runs", lexicon, tmp_path / "home")


def report(folder: Path, name: str = "postmortem.md") -> str:
    return (folder / name).read_text()


def gone(folder: Path) -> None:
    """The process that `pid.txt` names is gone."""
    try:
        os.kill(NO_PID, 0)
    except ProcessLookupError:
        (folder / "pid.txt").write_text(str(NO_PID))
    else:
        pytest.skip("the number is in use")


def test_a_run_that_dies_is_reported_within_seconds_and_once(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES[:2000])
    assert stage.after(30) == []
    append(run / "log.txt", DIES[2000:])
    assert stage.after(8) == ["failed"]
    assert "GPU out of memory in the first training steps" in report(run)
    (event,) = stage.events
    assert (event.kind, event.class_, event.step, event.attempt) == ("gpu_oom", "early_step", 3, 1)
    assert stage.after(7200) == []
    assert [values["report"] for values in stage.hooked] == [str(run / "postmortem.md")]


def test_a_restarted_watcher_writes_nothing_twice(stage: Stage) -> None:
    write(stage.root / "mugs" / "log.txt", DIES)
    stage.after(10)
    before = (stage.root / "mugs" / "postmortem.md").stat()
    same = (before.st_ino, before.st_mtime_ns)
    stage.home = None  # it does not even remember
    stage.start()
    assert stage.after(60) == []
    after = (stage.root / "mugs" / "postmortem.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == same
    assert len(stage.hooked) == 1


def test_a_live_run_with_dropped_batches_is_no_failure_until_it_ended(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", SKIPS[: SKIPS.index(" 30/40")])
    (run / "pid.txt").write_text(str(os.getpid()))
    assert stage.after(4000) == []
    write(run / "log.txt", SKIPS)
    gone(run)
    assert stage.after(30) == ["failed"]
    assert stage.events[0].outcome == "completed_with_skips"


def test_what_ended_well_or_by_the_users_hand_is_not_reported(stage: Stage) -> None:
    write(stage.root / "fine" / "log.txt", FINE)
    write(stage.root / "stopped" / "log.txt", STOPPED)
    write(stage.root / "notes.txt", "nothing that a trainer prints\n" * 200)
    assert stage.after(4000) == []
    assert not list(stage.root.rglob("postmortem*"))


def test_a_log_that_just_stops_counts_when_its_process_is_gone(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", ALIVE)
    gone(run)
    assert stage.after(16) == []
    assert stage.after(10) == ["failed"]
    assert stage.events[0].outcome == "incomplete"
    assert "The log just ends" in report(run)


def test_a_log_that_just_stops_counts_after_the_quiet_time_else(stage: Stage) -> None:
    write(stage.root / "mugs" / "log.txt", ALIVE)
    assert stage.after(1790) == []
    assert stage.after(20) == ["failed"]


def test_a_false_alarm_is_taken_back(stage: Stage) -> None:
    run = stage.root / "mugs"
    half = ALIVE.index(" 10/400")
    write(run / "log.txt", ALIVE[:half])
    assert stage.after(1810) == ["failed"]
    for at in range(half, half + 400, 100):
        append(run / "log.txt", ALIVE[at : at + 100])
        stage.after(2)
    assert "The log has grown since" in report(run)
    append(run / "log.txt", ALIVE[half + 400 :] + STOPPED[len(ALIVE) :])
    assert stage.after(10) == ["cleared"]
    assert not (run / "postmortem.md").exists()


def test_the_uis_last_line_after_a_report_changes_nothing(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    before = report(run)
    append(run / "log.txt", "\nJob process terminated with exit code 1.\n")
    assert stage.after(10) == []
    assert report(run) == before
    assert len(stage.hooked) == 1


def test_more_known_of_the_same_failure_changes_the_report(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", ALIVE)
    assert stage.after(1810) == ["failed"]
    append(run / "log.txt", "\nJob process terminated with signal SIGKILL.\n")
    assert stage.after(10) == ["changed"]
    assert stage.events[-1].outcome == "killed"
    assert "killed" in report(run)
    assert len(stage.hooked) == 1


def test_rotated_and_failed_differently(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    rotate(run)
    stage.after(2)
    write(run / "log.txt", DIES_LATER[:3000])
    stage.after(4)
    assert "A newer attempt has begun since." in report(run)
    write(run / "log.txt", DIES_LATER)
    assert stage.after(10) == ["failed"]
    text = report(run)
    assert "This report is on attempt 2 of this run." in text
    assert "newer" not in text.split("<!-- /note -->")[0]
    assert [event.class_ for event in stage.events] == ["early_step", "steady_training"]
    assert len(stage.hooked) == 2


def test_rotated_and_failed_alike_is_another_failure(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    rotate(run)
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    assert [event.attempt for event in stage.events] == [1, 2]


def test_rotated_and_then_well_leaves_a_note_that_says_so(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    rotate(run)
    write(run / "log.txt", FINE)
    assert stage.after(100) == ["later"]
    text = report(run)
    assert "This report is on attempt 1 of this run." in text
    assert "Attempt 2 came later: completed." in text
    stage.home = None
    stage.start()
    assert stage.after(100) == []


def test_a_failure_that_is_rotated_away_at_once_is_reported_all_the_same(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", ALIVE)
    stage.after(4)
    write(run / "log.txt", ALIVE + DIES_LATER[len(DIES_LATER) // 2 :])
    write(run / "log.txt", DIES_LATER)
    rotate(run)
    write(run / "log.txt", ALIVE[:3000])
    assert stage.after(2) == ["failed"]
    text = report(run)
    assert "This report is on attempt 1 of this run." in text
    assert "A newer attempt has begun since." in text


def test_truncated_and_failed_again(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES_LATER)
    assert stage.after(10) == ["failed"]
    write(run / "log.txt", DIES[:1000])
    stage.after(2)
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    assert [event.class_ for event in stage.events] == ["steady_training", "early_step"]


def test_an_appended_attempt_is_one_of_its_own(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    append(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    assert [event.attempt for event in stage.events] == [1, 2]
    append(run / "log.txt", FINE)
    assert stage.after(100) == ["later"]


def test_a_newer_attempt_that_began_while_nobody_watched_is_noted(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    rotate(run)
    write(run / "log.txt", ALIVE)
    stage.start()
    stage.after(4)
    assert "A newer attempt has begun since." in report(run)


def test_a_file_of_the_users_own_is_never_touched(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    (run / "postmortem.md").write_text("my notes\n")
    assert stage.after(10) == ["failed"]
    assert report(run) == "my notes\n"
    assert "GPU out of memory" in report(run, "postmortem-watch.md")


def test_a_report_that_the_user_edited_is_the_users(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    append(run / "postmortem.md", "tried batch 1: no better\n")
    rotate(run)
    write(run / "log.txt", DIES_LATER)
    assert stage.after(10) == ["failed"]
    assert report(run).endswith("tried batch 1: no better\n")
    assert "attempt 2" in report(run, "postmortem-watch.md")


def test_no_name_left_is_said_once(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    (run / "postmortem.md").write_text("mine\n")
    (run / "postmortem-watch.md").symlink_to(stage.root.parent / "elsewhere")
    assert stage.after(4000) == ["failed"]
    assert [what for what, _, _ in stage.told] == ["not_written"]
    assert len(stage.hooked) == 1
    assert not (stage.root.parent / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    run.chmod(0o500)
    try:
        assert stage.after(300) == ["failed"]
    finally:
        run.chmod(0o700)
    assert [what for what, _, _ in stage.told] == ["not_written"]


def test_a_full_disk_is_said_once_and_the_report_comes_when_there_is_room(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postmortem.fleet.watch.files import NotWritten, Reports

    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    real = Reports.put

    def full(*_: object, **__: object) -> list[Path]:
        raise NotWritten("cannot write: no space left on device")

    monkeypatch.setattr(Reports, "put", full)
    assert stage.after(300) == ["failed"]
    assert stage.events[0].reports == []
    assert [what for what, _, _ in stage.told] == ["not_written"]
    monkeypatch.setattr(Reports, "put", real)
    assert stage.after(300) == ["written"]
    assert (run / "postmortem.md").exists()
    assert len(stage.hooked) == 1


def test_what_could_not_be_written_is_not_told_again_after_a_restart(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    (run / "postmortem.md").write_text("mine\n")
    (run / "postmortem-watch.md").write_text("mine\n")
    assert stage.after(10) == ["failed"]
    stage.start()
    assert stage.after(600) == []
    assert len(stage.hooked) == 1


def test_a_report_that_was_removed_stays_removed(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    (run / "postmortem.md").unlink()
    stage.start()
    assert stage.after(600) == []
    assert not (run / "postmortem.md").exists()


def test_loose_logs_have_reports_of_their_own(stage: Stage) -> None:
    write(stage.root / "one.log", DIES)
    write(stage.root / "two.out", DIES_LATER)
    assert stage.after(10) == ["failed", "failed"]
    assert sorted(path.name for path in stage.root.glob("*.md")) == ["one.log.postmortem.md", "two.out.postmortem.md"]


def test_a_folder_that_comes_goes_and_comes_back(stage: Stage) -> None:
    stage.root.rmdir()
    assert stage.after(20) == []
    assert [what for what, _, _ in stage.told] == ["waiting"]
    write(stage.root / "mugs" / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    (stage.root / "mugs").rename(stage.root.parent / "away")
    assert stage.after(10) == []
    assert list(stage.watcher.entries) == []
    (stage.root.parent / "away").rename(stage.root / "mugs")
    assert stage.after(10) == []
    assert len(stage.hooked) == 1


def test_an_html_report_stands_beside_the_other_where_there_is_such_a_form(stage: Stage) -> None:
    from postmortem.cli.watch import _write
    from postmortem.fleet.watch.files import Reports

    reports = Reports(stage.root, "", (".md", ".html"), _write)
    from postmortem.fleet.watch.stamp import Stamp

    stamp = Stamp(1, 1, 1, "", "", "failed")
    reports.put(
        stamp, ["one"], {".md": "**x**\n", ".html": "<!doctype html>\n<html><body>\n<h1>x</h1></body></html>\n"}
    )
    assert [path.name for path in reports.annotate(stamp, ["two"])] == ["postmortem.md", "postmortem.html"]
    assert "<p><strong>two</strong></p>" in report(stage.root, "postmortem.html")
    assert len(reports.remove()) == 2
    assert reports.stamp() is None


def database(root: Path, name: str, status: str, info: str = "") -> Path:
    """The UI's database with one job in it."""
    path = root / "aitk_db.db"
    with sqlite3.connect(path) as base:
        base.execute(
            "CREATE TABLE IF NOT EXISTS Job (id TEXT PRIMARY KEY, name TEXT, status TEXT, info TEXT, job_config TEXT, "
            "step INTEGER, total_steps INTEGER)"
        )
        base.execute("INSERT OR REPLACE INTO Job VALUES ('j1', ?, ?, ?, '{}', 0, 400)", (name, status, info))
    base.close()
    return path


UNDER_UI = head(config()).replace("\n\n####", '\nUsing SQLite database at aitk_db.db\nJob ID: "j1"\n\n####', 1)


def test_the_database_says_that_a_silent_job_failed(stage: Stage) -> None:
    run = stage.root / "output" / "mugs"
    write(run / "log.txt", UNDER_UI + training(400, [], until=40))
    database(stage.root, "mugs", "running")
    assert stage.after(600) == []
    message = "CUDA out of memory. Tried to allocate 2.14 GiB. GPU 0 has a total capacity of 23.64 GiB"
    database(stage.root, "mugs", "error", message)
    assert stage.after(12) == ["failed"]
    assert (stage.events[0].kind, stage.events[0].outcome) == ("gpu_oom", "failed")


def test_the_database_says_that_the_user_stopped_it(stage: Stage) -> None:
    run = stage.root / "output" / "mugs"
    write(run / "log.txt", UNDER_UI + training(400, [], until=40))
    database(stage.root, "mugs", "stopped")
    assert stage.after(4000) == []


def test_a_row_of_another_run_of_that_name_is_not_believed(stage: Stage) -> None:
    """A job that ran under the UI, failed, and runs again from the command line: its row is of the first run."""
    run = stage.root / "output" / "mugs"
    write(run / "log.txt", ALIVE)
    database(stage.root, "mugs", "error", "CUDA out of memory. Tried to allocate 2.14 GiB.")
    assert stage.after(1700) == []
    assert stage.after(200) == ["failed"]
    assert (stage.events[0].outcome, stage.events[0].kind) == ("incomplete", "unknown")


def test_a_broken_input_stops_nothing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from postmortem.fleet.watch import judge as judging

    write(stage.root / "a" / "log.txt", DIES)
    write(stage.root / "b" / "log.txt", DIES)
    real = judging.judge

    def sometimes(path: Path, *rest: Any, **more: Any) -> Any:
        if path.name == "a":
            raise RuntimeError("a fault of ours")
        return real(path, *rest, **more)

    monkeypatch.setattr(judging, "judge", sometimes)
    assert stage.after(600) == ["failed"]
    [(what, path, why)] = stage.told
    assert (what, path) == ("internal", str(stage.root / "a"))
    assert re.fullmatch(r"RuntimeError, watch-[0-9a-f]{6}", why)


def test_a_big_log_is_read_whole_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from postmortem.fleet.watch import judge as judging

    calls: list[Path] = []
    real = judging.judge

    def counted(path: Path, *rest: Any, **more: Any) -> Any:
        calls.append(path)
        return real(path, *rest, **more)

    monkeypatch.setattr(judging, "judge", counted)
    run = stage.root / "mugs"
    run.mkdir()
    death = DIES_LATER.index("Error running job")
    for at in range(0, death, 2000):
        append(run / "log.txt", DIES_LATER[at : min(at + 2000, death)])
        stage.after(6)  # it stands still for a while between writes
    append(run / "log.txt", DIES_LATER[death:])
    stage.after(600)
    assert len(calls) == 1


def test_the_mark_names_the_attempt(stage: Stage) -> None:
    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    stage.after(10)
    found = parse(".md", report(run))
    assert found is not None
    assert (found[0].attempt, found[0].line, found[0].bytes) == (1, 1, len(DIES.encode()))


def test_a_run_that_dies_now_does_not_wait_for_thousands_that_died_long_ago(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postmortem.fleet.watch import watcher

    monkeypatch.setattr(watcher, "BUDGET_S", -1.0)
    for number in range(5):
        old = stage.root / f"a_{number}" / "log.txt"
        write(old, DIES)
        os.utime(old, (1e9, 1e9))
    write(stage.root / "z" / "log.txt", DIES)
    assert stage.after(8) == ["failed"]
    assert stage.events[0].run == str(stage.root / "z")
    monkeypatch.setattr(watcher, "BUDGET_S", 1.0)
    assert stage.after(4) == ["failed"] * 5


def test_a_new_run_is_found_before_a_big_tree_is_walked_again(stage: Stage) -> None:
    write(stage.root / "a" / "log.txt", FINE)
    stage.after(4)
    stage.watcher._walk_at = 1e9
    write(stage.root / "b" / "log.txt", DIES)
    assert stage.after(8) == ["failed"]


def test_a_run_folder_under_a_name_that_is_no_text(stage: Stage) -> None:
    run = stage.root / os.fsdecode(b"m\xffugs")
    write(run / "log.txt", DIES)
    assert stage.after(10) == ["failed"]
    assert (run / "postmortem.md").exists()
    stage.watcher._memory.save()
    stage.start()
    assert stage.after(60) == []


def test_an_attempt_that_begins_while_the_last_one_is_read_is_not_taken_for_dead(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postmortem.fleet.watch import judge as judging

    run = stage.root / "mugs"
    write(run / "log.txt", DIES)
    real = judging.judge

    def slow(path: Path, *rest: Any, **more: Any) -> Any:
        if not (run / "logs").exists():
            rotate(run)
            write(run / "log.txt", ALIVE)
        return real(path, *rest, **more)

    monkeypatch.setattr(judging, "judge", slow)
    assert stage.after(60) == ["failed"]
    assert (stage.events[0].attempt, stage.events[0].class_) == (1, "early_step")
    assert "A newer attempt has begun since." in report(run)


def test_a_volume_that_fails_for_a_while_is_asked_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    from postmortem.fleet.watch import judge as judging

    write(stage.root / "mugs" / "log.txt", DIES)
    write(stage.root / "fine" / "log.txt", FINE)
    real = judging.judge
    calls: list[Path] = []

    def failing(path: Path, *rest: Any, **more: Any) -> Any:
        calls.append(path)
        if calls.count(path) == 1:
            raise OSError(5, "Input/output error")
        return real(path, *rest, **more)

    monkeypatch.setattr(judging, "judge", failing)
    assert stage.after(300) == ["failed"]
    assert sorted(stage.told) == [
        ("unreadable", str(stage.root / name), "input/output error") for name in ("fine", "mugs")
    ]
    assert len(calls) == 4
