"""The UI's database: where it is looked for, what is read of it, and that nothing in it does harm."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postmortem.intake import IntakeError, jobdb

TABLE = """CREATE TABLE Job (id TEXT PRIMARY KEY, name TEXT, gpu_ids TEXT, job_config TEXT, status TEXT, step INTEGER,
    total_steps INTEGER, info TEXT, speed_string TEXT)"""


def database(path: Path, *rows: dict[str, Any]) -> Path:
    """A database as the UI keeps it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(TABLE)
        for row in rows:
            value = {"id": "1", "name": "mugs", "status": "error", "step": 250, "total_steps": 3000, "info": "", **row}
            names = ", ".join(value)
            file.execute(f"INSERT INTO Job ({names}) VALUES ({', '.join('?' * len(value))})", tuple(value.values()))
    file.close()
    return path


def test_a_row_holds_what_the_ui_knows(tmp_path: Path) -> None:
    path = database(tmp_path / jobdb.NAME, {"info": "CUDA error: x\nmore", "job_config": '{"job": 1}'}, {"id": "2"})
    found = jobdb.read(path)
    assert [row.id.reveal() for row in found.rows] == ["2", "1"]
    row = found.rows[1]
    assert (row.name.reveal(), row.status, row.step, row.total_steps) == ("mugs", "error", 250, 3000)
    assert (row.info, row.config) == ("CUDA error: x\nmore", '{"job": 1}')
    assert (found.name, found.damaged) == ("aitk_db.db", False)


def test_it_lies_in_the_toolkit_above_the_run(tmp_path: Path) -> None:
    run = tmp_path / "toolkit" / "output" / "mugs"
    run.mkdir(parents=True)
    assert jobdb.find(run) is None
    path = database(tmp_path / "toolkit" / jobdb.NAME)
    assert jobdb.find(run) == path
    assert jobdb.find(run, climb=False) is None
    own = database(run / jobdb.NAME)
    assert jobdb.find(run, climb=False) == jobdb.find(run) == own
    far = tmp_path / "toolkit" / "output" / "a" / "b" / "mugs"
    far.mkdir(parents=True)
    assert jobdb.find(far) is None


def test_a_link_is_not_followed_and_a_folder_is_none(tmp_path: Path) -> None:
    run = tmp_path / "output" / "mugs"
    run.mkdir(parents=True)
    (run / jobdb.NAME).symlink_to(database(tmp_path / "far" / "other.db"))
    (tmp_path / jobdb.NAME).mkdir()
    assert jobdb.find(run) is None


def test_a_database_in_use_is_read_with_its_log_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / jobdb.NAME
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute(TABLE)
    writer.execute("INSERT INTO Job (id, name, status) VALUES ('1', 'mugs', 'running')")
    writer.execute("BEGIN EXCLUSIVE")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir() if not entry.name.endswith("-shm")}
    assert [row.status for row in jobdb.read(path).rows] == ["running"]
    assert {e.name: e.read_bytes() for e in tmp_path.iterdir() if not e.name.endswith("-shm")} == before
    writer.execute("COMMIT")
    writer.close()


def test_a_read_leaves_nothing_behind(tmp_path: Path) -> None:
    path = database(tmp_path / jobdb.NAME, {})
    content = path.read_bytes()
    jobdb.read(path)
    assert [entry.name for entry in tmp_path.iterdir()] == [jobdb.NAME]
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_damage_is_no_witness(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / jobdb.NAME
    path.write_bytes(content)
    assert (jobdb.read(path).rows, jobdb.read(path).damaged) == ((), True)
    with pytest.raises(IntakeError, match="not a database of AI Toolkit's jobs"):
        jobdb.read_named(path)


@pytest.mark.parametrize("at", range(100, 8000, 700))
def test_a_damaged_page_never_crashes(tmp_path: Path, at: int) -> None:
    path = database(tmp_path / jobdb.NAME, *({"id": str(n), "info": "x" * 500} for n in range(20)))
    raw = bytearray(path.read_bytes())
    raw[at : at + 300] = b"\xa5" * 300
    path.write_bytes(raw)
    assert all(isinstance(row.info, str) for row in jobdb.read(path).rows)


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE VIEW Job AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, id AS name FROM n",
        "CREATE TABLE Job (a TEXT)",
        "CREATE TABLE Jobs (id TEXT, name TEXT)",
    ],
)
def test_what_is_not_the_table_of_jobs_is_refused(tmp_path: Path, schema: str) -> None:
    path = tmp_path / jobdb.NAME
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(schema)
    assert jobdb.read(path).damaged


def test_huge_and_odd_values_are_bounded(tmp_path: Path) -> None:
    path = database(
        tmp_path / jobdb.NAME,
        {"info": "x" * 3_000_000, "job_config": "{" * 3_000_000, "step": -5, "total_steps": "many"},
        {"id": "2", "info": b"\xff\xfe", "name": 7, "status": "error\x1b[31m", "step": 2**60},
        {"id": "3", "step": "250"},
    )
    third, second, first = jobdb.read(path).rows
    assert len(first.info) == jobdb.MAX_INFO
    assert (first.config, first.step, first.total_steps) == (None, None, None)
    assert (second.info, second.status, second.step) == ("", "error", None)
    assert third.step == 250


def test_work_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobdb, "MAX_INSTRUCTIONS", 200)
    path = database(tmp_path / jobdb.NAME, *({"id": str(n)} for n in range(500)))
    started = time.monotonic()
    assert jobdb.read(path).damaged
    assert time.monotonic() - started < 5


def test_only_the_newest_jobs_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobdb, "MAX_ROWS", 3)
    path = database(tmp_path / jobdb.NAME, *({"id": str(n)} for n in range(10)))
    assert [row.id.reveal() for row in jobdb.read(path).rows] == ["9", "8", "7"]


def test_a_name_with_signs_of_an_address_is_only_a_name(tmp_path: Path) -> None:
    path = database(tmp_path / "a b?mode=rwc#x" / "aitk%20_db.db", {})
    assert len(jobdb.read(path).rows) == 1


def test_one_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(IntakeError, match="not a file"):
        jobdb.read_named(tmp_path / "none.db")
    with pytest.raises(IntakeError, match="not a file"):
        jobdb.read_named(tmp_path)
