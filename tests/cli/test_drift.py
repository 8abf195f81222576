"""`patterns drift` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.test_main import postmortem
from tests.drift.checkout import write


def test_what_differs_is_listed_and_is_status_1(tmp_path: Path) -> None:
    write(tmp_path, toolkit__new="print('A wording nobody knows')\nprint('Model Loaded')\n")
    done = postmortem("patterns", "drift", str(tmp_path))
    assert done.returncode == 1
    assert b"toolkit/new.py:1  print  A wording nobody knows\n" in done.stdout
    assert b"Model Loaded" not in done.stdout
    assert done.stderr == b""


def test_json_is_one_document(tmp_path: Path) -> None:
    write(tmp_path, toolkit__new="raise RuntimeError('Out of patience')\n")
    done = postmortem("patterns", "drift", str(tmp_path), "--format", "json", "--date", "2026-08-21")
    document = json.loads(done.stdout)
    assert document["drift"] is True
    assert document["uncovered"] == []
    assert document["excluded"]["raised.not_memory"] == 1


def test_what_is_no_checkout_is_one_line_and_status_3(tmp_path: Path) -> None:
    done = postmortem("patterns", "drift", str(tmp_path))
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"no AI Toolkit checkout" in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_wrong_date_is_bad_usage(tmp_path: Path) -> None:
    assert postmortem("patterns", "drift", str(write(tmp_path)), "--date", "soon").returncode == 2
