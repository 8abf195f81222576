"""`postmortem watch` as a process: beside a training that starts, dies, rotates and resumes, and killed in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.watch.stage import ALIVE, DIES, DIES_LATER, FINE, rotate, write

TRAINER = """
import os, pathlib, sys, time
folder, text = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).read_text()
folder.mkdir(parents=True, exist_ok=True)
(folder / "pid.txt").write_text(str(os.getpid()))
with (folder / "log.txt").open("a") as log:
    for at in range(0, len(text), len(text) // 8 + 1):
        log.write(text[at:at + len(text) // 8 + 1]); log.flush(); time.sleep(0.05)
os.kill(os.getpid(), 9)
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def start(tmp_path: Path, root: Path) -> Iterator[Start]:
    """Starts `postmortem watch` with short intervals, its memory in a home of its own."""
    running: list[subprocess.Popen[str]] = []

    def begin(*options: str, interval: str = "0.05") -> subprocess.Popen[str]:
        environment = {**os.environ, "HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
        environment.pop("XDG_CACHE_HOME", None)
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "postmortem", "watch", str(root), "--interval", interval, *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
        )
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def until(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What `what` gives as soon as it is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("nothing came")


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    return process.returncode, out, err


def train(folder: Path, text: str, tmp_path: Path) -> None:
    """A training that writes its log bit by bit and is gone."""
    script, log = tmp_path / "train.py", tmp_path / "text"
    script.write_text(TRAINER)
    log.write_text(text)
    subprocess.run([sys.executable, str(script), str(folder), str(log)], check=False)


def whole(path: Path) -> bool:
    return path.exists() and path.read_text().rstrip().endswith("</details>")


def test_a_training_that_dies_rotates_and_resumes(start: Start, root: Path, tmp_path: Path) -> None:
    run = root / "mugs"
    watch = start("--format", "jsonl")
    train(run, DIES, tmp_path)
    until(lambda: whole(run / "postmortem.md"))
    rotate(run)
    train(run, ALIVE, tmp_path)
    until(lambda: "attempt 2" in (run / "postmortem.md").read_text())
    rotate(run)
    train(run, FINE, tmp_path)
    until(lambda: "Attempt 3 came later: completed." in (run / "postmortem.md").read_text())
    status, out, err = ended(watch)
    events = [json.loads(line) for line in out.splitlines()]
    assert (status, err) == (0, "")
    assert [(event["event"], event["attempt"], event["class"]) for event in events] == [
        ("failed", 1, "early_step"),
        ("failed", 2, None),
        ("later", 3, None),
    ]


def test_killed_at_any_moment_it_goes_on_where_it_was(start: Start, root: Path, tmp_path: Path) -> None:
    count = 12
    for number in range(count):
        write(root / f"run_{number}" / "log.txt", DIES if number % 2 else DIES_LATER)
    hook = f"{sys.executable} -c \"import os; open(os.environ['POSTMORTEM_RUN'] + '/told', 'a').write('x')\""

    def written() -> int:
        return len(list(root.glob("*/postmortem.md")))

    for wanted in (1, 5):
        watch = start("--run", hook)
        until(lambda: written() >= wanted)  # noqa: B023  (called at once)
        watch.kill()
        watch.wait()
        assert all(whole(path) for path in root.glob("*/postmortem.md"))
    watch = start("--run", hook)
    until(lambda: written() == count)
    status, out, _ = ended(watch)
    assert status == 0
    assert all(whole(path) for path in root.glob("*/postmortem.md"))
    assert len(out.splitlines()) < count
    assert all(told.read_text() == "x" for told in root.glob("*/told"))
    again = subprocess.run(
        [sys.executable, "-m", "postmortem", "watch", str(root), "--once", "--interval", "0.05"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path / "other")},
    )
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_hooks_that_fail_or_hang_stop_nothing(start: Start, root: Path) -> None:
    hook = f"{sys.executable} -c \"import sys, time; time.sleep(60 if 'early' in sys.argv[1] else 0); sys.exit(3)\" {{class}}"
    write(root / "a" / "log.txt", DIES)
    write(root / "b" / "log.txt", DIES_LATER)
    watch = start("--run", hook, "--run-timeout", "0.5", "--once")
    out, err = watch.communicate(timeout=20)
    assert watch.returncode == 0
    assert len(out.splitlines()) == 2
    assert f"{root}/a: the command of --run took too long and was ended" in err
    assert f"{root}/b: the command of --run failed" in err


def test_a_hook_is_told_what_and_where_and_no_shell_reads_it(start: Start, root: Path, tmp_path: Path) -> None:
    told = tmp_path / "told; touch x"
    script = tmp_path / "hook.py"
    script.write_text(
        "import json, os, sys\n"
        "names = {k: v for k, v in os.environ.items() if k.startswith('POSTMORTEM_')}\n"
        f"json.dump([sys.argv[1:], names], open({str(told)!r}, 'w'))\n"
        "print('hook speaks')\n"
    )
    write(root / "a run; $(touch y)" / "log.txt", DIES)
    watch = start(
        "--run", f"{sys.executable} {script} {{report}} '{{class}}/{{kind}}' {{unknown}}", "--once", "--no-redact"
    )
    out, err = watch.communicate(timeout=20)
    report = str(root / "a run; $(touch y)" / "postmortem.md")
    arguments, names = json.loads(told.read_text())
    assert arguments == [report, "early_step/gpu_oom", "{unknown}"]
    assert names["POSTMORTEM_REPORT"] == report
    assert (names["POSTMORTEM_STEP"], names["POSTMORTEM_ATTEMPT"], names["POSTMORTEM_JOB"]) == ("3", "1", "mugs")
    assert names["POSTMORTEM_HEADLINE"].startswith("GPU out of memory in the first training steps")
    assert "hook speaks" in err
    assert "hook speaks" not in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_when_asked(start: Start, root: Path, number: int) -> None:
    write(root / "a" / "log.txt", DIES)
    watch = start(interval="0.1")
    until(lambda: (root / "a" / "postmortem.md").exists())
    status, out, err = ended(watch, number)
    assert (status, err, len(out.splitlines())) == (0, "", 1)


def test_a_long_sleep_does_not_hold_it(start: Start, root: Path) -> None:
    root.rmdir()
    watch = start(interval="600")
    assert watch.stderr is not None
    assert "no such folder yet; waiting for it" in watch.stderr.readline()
    assert ended(watch)[0] == 0


def test_two_of_them_do_not_follow_one_folder(start: Start, root: Path) -> None:
    write(root / "a" / "log.txt", DIES)
    first = start()
    until(lambda: (root / "a" / "postmortem.md").exists())
    second = start()
    assert second.communicate(timeout=20)[0] == ""
    assert second.returncode == 3
    assert ended(first)[0] == 0


@pytest.mark.parametrize(
    ("options", "status", "says"),
    [
        (["--run", "no-such-program-here x"], 2, "no such program"),
        (["--run", "'"], 2, "--run"),
        (["--since", "yesterday"], 2, "--since"),
        (["--lang", "xx"], 2, "--lang"),
        (["--db", "nowhere.db"], 3, "not a file"),
    ],
)
def test_bad_usage_is_one_line(
    root: Path, options: list[str], status: int, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from postmortem.cli.main import run

    assert run(["watch", str(root), *options]) == status
    out, err = capfd.readouterr()
    assert says in err
    assert (out, len(err.splitlines())) == ("", 1)


def test_a_single_pass_over_a_folder_that_is_not_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from postmortem.cli.main import run

    assert run(["watch", str(tmp_path / "nowhere"), "--once"]) == 3
    assert "no such folder" in capfd.readouterr().err


def test_korean(start: Start, root: Path) -> None:
    write(root / "a" / "log.txt", DIES)
    watch = start("--once", "--lang", "ko")
    out, _ = watch.communicate(timeout=20)
    assert "시도 1: 실패" in out
    assert "이 보고서는 이 실행의 시도 1에 대한 것입니다." in (root / "a" / "postmortem.md").read_text()
