"""Which run a path means."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from postmortem.intake import Intake, IntakeError, open_path

LOG = "Running 1 job\nRunning  1 process\nModel Loaded\n"


def run_folder(path: Path, log: str = LOG) -> Path:
    """A run folder as AI Toolkit leaves it."""
    (path / "samples").mkdir(parents=True)
    (path / "log.txt").write_text(log)
    (path / "config.yaml").write_text("job: extension")
    (path / f"{path.name}_000000250.safetensors").write_bytes(b"x" * 20)
    (path / "samples" / "1770000000000__000000250_0.jpg").write_bytes(b"x")
    return path


def read(opened: Intake) -> str:
    return b"".join(opened.logs[-1].chunks()).decode()


def test_a_training_folder_with_one_run_is_that_run(tmp_path: Path) -> None:
    run_folder(tmp_path / "mugs")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("not a log")
    opened = open_path(tmp_path)
    assert opened.folder == tmp_path / "mugs"
    assert [log.name for log in opened.logs] == ["log.txt"]
    assert [config.name for config in opened.configs] == ["config.yaml"]


def test_a_training_folder_with_several_runs_is_refused_in_natural_order(tmp_path: Path) -> None:
    for name in ("run_10", "run_2", "run_1", "a", "b", "c", "d"):
        run_folder(tmp_path / name)
    with pytest.raises(IntakeError) as raised:
        open_path(tmp_path)
    assert str(raised.value).endswith("holds 7 run folders (a, b, c, d, run_1 and 2 more); give one of them")


@pytest.mark.parametrize("below", ["", "ai-toolkit"])
def test_a_toolkit_root_is_searched_in_its_output(tmp_path: Path, below: str) -> None:
    root = tmp_path / below
    run_folder(root / "output" / "mugs")
    (root / "run.py").write_text("")
    (root / "requirements.txt").write_text("torch")
    assert open_path(tmp_path).folder == root / "output" / "mugs"


@pytest.mark.parametrize(
    "inner",
    ["samples", "samples/1770000000000__000000250_0.jpg", "mugs_000000250.safetensors", "logs", "latents", "pid.txt"],
)
def test_what_lies_in_a_run_folder_means_the_run(tmp_path: Path, inner: str) -> None:
    run = run_folder(tmp_path / "mugs")
    (run / "latents").mkdir()
    (run / "logs").mkdir()
    (run / "logs" / "0_log.txt").write_text("the first attempt")
    (run / "pid.txt").write_text("41")
    opened = open_path(run / inner)
    assert opened.folder == run
    assert [log.name for log in opened.logs] == ["logs/0_log.txt", "log.txt"]


def test_weights_that_are_in_no_run_mean_no_run(tmp_path: Path) -> None:
    run_folder(tmp_path / "below" / "mugs")
    weights = tmp_path / "mugs.safetensors"
    weights.write_text(LOG)
    assert open_path(weights).folder is None


@pytest.mark.parametrize("name", ["config.yaml", "my_job.yml", "job.json"])
def test_a_loose_log_has_the_config_beside_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "run.log").write_text(LOG)
    (tmp_path / name).write_text("job: extension")
    opened = open_path(tmp_path)
    assert [log.name for log in opened.logs] == ["run.log"]
    assert [config.name for config in opened.configs] == [name]


def test_two_strange_configs_are_no_config(tmp_path: Path) -> None:
    for name in ("run.log", "one.yaml", "two.yaml"):
        (tmp_path / name).write_text(LOG)
    assert open_path(tmp_path).configs == ()


def test_the_log_of_a_run_folder_knows_its_folder(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "mugs")
    assert open_path(run / "log.txt").folder == run
    (tmp_path / "log.txt").write_text(LOG)
    assert open_path(tmp_path / "log.txt").folder is None


def test_a_folder_named_like_a_log_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "log.txt").mkdir()
    (tmp_path / "config.yaml").mkdir()
    with pytest.raises(IntakeError, match=r"no log\.txt"):
        open_path(tmp_path)


def test_links_that_lead_out_are_passed_over(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(LOG)
    run = run_folder(tmp_path / "runs" / "mugs")
    for name in ("config.yaml", "log.txt"):
        (run / name).unlink()
        (run / name).symlink_to(secret)
    (run / "inner.txt").write_text(LOG + "inner")
    opened = open_path(run)
    assert [log.name for log in opened.logs] == ["inner.txt"]
    assert opened.configs == ()
    (run / "log.txt").unlink()
    (run / "log.txt").symlink_to(run / "inner.txt")
    assert read(open_path(run)).endswith("inner")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_in_a_folder_are_never_opened(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "mugs")
    for name in ("config.yaml", "mugs_000000250.safetensors"):
        (run / name).unlink()
        os.mkfifo(run / name)
    for name in ("optimizer.pt", "aitk_db.db", "loss_log.db", "mugs.safetensors"):
        os.mkfifo(run / name)
    opened = open_path(run)
    assert opened.configs == ()
    witness = opened.witness()
    assert witness is not None
    assert (witness.checkpoints, witness.optimizer) == ((), None)
    assert opened.database() is None


def test_a_name_that_acts_is_shown_harmless(tmp_path: Path) -> None:
    for name in ("a\x1b[31m", "b\n"):
        run_folder(tmp_path / name)
    with pytest.raises(IntakeError) as raised:
        open_path(tmp_path)
    assert "\x1b" not in str(raised.value)
    assert "\n" not in str(raised.value)
