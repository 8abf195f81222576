"""Rows: the same whatever the workers, the cache and what went wrong with others."""

from __future__ import annotations

import json
import multiprocessing.queues
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from postmortem import processes
from postmortem.fleet import pool
from postmortem.fleet.cache import Cache
from postmortem.fleet.find import Target, find
from postmortem.fleet.row import Row
from postmortem.fleet.run import rows_of
from postmortem.fleet.work import Done, work
from postmortem.intake import Intake, open_path
from postmortem.report import json_
from postmortem.scan import Lexicon
from tests.simulate import config, finished, head, training
from tests.test_fixtures import NAMES, report_on

SPIKE = head(config()) + training(400, {0, 1, 2, 3})
FINE = head(config()) + training(40, []) + finished()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    for number in range(6):
        folder = root / f"run_{number}"
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text((SPIKE if number % 2 else FINE) + f"run {number}\n")
    (root / "broken.log").write_bytes(b"\x7fELF" + bytes(100))
    (root / "note.txt").write_text("nothing that a trainer prints\n")
    return root


def rows(root: Path, lexicon: Lexicon, cache: Cache, workers: int = 1) -> list[Row]:
    with closing(cache):
        return list(rows_of(find([root]), lexicon, cache, workers))


def test_one_bad_file_is_a_row_and_stops_nothing(tree: Path, lexicon: Lexicon) -> None:
    found = rows(tree, lexicon, Cache("v", None))
    assert [row.status for row in found] == ["error", *["analysed"] * 6]
    assert found[0].error == "a program, not a log; give the text that the run printed"
    assert [row.kind for row in found[1:]] == ["none", "gpu_oom"] * 3


def test_workers_and_order_do_not_matter(tree: Path, lexicon: Lexicon) -> None:
    one = rows(tree, lexicon, Cache("v", None))
    assert rows(tree, lexicon, Cache("v", None), workers=2) == one


