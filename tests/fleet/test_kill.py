"""`kill -9` at any moment, and two batches at once: the next run completes, nothing is torn, nothing is mistaken."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import corpus

RUNS = 40
MOMENTS = (0.6, 0.9)
"""Parts of the time that a whole batch takes; `benchmarks/kill.py` tries many more."""


def batch(root: Path, home: Path, out: Path) -> subprocess.Popen[bytes]:
    """A batch of two workers, in a process group of its own."""
    env = {**os.environ, "XDG_CACHE_HOME": str(home), "POSTMORTEM_NO_CACHE": ""}
    command = [sys.executable, "-m", "postmortem", "batch", str(root), "--workers", "2", "--format", "jsonl"]
    return subprocess.Popen([*command, "-o", str(out)], env=env, start_new_session=True, stderr=subprocess.DEVNULL)


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[corpus.Truth]]:
    root = tmp_path_factory.mktemp("corpus") / "runs"
    found = corpus.write(root, RUNS, seed=11)
    past = time.time() - 60
    for path in root.rglob("*"):
        os.utime(path, (past, past), follow_symlinks=False)  # else nothing of it is remembered
    return root, found


def test_after_a_kill_the_next_run_completes(truths: tuple[Path, list[corpus.Truth]], tmp_path: Path) -> None:
    root, expected = truths
    out, home = tmp_path / "rows.jsonl", tmp_path / "home"
    started = time.monotonic()
    assert batch(root, tmp_path / "other", out).wait() == 0
    whole = time.monotonic() - started
    first = out.read_bytes()
    for moment in MOMENTS:
        process = batch(root, home, out)
        time.sleep(whole * moment)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert out.read_bytes() == first  # whole: the earlier one or a new one
    assert batch(root, home, out).wait() == 0
    assert out.read_bytes() == first
    assert corpus.differences(expected, rows(out)) == []


def test_two_at_once_share_one_cache(truths: tuple[Path, list[corpus.Truth]], tmp_path: Path) -> None:
    root, expected = truths
    both = [batch(root, tmp_path / "home", tmp_path / f"{name}.jsonl") for name in ("a", "b")]
    assert [process.wait() for process in both] == [0, 0]
    assert rows(tmp_path / "a.jsonl") == rows(tmp_path / "b.jsonl")
    assert corpus.differences(expected, rows(tmp_path / "a.jsonl")) == []
    (base,) = (tmp_path / "home" / "postmortem").glob("fleet-*.db")
    assert base.stat().st_size > 0
