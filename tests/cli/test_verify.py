"""`verify` from the command line: reports as users make and send them."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postmortem.cli.main import run

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOG = FIXTURES / "sizes-old-torch-message" / "log.txt"
FOLDER = FIXTURES / "folder-torn-checkpoint"
Result = tuple[int, dict[str, Any]]


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """A report by `analyze`, in a file."""

    def make(log: Path, *options: str, name: str = "report.json") -> Path:
        target = tmp_path / name
        assert run(["analyze", str(log), "--format", "json", "--exit-zero", "-o", str(target), *options]) == 0
        return target

    return make


@pytest.fixture
def verified(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Status and JSON of a verification."""

    def check(report: Path, log: Path, *options: str) -> Result:
        capsys.readouterr()
        status = run(["verify", str(report), str(log), "--format", "json", *options])
        return status, json.loads(capsys.readouterr().out or "{}")

    return check


def altered(report: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    value = json.loads(report.read_text(encoding="utf-8"))
    change(value)
    report.write_text(json.dumps(value), encoding="utf-8")
    return report


def paths(found: dict[str, Any], which: str = "differs") -> set[str]:
    return {item["path"] for item in found[which]}


@pytest.mark.parametrize("options", [(), ("--redact",), ("--lang", "ko"), ("--gpu", "24"), ("--attempt", "1")])
def test_an_honest_report_is_confirmed(
    options: tuple[str, ...], made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere" / "same.log"
    copy.parent.mkdir()
    shutil.copy(LOG, copy)
    status, found = verified(made(LOG, *options), copy)
    assert (status, found["verdict"], found["differs"], found["unchecked"]) == (0, "same", [], [])
    assert found["report"]["redacted"] is ("--redact" in options)


def test_an_altered_report_is_caught_and_named(made: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    def change(value: dict[str, Any]) -> None:
        value["memory"]["tried_to_allocate"] = 9999.0
        value["failure"]["headline"] = "\x1b[31mAll fine[/red]\x07 \u202e"

    report = altered(made(LOG), change)
    assert run(["verify", str(report), str(LOG)]) == 1
    shown = capsys.readouterr().out
    assert "memory.tried_to_allocate" in shown and "9999" in shown and "(line " in shown
    assert not set(shown) & set("\x1b\x07\u202e")
    assert run(["verify", str(report), str(LOG), "--lang", "ko"]) == 1
    assert "보고서" in capsys.readouterr().out


def test_another_log_does_not_confirm(made: Callable[..., Path], verified: Callable[..., Result]) -> None:
    status, found = verified(made(LOG), FIXTURES / "early-step-cublas" / "log.txt")
    assert status == 1
    assert {"input.bytes", "input.lines"} <= paths(found)
    # a line of evidence is one claim, whether it stands or three things are wrong with it
    evidence = next(group for group in found["groups"] if group["id"] == "evidence")
    sent = json.loads(made(LOG).read_text(encoding="utf-8"))["failure"]["evidence"]
    assert evidence["same"] + evidence["differs"] + evidence["unchecked"] == len(sent)


def test_a_redacted_report_of_a_private_run(
    made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path
) -> None:
    log = tmp_path / "bob.log"
    text = LOG.read_text(encoding="utf-8")
    log.write_text("cd /home/bobby/ai-toolkit\n" + text.replace("/srv/", "/home/alice/"), encoding="utf-8")
    other = tmp_path / "home" / "carol" / "run.log"
    other.parent.mkdir(parents=True)
    shutil.copy(log, other)
    report = made(other, "--redact")
    assert "alice" not in report.read_text(encoding="utf-8")
    status, found = verified(report, log)
    assert (status, found["differs"]) == (0, [])


def test_what_lay_beside_the_log_is_asked_for(
    made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path
) -> None:
    report = made(FOLDER)
    assert verified(report, FOLDER)[0] == 0
    alone = tmp_path / "log.log"
    shutil.copy(FOLDER / "log.txt", alone)
    status, found = verified(report, alone)
    assert status == 1
    assert found["verdict"] == "unproven"
    assert {item["why"] for item in found["unchecked"]} <= {"needs_folder", "needs_config"}
    assert "run.safe_source" in paths(found, "unchecked")
    assert "give_folder" in {hint["id"] for hint in found["hints"]}
    # what needs no folder is still checked
    altered(report, lambda value: value["failure"].update(kind="none"))
    status, found = verified(report, alone)
    assert (status, found["verdict"], paths(found)) == (1, "differs", {"failure.kind"})


def test_a_folder_that_a_report_was_not_made_of_does_not_speak(
    made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path
) -> None:
    alone = tmp_path / "log.log"
    shutil.copy(FOLDER / "log.txt", alone)
    status, found = verified(made(alone), FOLDER / "log.txt")
    assert (status, found["differs"]) == (0, [])


def test_the_named_config_is_needed(made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path) -> None:
    log, config = tmp_path / "run.log", tmp_path / "job.yaml"
    text = LOG.read_text(encoding="utf-8")
    log.write_text(text[text.index("\n}\n") + 3 :], encoding="utf-8")
    config.write_text(
        "job: extension\nconfig:\n  process:\n  - type: sd_trainer\n    train: {batch_size: 3}\n"
        "    model: {arch: flux, name_or_path: x}\n",
        encoding="utf-8",
    )
    report = made(log, "--config", str(config))
    assert verified(report, log, "--config", str(config))[0] == 0
    status, found = verified(report, log)
    assert (status, found["verdict"]) == (1, "unproven")
    assert "config.values[train.batch_size]" in paths(found, "unchecked")
    config.write_text(config.read_text(encoding="utf-8").replace("size: 3", "size: 4"), encoding="utf-8")
    status, found = verified(report, log, "--config", str(config))
    assert "config.values[train.batch_size].value" in paths(found)


def test_options_that_cannot_have_been_are_found(made: Callable[..., Path], verified: Callable[..., Result]) -> None:
    report = altered(made(LOG), lambda value: value["input"]["options"].update(attempt=7, gpu_gib=0.5))
    status, found = verified(report, LOG)
    assert status == 1
    assert {"input.options.attempt", "input.options.gpu_gib"} <= paths(found)


def test_a_report_of_another_version_is_compared_as_far_as_it_goes(
    made: Callable[..., Path], verified: Callable[..., Result]
) -> None:
    def older(value: dict[str, Any]) -> None:
        value["tool"].update(version="0.0.9", patterns="abc")
        value["schema_version"] = "0.9"
        value["failure"]["headline"] = "As it was said then"
        for item in value["failure"]["evidence"]:
            for key in ("pattern", "pattern_version", "start", "end"):
                del item[key]
        del value["input"]["options"], value["input"]["beside"], value["pace"]
        value["gone"] = 1

    report = altered(made(LOG), older)
    status, found = verified(report, LOG)
    assert (status, found["verdict"], found["differs"]) == (1, "unproven", [])
    evidence = {path for path in paths(found, "unchecked") if path.startswith("failure.evidence[")}
    # a key that is not there may be one that the other version does not know, or one that was left out
    assert paths(found, "unchecked") - evidence == {"failure.headline", "gone", "pace"}
    assert {path.rpartition(".")[2] for path in evidence} == {"pattern", "pattern_version", "start", "end"}
    assert "other_version" in {hint["id"] for hint in found["hints"]}
    altered(report, lambda value: value["memory"].update(gpu_total=1.0))
    assert "memory.gpu_total" in paths(verified(report, LOG)[1])


def test_a_report_that_says_nothing_proves_nothing(tmp_path: Path, verified: Callable[..., Result]) -> None:
    report = tmp_path / "report.json"
    tool = {"name": "aitk-postmortem", "version": "0"}
    report.write_text(json.dumps({"tool": tool, "schema_version": "0", "input": {}, "failure": {}}), encoding="utf-8")
    status, found = verified(report, LOG)
    assert (status, found["verdict"]) == (1, "unproven")
    assert {"failure.class", "memory", "remedies"} <= paths(found, "unchecked")


def test_a_claim_that_no_version_here_knows_is_unproven(
    made: Callable[..., Path], verified: Callable[..., Result]
) -> None:
    def newer(value: dict[str, Any]) -> None:
        value["schema_version"] = "9.0"
        value["failure"]["note"] = "x"

    report = altered(made(LOG), newer)
    status, found = verified(report, LOG)
    assert (status, found["verdict"], paths(found, "unchecked")) == (1, "unproven", {"failure.note"})


def test_no_label_hides_a_figure(made: Callable[..., Path], verified: Callable[..., Result]) -> None:
    def hide(value: dict[str, Any]) -> None:
        item = next(one for one in value["failure"]["evidence"] if "Tried to allocate" in one["text"])
        item["text"] = re.sub(r"\d+\.\d+", "<user-9>", item["text"], count=1)
        assert "<user-9>" in item["text"]

    status, found = verified(altered(made(LOG, "--redact"), hide), LOG)
    assert (status, found["verdict"]) == (1, "differs")
    assert any(path.startswith("failure.evidence[") and path.endswith("].text") for path in paths(found))


def test_utf16_of_a_powershell_and_a_log_in_an_archive(
    made: Callable[..., Path], verified: Callable[..., Result], tmp_path: Path
) -> None:
    report = made(LOG)
    report.write_bytes(b"\xff\xfe" + report.read_text(encoding="utf-8").encode("utf-16-le"))
    packed = tmp_path / "run.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(LOG, "run.log")
    assert verified(report, packed)[0] == 0


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\x00\x01", b"PK\x03\x04broken", b'{"a":' * 9999, b"a log"])
def test_what_is_no_report_ends_in_one_line(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "r\x1b[31m.json"
    report.write_bytes(content)
    assert run(["verify", str(report), str(LOG)]) == 3
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and "\x1b" not in shown.err


def test_usage(tmp_path: Path, made: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    report = made(LOG)
    assert run(["verify", str(tmp_path), str(LOG)]) == 3
    assert run(["verify", str(tmp_path / "none.json"), str(LOG)]) == 3
    assert run(["verify", str(report), str(tmp_path / "none.log")]) == 3
    assert run(["verify", "-", str(LOG)]) == 2
    assert run(["verify", str(report)]) == 2
    assert run(["verify", str(report), str(LOG), "-o", str(LOG)]) == 2
    assert run(["verify", str(report), str(LOG), "-o", str(report)]) == 2
    assert run(["verify", str(report), str(LOG), "--lang", "xx"]) == 2
