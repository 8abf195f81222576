"""JSON and zips of strangers are counted before they are built."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from postmortem.bounded import TooMuch, ZipFile, load_json
from postmortem.bundle import archive
from postmortem.intake import dataset, outputs
from postmortem.intake.jsonlines import texts
from postmortem.patch import load as load_job
from postmortem.verify import sent


def test_json_is_counted_first() -> None:
    assert load_json(b'{"a": [1, 2]}', 5) == {"a": [1, 2]}
    with pytest.raises(TooMuch, match="more than 2 values"):
        load_json(b"[1,2,3]", 2)
    assert load_json(b"[" + b"9" * 5_000 + b"]", 1) == [None]


def test_a_sent_report_of_brackets_alone_is_refused() -> None:
    with pytest.raises(sent.BadReport, match="more than 3000000 values"):
        sent.parse(b"[" + b"[]," * 2_000_000 + b"0]")
    with pytest.raises(sent.BadReport, match="no report holds"):
        sent.parse(b'{"a": ' + b"9" * 100_000 + b"}")


def test_a_size_database_that_is_too_large_measures_nothing(tmp_path: Path) -> None:
    (tmp_path / dataset.NAME).write_bytes(b'{"a.jpg": [' + b"[]," * 2_000_000 + b"0]}")
    found = dataset.read(tmp_path)
    assert (found.sizes, found.whole) == ((), False)
    (tmp_path / dataset.NAME).write_text(json.dumps({"a.jpg": [512, 768, "x"]}).replace("512", "5" * 9_000))
    assert dataset.read(tmp_path).unread == 1


def test_a_checkpoint_whose_header_is_too_large_is_not_called_torn(tmp_path: Path) -> None:
    header = b'{"a": [' + b"[]," * 1_000_000 + b"0]}"
    (tmp_path / "job.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    found = outputs.witness(tmp_path)
    assert found is not None
    assert [one.state for one in found.checkpoints] == [outputs.UNCHECKED]


def test_digits_without_end() -> None:
    digits = "9" * 100_000
    record = json.dumps({"log": "one\n", "time": 1}).replace("1", digits).encode()
    assert b"".join(texts([record + b"\n"])) == b"one\n"
    assert load_job('{"train": {"steps": ' + digits + "}}") == {"train": {"steps": digits}}


def test_a_ticket_that_is_all_directory_is_refused() -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as packed:
        for index in range(2_000):
            packed.writestr(f"{index}{'x' * 60}", b"")
    with pytest.raises(archive.BadBundle):
        archive.unpack(held.getvalue())
    with pytest.raises(TooMuch):
        zipfile.ZipFile(ZipFile(io.BytesIO(held.getvalue()), 128 << 10))
