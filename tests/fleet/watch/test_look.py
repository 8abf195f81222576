"""What is seen from outside: last bytes, processes, the UI's database, folders that are new."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from postmortem.fleet.watch import look
from postmortem.fleet.watch.state import Hint, Process
from postmortem.intake import jobdb
from postmortem.intake.tail import read_tail
from postmortem.model import JobDatabase
from postmortem.scan import Lexicon
from tests.fleet.watch.stage import ALIVE, DIES, DIES_LATER, FINE, STOPPED, rotate, write

BARE = (
    ALIVE
    + 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    step()\n'
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (ALIVE, Hint.OPEN),
        (DIES, Hint.ENDED),
        (DIES_LATER, Hint.ENDED),
        (STOPPED, Hint.ENDED),
        (FINE, Hint.DONE),
        (BARE, Hint.ERROR),
        (ALIVE + "\nJob process terminated with signal SIGKILL.\n", Hint.ENDED),
        (DIES + ALIVE, Hint.OPEN),
        ("", Hint.OPEN),
        ("a caption\n", Hint.OPEN),
    ],
)
def test_what_the_last_bytes_say(tmp_path: Path, lexicon: Lexicon, text: str, hint: Hint) -> None:
    write(tmp_path / "log.txt", text)
    assert look.hint(tmp_path / "log.txt", lexicon) is hint


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_huge_log_is_read_from_its_end_only(
    tmp_path: Path, lexicon: Lexicon, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.txt"
    filler = "".join(f"\rmugs: {n}/400 [00:10<10:00, 2.00s/it, lr: 1.0e-04 loss: 0.3]" for n in range(200)) * 200
    path.write_bytes((ALIVE + filler + "\n" + DIES).encode(encoding))
    size = path.stat().st_size
    assert size > 2_000_000
    read: list[int] = []

    def counted(path: Path, limit: int) -> bytes:
        text = read_tail(path, limit)
        read.append(len(text))
        return text

    monkeypatch.setattr("postmortem.fleet.watch.look.read_tail", counted)
    assert look.hint(path, lexicon) is Hint.ENDED
    assert read[0] <= look.TAIL + 4


def test_the_newest_log_of_a_folder(tmp_path: Path) -> None:
    run = tmp_path / "mugs"
    run.mkdir()
    assert look.log_of(run, folder=True) is None
    write(run / "log.txt", "x")
    first = look.log_of(run, folder=True)
    rotate(run)
    moved = look.log_of(run, folder=True)
    assert first is not None
    assert moved is not None
    assert moved.mark == first.mark
    write(run / "logs" / "10_log.txt", "y")
    write(run / "logs" / "9_log.txt", "z")
    assert look.rotated(run) == run / "logs" / "10_log.txt"


def test_no_pid_no_answer(tmp_path: Path) -> None:
    assert look.process_of(tmp_path) is Process.UNKNOWN
    for text in ("", "x", "-1", "0", "1", "99999999999", "12 34"):
        (tmp_path / "pid.txt").write_text(text)
        assert look.process_of(tmp_path) is Process.UNKNOWN


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_under_the_name_of_the_pid_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid.txt")
    assert look.process_of(tmp_path) is Process.UNKNOWN


def test_a_process_lives_is_a_corpse_is_gone_or_is_another(tmp_path: Path) -> None:
    code = "print(flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # before that it may still be the process that started it
    (tmp_path / "pid.txt").write_text(str(process.pid))
    assert look.process_of(tmp_path) is Process.ALIVE
    # the number was written down long before this process began
    os.utime(tmp_path / "pid.txt", (time.time() - 3600,) * 2)
    assert look.process_of(tmp_path) is Process.UNKNOWN
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert look.process_of(tmp_path) is Process.GONE
    process.communicate()
    assert look.process_of(tmp_path) is Process.GONE
    other = subprocess.Popen(["sleep", "60"])
    (tmp_path / "pid.txt").write_text(str(other.pid))
    assert look.process_of(tmp_path) is Process.UNKNOWN
    other.kill()
    other.wait()


def test_the_database_is_read_when_it_changed_and_not_too_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "aitk_db.db"
    run = tmp_path / "output" / "mugs"
    run.mkdir(parents=True)
    reads: list[Path] = []
    real = jobdb.read

    def counted(path: Path, *, configs: bool = True) -> JobDatabase:
        reads.append(path)
        return real(path, configs=configs)

    monkeypatch.setattr(jobdb, "read", counted)

    def status(word: str) -> None:
        base = sqlite3.connect(path)
        base.execute("CREATE TABLE IF NOT EXISTS Job (id TEXT PRIMARY KEY, name TEXT, status TEXT)")
        base.execute("INSERT OR REPLACE INTO Job VALUES ('1', 'mugs', ?)", (word,))
        base.commit()
        base.close()
        os.utime(path, ns=(len(reads), time.time_ns()))

    jobs = look.Jobs(None, every_s=4.0)
    assert jobs.status(run, 0.0) is None
    status("running")
    assert jobs.status(run, 1.0) == "running"
    assert jobs.status(run, 9.0) == "running"
    assert len(reads) == 1
    status("error")
    assert jobs.status(run, 10.0) == "error"
    status("stopped")
    assert jobs.status(run, 11.0) == "error"
    assert jobs.status(run, 14.0) == "stopped"
    assert jobs.status(tmp_path / "output" / "other", 14.0) is None
    assert len(reads) == 3


def test_new_folders_are_seen_by_a_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a" / "log.txt", "x")
    write(tmp_path / "b" / "log.txt", "x")
    write(tmp_path / "c" / "caption.txt", "x")
    assert list(look.newcomers([tmp_path], {str(tmp_path / "a")})) == [str(tmp_path / "b")]
    monkeypatch.chdir(tmp_path)
    assert list(look.newcomers([Path()], {"a"})) == ["b"]
    assert list(look.newcomers([tmp_path / "nowhere"], set())) == []
