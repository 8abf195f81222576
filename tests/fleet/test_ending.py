"""However a batch ends, its workers end with it at once, and nothing of theirs stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("signals of POSIX", allow_module_level=True)

STUCK = """
import os, signal, sys, time
from pathlib import Path
from postmortem.cli.main import _end_cleanly
from postmortem.fleet import pool
from postmortem.fleet.find import Target
from postmortem.intake.archives import Home

def stuck(targets):
    if sys.argv[1] == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    home = Home()
    (home.path / "log").write_text("x")
    half = Path(sys.argv[2], f"half.{os.getpid()}")
    try:
        half.write_text("half written")
        time.sleep(120)
    finally:
        half.unlink(missing_ok=True)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background has none
    _end_cleanly()
    targets = [Target(str(n), str(n), "log", True, "", pool.SHARE_BYTES, 0.0) for n in range(9)]
    found = pool.Pool(2, task=stuck).run(targets)
    try:
        list(found)
    except KeyboardInterrupt:
        sys.exit(130)
"""


@pytest.mark.parametrize(
    ("number", "status", "how"),
    [
        (signal.SIGTERM, 143, "heeds"),
        (signal.SIGTERM, 143, "deaf"),
        (signal.SIGHUP, 129, "heeds"),
        (signal.SIGINT, 130, "heeds"),
        (signal.SIGINT, 130, "deaf"),
        (signal.SIGKILL, -9, "heeds"),
        (signal.SIGKILL, -9, "deaf"),
    ],
)
def test_workers_that_are_stuck_end_and_leave_nothing(tmp_path: Path, number: int, status: int, how: str) -> None:
    script, temporary, halves = tmp_path / "batch.py", tmp_path / "tmp", tmp_path / "halves"
    script.write_text(STUCK)
    temporary.mkdir()
    halves.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [sys.executable, str(script), how, str(halves)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    until(lambda: len(list(halves.iterdir())) == 2, "the workers did not begin")
    workers = [int(one.name.partition(".")[2]) for one in halves.iterdir()]
    process.send_signal(number)
    told, _ = process.communicate(timeout=30)  # to the end of the pipe, which the workers hold too
    assert process.returncode == status
    if status > 0:  # of a killed one, Python itself says which semaphores it clears away
        assert told == b""
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers), "a worker goes on")
    assert list(temporary.iterdir()) == []
    if how == "heeds":
        assert list(halves.iterdir()) == []


def until(holds: object, why: str) -> None:
    assert callable(holds)
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < 60, why
        time.sleep(0.05)


IDLE = """
import os, signal, sys
from postmortem.fleet import pool

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, pool._asked_to_end)
    pool._busy = sys.argv[1] == "busy"
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        print("in order", flush=True)
"""


@pytest.mark.parametrize(("state", "says"), [("busy", b"in order\n"), ("idle", b"")])
def test_a_worker_that_waits_ends_where_it_stands(tmp_path: Path, state: str, says: bytes) -> None:
    """It reads from a pipe that others read from after it: half a message that it leaves there is a fault of theirs."""
    script = tmp_path / "idle.py"
    script.write_text(IDLE, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), state], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, says, b"")


BEGINNING = """
import os, signal, sys
from postmortem.fleet import pool

def asked(pack):
    os.kill(os.getpid(), signal.SIGTERM)

if __name__ == "__main__":
    pool.load = asked
    pool.begin(None)
"""


def test_a_worker_that_is_asked_to_end_before_it_is_ready_prints_nothing(tmp_path: Path) -> None:
    script = tmp_path / "beginning.py"
    script.write_text(BEGINNING, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == (b"", b"")


TRACKED = """
from multiprocessing import resource_tracker
from postmortem.fleet import pool

if __name__ == "__main__":
    pool._deaf_tracker()
    print(open(f"/proc/{resource_tracker._resource_tracker._pid}/status").read())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_closed_terminal_does_not_end_what_takes_semaphores_away(tmp_path: Path) -> None:
    script = tmp_path / "tracked.py"
    script.write_text(TRACKED, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, timeout=60, check=True)
    (blocked,) = (int(line.split()[1], 16) for line in done.stdout.splitlines() if line.startswith(b"SigBlk"))
    assert all(blocked & 1 << number - 1 for number in (signal.SIGHUP, signal.SIGQUIT))
