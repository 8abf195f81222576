"""`batch` with another engine: what is wrong is one line, and never a half-written data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.cli.main import run
from tests.fleet import trees


@pytest.mark.parametrize("options", [["--engine", "dask"], ["--scheduler", "tcp://127.0.0.1:9"]])
def test_engine_and_scheduler_go_together(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["batch", str(tmp_path), *options]) == 2
    assert "--engine dask and --scheduler ADDRESS go together" in capsys.readouterr().err


def test_a_data_set_is_asked_afterwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow")
    options = [
        "--engine",
        "dask",
        "--scheduler",
        "tcp://127.0.0.1:9",
        "-o",
        str(tmp_path / "out"),
        "--where",
        "step > 3",
    ]
    assert run(["batch", str(tmp_path), *options]) == 2
    assert "ask it afterwards" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_batch_reads_a_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("POSTMORTEM_NO_CACHE", "1")
    files = fsspec.filesystem("memory")
    files.put(str(trees.mixed(tmp_path / "runs")), "memory://shop/runs", recursive=True)
    try:
        assert run(["batch", "memory://shop/runs", "--workers", "1", "--format", "csv"]) == 0
    finally:
        files.rm("memory://shop", recursive=True)
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 14
    assert rows[5].startswith("run_0,memory://shop/runs/run_0,analysed,")


def test_a_store_that_is_not_there_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("fsspec")
    assert run(["batch", "memory://shop/none"]) == 3
    assert "memory://shop/none: not found there" in capsys.readouterr().err
