"""The end of a log as text, whatever it is written in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postmortem.intake.tail import read_tail

LINES = [f"line {number} 오류" for number in range(400)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("size", [200, 201, 202, 203])
def test_whole_lines_from_the_end(tmp_path: Path, encoding: str, size: int) -> None:
    (tmp_path / "log").write_bytes("\n".join(LINES).encode(encoding))
    found = read_tail(tmp_path / "log", size).decode().split("\n")
    assert 1 < len(found) < 40
    assert found == LINES[-len(found) :]


def test_a_short_log_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes("\n".join(LINES).encode("utf-16"))
    assert read_tail(tmp_path / "log", 1 << 20).decode().split("\n") == LINES
    (tmp_path / "empty").touch()
    assert read_tail(tmp_path / "empty", 100) == b""


def test_the_records_of_a_container(tmp_path: Path) -> None:
    records = [json.dumps({"log": line + "\n", "stream": "stderr"}) for line in LINES]
    (tmp_path / "log").write_text("\n".join(records) + "\n")
    found = read_tail(tmp_path / "log", 500).decode().splitlines()
    assert 1 < len(found) < 40
    assert found == LINES[-len(found) :]


def test_one_endless_line_of_a_bar(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\r".join(f"bar {number}" for number in range(10_000)))
    assert read_tail(tmp_path / "log", 30) == b"bar 9997\rbar 9998\rbar 9999"
