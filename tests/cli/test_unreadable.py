"""What the system does not let us read is named; the rest is read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_guard import CONFIG, LOG

if os.name != "posix":
    pytest.skip("rights of POSIX", allow_module_level=True)
AS_ROOT = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
"""Root without what lets it read everything."""


def postmortem(*arguments: str) -> subprocess.CompletedProcess[str]:
    prefix: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("no setpriv")
        prefix = AS_ROOT
    env = {**os.environ, "POSTMORTEM_NO_CACHE": "1"}
    command = [*prefix, sys.executable, "-m", "postmortem", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    for name in ("runs/job/log.txt", "runs/job/logs/0_log.txt", "runs/job/logs/1_log.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(LOG)
    (tmp_path / "runs" / "job" / "config.yaml").write_bytes(CONFIG)
    yield tmp_path / "runs"
    for path in [tmp_path, *tmp_path.rglob("*")]:
        path.chmod(0o700)


def warned(path: Path) -> list[dict[str, object]]:
    done = postmortem("analyze", str(path), "--format", "json")
    assert done.returncode == 0, done.stderr
    return [one for one in json.loads(done.stdout)["warnings"] if one["id"] == "folder_unread"]


def test_a_folder_of_old_logs_that_is_shut(runs: Path) -> None:
    for mode in (0, 0o400):
        (runs / "job" / "logs").chmod(mode)
        (warning,) = warned(runs / "job")
        assert "logs could not be read (permission denied)" in str(warning["text"])
        korean = postmortem("analyze", str(runs / "job"), "--lang", "ko")
        assert "읽기 권한 없음" in korean.stdout and "permission" not in korean.stdout
    assert warned(runs), "the only run below a folder, too"
    assert "읽기 권한 없음" in postmortem("batch", str(runs), "--lang", "ko").stderr
    assert postmortem("fix", str(runs / "job")).returncode == 0
    done = postmortem("batch", str(runs), "--format", "jsonl")
    assert done.returncode == 0
    assert json.loads(done.stdout)["run"] == "job"
    assert "job/logs (permission denied): could not be read" in done.stderr
    done = postmortem("batch", str(runs / "job"), "--format", "jsonl")
    assert done.returncode == 0 and json.loads(done.stdout)["run"] == "job"
    assert "logs (permission denied): could not be read" in done.stderr


def test_an_old_log_that_is_shut(runs: Path) -> None:
    (runs / "job" / "logs" / "0_log.txt").chmod(0)
    (warning,) = warned(runs / "job")
    assert "logs/0_log.txt could not be read (permission denied)" in str(warning["text"])


def test_the_newest_log_is_the_run(runs: Path) -> None:
    (runs / "job" / "log.txt").chmod(0)
    done = postmortem("analyze", str(runs / "job"))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("log.txt: permission denied\n")


def test_what_a_run_left_and_may_not_be_read_is_not_called_missing(runs: Path) -> None:
    folder = runs / "job"
    (folder / "samples").mkdir()
    for name in ("optimizer.pt", "job.safetensors"):
        (folder / name).write_bytes(b"")
    for name in ("samples", "optimizer.pt"):
        (folder / name).chmod(0)
    told = [str(one["text"]) for one in warned(folder)]
    assert [text.split()[0] for text in told] == ["samples", "optimizer.pt"]
    done = postmortem("analyze", str(folder), "--format", "json")
    assert not {one["id"] for one in json.loads(done.stdout)["warnings"]} & {"optimizer_missing", "optimizer_torn"}
    folder.chmod(0o300)
    (warning,) = warned(folder / "log.txt")
    assert "job could not be read" in str(warning["text"])


@pytest.mark.parametrize("mode", [0, 0o400, 0o200])
def test_a_root_that_is_shut_is_said_to_be(runs: Path, mode: int) -> None:
    (runs / "job").chmod(mode)
    for arguments in (["analyze"], ["fix"], ["batch"], ["compare"]):
        done = postmortem(*arguments, str(runs / "job"))
        assert (done.returncode, done.stdout) == (3, ""), arguments
        assert "permission denied" in done.stderr and "write" not in done.stderr, arguments
        if arguments != ["batch"]:  # which names what it could not read, and then that there is nothing else
            assert done.stderr.count("\n") == 1, done.stderr
