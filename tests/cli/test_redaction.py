"""Redaction as a shell sees it: when it is on, what is said of it, and the key to the labels."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from tests.cli.test_main import postmortem
from tests.simulate import config, finished, head, training

SETTINGS = config(datasets=[{"folder_path": "/srv/brightwell/faces", "resolution": [512]}], trigger_word="t4msin")
FAILING = head(SETTINGS, "brightwell_spring") + training(400, {0, 1, 2, 3}).replace("mugs", "brightwell_spring")
FINE = head(SETTINGS, "brightwell_spring") + training(40, []) + finished("brightwell_spring")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "brightwell_run.log"
    path.write_text(FAILING, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("arguments", "hidden"),
    [
        (["--format", "markdown"], True),
        (["--format", "markdown", "--no-redact"], False),
        (["--format", "json"], False),
        (["--format", "json", "--redact"], True),
        (["--format", "terminal"], False),
        (["--format", "terminal", "--redact"], True),
    ],
)
def test_what_leaves_is_redacted_and_says_so(arguments: list[str], hidden: bool, log: Path) -> None:
    done = postmortem(str(log), *arguments)
    out, said = done.stdout.decode(), done.stderr.decode()
    assert ("brightwell" not in out) is hidden
    assert ("labels" in out) is hidden
    assert ("--no-redact" in said) is hidden
    assert len(said.splitlines()) == int(hidden)


def test_the_key_is_the_owner_s_alone_and_undoes_the_labels(log: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text("old", encoding="utf-8")
    key.chmod(0o644)
    done = postmortem(str(log), "--format", "json", "--redact", "--redaction-map", str(key))
    labels = json.loads(key.read_text(encoding="utf-8"))["labels"]
    report = json.loads(done.stdout)
    assert labels[report["run"]["job_name"]] == "brightwell_spring"
    assert "/srv/brightwell/faces" in labels.values()
    assert str(key) in done.stderr.decode()
    if os.name == "posix":
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "json"], "nothing is redacted"),
        (["--format", "markdown", "--no-redact"], "nothing is redacted"),
    ],
)
def test_a_key_needs_redaction(arguments: list[str], says: str, log: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    done = postmortem(str(log), *arguments, "--redaction-map", str(key))
    assert (done.returncode, done.stdout) == (2, b"")
    assert says in done.stderr.decode()
    assert not key.exists()


def test_the_key_is_never_written_over_an_input_or_the_report(log: Path, tmp_path: Path) -> None:
    before = log.read_bytes()
    out = tmp_path / "ticket.md"
    for key, more in ((log, []), (out, ["-o", str(out)])):
        done = postmortem(str(log), "--format", "markdown", *more, "--redaction-map", str(key))
        assert (done.returncode, done.stdout) == (2, b"")
    assert log.read_bytes() == before
    assert not out.exists()


def test_a_comparison_and_a_check_are_redacted_too(log: Path, tmp_path: Path) -> None:
    retry = tmp_path / "brightwell_retry.log"
    retry.write_text(FINE, encoding="utf-8", newline="")
    job = {"job": "extension", "config": {"name": "brightwell_spring", "process": [SETTINGS]}}
    file = tmp_path / "brightwell.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    for arguments in (
        ["compare", str(log), str(retry), "--format", "markdown"],
        ["compare", str(log), str(retry), "--redact"],
        ["compare", str(log), str(retry), "--format", "json", "--redact"],
        ["check", str(file), "--redact", "--log", str(retry)],
        ["check", str(file), "--redact", "--format", "json"],
    ):
        done = postmortem(*arguments)
        assert done.returncode == 0
        assert "brightwell" not in done.stdout.decode().casefold()
        assert "labels" in done.stdout.decode()


def test_both_forms_of_one_run_have_the_same_labels(log: Path, tmp_path: Path) -> None:
    keys = []
    for form in ("json", "markdown"):
        key = tmp_path / f"{form}.key"
        postmortem(str(log), "--format", form, "--redact", "--redaction-map", str(key))
        keys.append(json.loads(key.read_text(encoding="utf-8"))["labels"])
    assert keys[0].items() <= keys[1].items()  # an excerpt may hold more


@pytest.mark.parametrize("format", ["terminal", "json", "markdown", "html"])
def test_half_a_character_in_a_config_breaks_nothing(format: str, tmp_path: Path) -> None:
    """A config in JSON can escape half of a pair; no encoding has it."""
    settings = config(
        trigger_word="half\ud83dtamsin", datasets=[{"folder_path": "/srv/\udc00 tamsin", "resolution": [512]}]
    )
    settings["sample"]["samples"] = [{"prompt": "tamsin at \ud800 the \udfff harbour"}]
    settings["\ud800key"] = {"folder_path": "/srv/\ud800 tamsin"}
    log = tmp_path / "run.log"
    log.write_text(head(settings, "mugs") + training(400, {0, 1, 2, 3}), encoding="ascii", newline="")
    done = postmortem(str(log), "--format", format, "--redact", "--redaction-map", str(tmp_path / "key.json"))
    assert done.returncode == 1, done.stderr
    assert "tamsin" not in done.stdout.decode()
    assert postmortem("bundle", str(log), "-o", str(tmp_path / "t.zip")).returncode == 0
    assert postmortem("verify", str(tmp_path / "t.zip"), str(log)).returncode == 0