def test_a_second_run_reads_nothing_again(
    tree: Path, lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import postmortem.fleet.cache as module

    monkeypatch.setattr(module, "RACY_S", -1e9)
    first = rows(tree, lexicon, Cache("v", tmp_path / "cache"))
    monkeypatch.setattr("postmortem.fleet.work.work", lambda target, *_: pytest.fail(target.path))
    analysed = [row for row in first if row.status == "analysed"]
    targets = [target for target in find([tree]) if target.name != "broken.log"]
    with closing(Cache("v", tmp_path / "cache")) as cache:
        assert list(rows_of(targets, lexicon, cache, 1)) == analysed


def test_a_changed_log_is_read_again(
    tree: Path, lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import postmortem.fleet.cache as module

    monkeypatch.setattr(module, "RACY_S", -1e9)
    rows(tree, lexicon, Cache("v", tmp_path / "cache"))
    (tree / "run_0" / "log.txt").write_text(SPIKE)
    assert rows(tree, lexicon, Cache("v", tmp_path / "cache"))[1].kind == "gpu_oom"


def test_a_log_written_just_now_is_not_remembered(tree: Path, lexicon: Lexicon, tmp_path: Path) -> None:
    cache = Cache("v", tmp_path / "cache")
    rows(tree, lexicon, cache)
    assert all(cache.get(target) is None for target in find([tree]))


def test_a_damaged_cache_is_made_anew(tree: Path, lexicon: Lexicon, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "fleet-3-v.db").write_bytes(b"no database" * 1000)
    assert rows(tree, lexicon, Cache("v", tmp_path / "cache")) == rows(tree, lexicon, Cache("v", None))


def test_the_same_bytes_twice_are_said(tmp_path: Path, lexicon: Lexicon) -> None:
    (tmp_path / "a.log").write_text(SPIKE)
    (tmp_path / "b.log").write_text(SPIKE)
    found = rows(tmp_path, lexicon, Cache("v", None))
    assert [row.duplicate_of for row in found] == [None, "a.log"]


def test_a_row_says_what_analyze_says(lexicon: Lexicon) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures"
    by_path = {target.name: target for target in find([fixtures])}
    for name in NAMES:
        if name not in by_path or not (fixtures / name / "samples").is_dir():
            continue
        row = work(by_path[name], lexicon).row
        report = json.loads(json_.render(report_on(name, lexicon)))
        assert (row.kind, row.class_, row.phase, row.step) == tuple(
            report["failure"][key] for key in ("kind", "class", "phase", "step")
        )


def test_a_killed_worker_costs_one_row(tree: Path) -> None:
    found = [done.row for done in pool.Pool(2, task=killed_at_run_3).run(find([tree]))]
    assert [row.run for row in found if row.error and "killed" in row.error] == ["run_3"]
    assert [row.run for row in found if row.status == "analysed"] == ["run_0", "run_1", "run_2", "run_4", "run_5"]


def test_where_no_worker_can_be_started_nobody_waits(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(pool, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(multiprocessing.queues.Queue, "_start_thread", refused)
    with pytest.raises(pool.NoWorkers):
        list(pool.Pool(2).run(find([tree])))


def killed_at_run_3(targets: list[Target]) -> list[Done]:
    """A task in which one target takes its process with it."""
    for target in targets:
        if target.name == "run_3":
            os.kill(os.getpid(), signal.SIGKILL)
    return pool._share(targets)


def test_retries_say_whether_the_fix_helped(tmp_path: Path, lexicon: Lexicon) -> None:
    folder = tmp_path / "job"
    (folder / "logs").mkdir(parents=True)
    off, on = config(train__gradient_checkpointing=False), config(train__gradient_checkpointing=True)
    (folder / "logs" / "0_log.txt").write_text(head(off) + training(400, {0, 1, 2, 3}))
    (folder / "log.txt").write_text(head(on) + training(40, []) + finished())
    (row,) = rows(tmp_path, lexicon, Cache("v", None))
    assert [(retry.fix, retry.applied, retry.passed) for retry in row.retries] == [
        ("enable_gradient_checkpointing", True, True)
    ]


def test_one_name_below_two_folders_hides_no_copy(tmp_path: Path, lexicon: Lexicon) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.log").write_text(SPIKE)
    roots = [tmp_path / "first", tmp_path / "second"]
    found = list(rows_of(find(roots), lexicon, Cache("v", None), 1))
    assert [(row.run, row.duplicate_of) for row in found] == [("run.log", None), ("run.log", "run.log")]


def test_why_a_run_was_not_read_does_not_say_its_path_again(tmp_path: Path, lexicon: Lexicon) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.txt").write_text("")
    (row,) = rows(tmp_path, lexicon, Cache("v", None))
    assert row.error is not None and row.error.startswith("log.txt: empty")


def test_a_copied_folder_is_a_copy_whenever_it_was_made(tmp_path: Path, lexicon: Lexicon) -> None:
    for name, made in (("first", 1_700_000_000), ("second", 1_750_000_000)):
        (tmp_path / name).mkdir()
        for file, text in (("log.txt", SPIKE), ("config.yaml", "job: extension\n")):
            (tmp_path / name / file).write_text(text)
            os.utime(tmp_path / name / file, (made, made))
    assert [row.duplicate_of for row in rows(tmp_path, lexicon, Cache("v", None))] == [None, "first"]
    # what is not read whole, such as a checkpoint, still counts by its time
    (tmp_path / "second" / "lora.safetensors").write_bytes(bytes(64))
    assert [row.duplicate_of for row in rows(tmp_path, lexicon, Cache("v", None))] == [None, None]


def test_a_folder_that_a_database_knows_by_name_is_no_copy(tmp_path: Path, lexicon: Lexicon) -> None:
    (tmp_path / "aitk_db.db").write_bytes(b"")
    for name in ("first", "second"):
        (tmp_path / "output" / name).mkdir(parents=True)
        (tmp_path / "output" / name / "log.txt").write_text(SPIKE)
    found = rows(tmp_path / "output", lexicon, Cache("v", None))
    assert [row.duplicate_of for row in found] == [None, None]


def test_names_that_are_no_text_are_analysed_kept_and_told_apart(
    tmp_path: Path, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postmortem.fleet.cache.RACY_S", -1e9)
    root = tmp_path / "runs"
    for number, name in enumerate([b"x\xff", b"x\xfe", b"\xed\xa0\x80", "\u200b".encode(), b"a\nb\x1b[31m"]):
        folder = Path(os.fsdecode(os.path.join(os.fsencode(root), name)))  # noqa: PTH118
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(SPIKE + f"{number}\n")
        (folder / os.fsdecode(b"x\xff.safetensors")).write_bytes(b"x")
    first = rows(root, lexicon, Cache("v", tmp_path / "cache"))
    assert len({row.run for row in first}) == 5 and all(row.run.isprintable() and row.run for row in first)
    assert {row.run for row in first} >= {r"x\xff", r"x\xfe", r"\xed\xa0\x80", "a b"}
    cache = Cache("v", tmp_path / "cache")
    assert all(cache.get(target) is not None for target in find([root]))
    assert rows(root, lexicon, cache) == first


def test_a_flipped_bit_in_the_cache_is_no_verdict(
    tree: Path, lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postmortem.fleet.cache.RACY_S", -1e9)
    first = rows(tree, lexicon, Cache("v", tmp_path / "cache"))
    (file,) = (tmp_path / "cache").glob("*.db")
    with closing(sqlite3.connect(file)) as base:
        base.execute("UPDATE rows SET row = CAST(replace(CAST(row AS TEXT), 'gpu_oom', 'cpu_oom') AS BLOB)")
        base.commit()
    assert rows(tree, lexicon, Cache("v", tmp_path / "cache")) == first


def test_a_cache_damaged_inside_is_made_anew(
    tree: Path, lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postmortem.fleet.cache.RACY_S", -1e9)
    first = rows(tree, lexicon, Cache("v", tmp_path / "cache"))
    (file,) = (tmp_path / "cache").glob("*.db")
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xa5" * (len(content) - 4096))
    assert rows(tree, lexicon, Cache("v", tmp_path / "cache")) == first
    rows(tree, lexicon, Cache("v", tmp_path / "cache"))
    with closing(Cache("v", tmp_path / "cache")) as again:
        assert all(again.get(target) is not None for target in find([tree]) if target.name.startswith("run"))


def test_a_cache_in_use_is_left_to_the_one_that_uses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cache("v", tmp_path).close()
    (file,) = tmp_path.glob("*.db")
    before = file.stat().st_ino
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **_: connect(path, timeout=0, isolation_level=None))
    with closing(connect(file, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        Cache("v", tmp_path).close()
    assert file.stat().st_ino == before


def test_a_log_that_grows_while_it_is_read_is_not_remembered(tmp_path: Path, lexicon: Lexicon) -> None:
    (tmp_path / "a.log").write_text(SPIKE)
    (target,) = find([tmp_path])

    def grown() -> Intake:
        opened = open_path(tmp_path / "a.log")
        with (tmp_path / "a.log").open("a") as log:
            log.write("more\n")
        return opened

    assert work(target, lexicon, grown).key is None
    assert work(target, lexicon).key is not None


def test_copies_below_two_roots_under_one_name_count_once(tmp_path: Path, lexicon: Lexicon) -> None:
    for root in ("a", "b"):
        (tmp_path / root).mkdir()
        (tmp_path / root / "run.log").write_text(SPIKE)
    found = list(rows_of(find([tmp_path / "a", tmp_path / "b"]), lexicon, Cache("v", None), 1))
    assert [row.duplicate_of for row in found] == [None, "run.log"]


def test_runs_alike_but_for_their_row_in_the_database_are_two(tmp_path: Path, lexicon: Lexicon) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "output" / name
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text(SPIKE)
        os.utime(folder / "log.txt", (1e9, 1e9))
    keys = {work(target, lexicon).key for target in find([tmp_path])}
    assert len(keys) == 1
    (tmp_path / "aitk_db.db").write_bytes(b"x")
    assert len({work(target, lexicon).key for target in find([tmp_path])}) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_workers_end_with_a_batch_that_was_killed(tmp_path: Path) -> None:
    script = tmp_path / "batch.py"
    script.write_text(
        "import os, signal\n"
        "from postmortem.fleet import pool\n"
        "if __name__ == '__main__':\n"
        "    executor = pool.Pool(1)._executor\n"
        "    print(executor.submit(os.getpid).result(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # the worker holds the other end of the pipe: it is at its end once the worker has gone
    told = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=False)
    assert told.returncode == -signal.SIGKILL and int(told.stdout) > 0


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX")
def test_ctrl_c_waits_while_workers_are_started() -> None:
    with pytest.raises(KeyboardInterrupt), processes.undisturbed():
        signal.raise_signal(signal.SIGINT)
        started = True
    assert started
