"""Nothing that was read is written over, whatever name led to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postmortem.cli.main import run
from tests.simulate import config, finished, head, training

LOG = (head(config()) + training(4, ()) + finished()).encode()
CONFIG = b"job: extension\nconfig:\n  name: job\n  process:\n  - type: sd_trainer\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run folder with all that AI Toolkit leaves, a pack, a dataset, and other names of the log."""
    for name, content in {
        "job/log.txt": LOG,
        "job/logs/0_log.txt": LOG,
        "job/config.yml": CONFIG,
        "job/config.json": b"{}",
        "job/job.safetensors": b"",
        "job/samples/1__000000001_0.png": b"",
        "loose/train.log": LOG,
        "loose/mine.yaml": CONFIG,
        "retry/log.txt": LOG,
        "pk/a.yaml": b"kept_words: []\n",
        "packed/own.yaml": b"kept_words: []\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "fl").mkdir()
    (tmp_path / "fl" / "j").symlink_to("../job")
    (tmp_path / "link.log").symlink_to("loose/train.log")
    os.link(tmp_path / "loose" / "train.log", tmp_path / "hard.log")
    os.link(tmp_path / "loose" / "mine.yaml", tmp_path / "hard.yaml")
    (tmp_path / "pk" / "linked.yaml").symlink_to("../packed/own.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "job/job.safetensors -o job/log.txt",
        "job/samples -o job/log.txt",
        "job/logs -o job/log.txt",
        "job/samples/1__000000001_0.png -o job/logs/0_log.txt",
        "job/log.txt -o job/config.yml",
        "job/log.txt -o job/config.json",
        "file://{home}/job/log.txt -o {home}/job/log.txt",
        "file://{home}/loose/train.log -o loose/train.log",
        "local://{home}/loose/train.log -o loose/train.log",
        "job/log.txt --redact --redaction-map job/config.yml",
        "job/samples --redact --redaction-map job/log.txt",
        "loose --redact --redaction-map hard.log",
        "loose -o loose/train.log",
        "loose -o hard.log",
        "loose -o link.log",
        "loose -o hard.yaml",
        "loose/train.log -o link.log",
        "link.log -o hard.log",
        "loose/train.log --patterns pk -o pk/a.yaml",
        "loose/train.log --patterns pk -o packed/own.yaml",
        "bundle job/samples -o job/log.txt",
        "bundle file://{home}/loose/train.log -o hard.log",
        "bundle loose/train.log -o t.zip --redaction-map link.log",
        "compare job/samples -o job/log.txt",
        "compare job/log.txt retry -o job/config.yml",
        "compare loose/train.log retry -o hard.log",
        "check job/config.yml --log job/samples -o job/log.txt",
        "check loose/mine.yaml --log file://{home}/loose/train.log -o hard.log",
        "batch file://{home}/job -o job/log.txt",
        "batch file://{home}/loose -o loose/train.log",
        "batch fl -o job/log.txt",
        "batch loose -o hard.log",
        "batch loose --groups hard.csv",
        "batch loose --patterns pk -o pk/a.yaml",
        "fix job/log.txt --patterns pk -o pk/a.yaml",
        "fix job -o job/log.txt",
        "fix job/log.txt -o job/config.yml",
        "fix loose -o hard.yaml",
        "fix loose/train.log --config loose/mine.yaml -o hard.yaml",
        "retry/log.txt -o job/log.txt",
        "retry/log.txt -o job/logs/0_log.txt",
    ],
)
def test_no_name_leads_over_an_input(home: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    os.link(home / "loose" / "train.log", home / "hard.csv")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    given = words.format(home=home).split()
    status = run(given if given[0] in ("bundle", "compare", "check", "batch", "fix") else ["analyze", *given])
    told = capsys.readouterr()
    assert (status, told.out) == (2, ""), told.err
    assert "is an input" in told.err and told.err.count("\n") == 1
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_verify_spares_the_log_of_a_run_named_by_another_file(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["analyze", "job", "--format", "json", "-o", "r.json"]) == 0
    assert run(["verify", "r.json", "job/samples", "-o", "job/log.txt"]) == 2
    assert run(["verify", "r.json", "loose", "-o", "hard.log"]) == 2
    assert capsys.readouterr().err.count("is an input") == 2
    assert (home / "job" / "log.txt").read_bytes() == LOG


def test_descriptors_are_names_too(home: Path) -> None:
    for arguments in (["/dev/fd/0", "-o", "loose/train.log"], ["loose/train.log", "-o", "/dev/fd/0"]):
        with Path("loose/train.log").open("r+b") as stdin:
            done = subprocess.run([sys.executable, "-m", "postmortem", *arguments], stdin=stdin, capture_output=True)
        assert (done.returncode, done.stdout) == (2, b""), done.stderr
        assert b"is an input" in done.stderr
        assert Path("loose/train.log").read_bytes() == LOG


def test_an_archive_that_a_batch_reads_is_no_place_for_its_table(home: Path) -> None:
    shutil.make_archive("runs/old", "zip", "retry")
    before = Path("runs/old.zip").read_bytes()
    assert run(["batch", "runs", "--no-cache", "-o", "runs/old.zip"]) == 2
    assert Path("runs/old.zip").read_bytes() == before


@pytest.mark.parametrize(
    "words",
    [
        "job -o job/postmortem.md --format markdown",
        "job/log.txt -o mine.json --format json",
        "loose/train.log -o retry/notes.txt",
    ],
)
def test_what_was_not_read_may_be_replaced(home: Path, words: str) -> None:
    given = words.split()
    Path(given[2]).write_text("an older report", encoding="utf-8")
    assert run(["analyze", *given]) == 0
    assert Path(given[2]).read_text(encoding="utf-8") != "an older report"
