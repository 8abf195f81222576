"""`postmortem compare` as a shell sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_main import postmortem
from tests.simulate import config, finished, head, training

FIXTURES = Path(__file__).parents[2] / "fixtures"
FAILED = head(config(train__gradient_checkpointing=False)) + training(40, {0, 1, 2, 3})
FINE = head(config()) + training(40, []) + finished()


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str]:
    names = []
    for name, text in (("failed.log", FAILED), ("retry.log", FINE)):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        names.append(str(tmp_path / name))
    return names[0], names[1]


def test_two_logs(logs: tuple[str, str]) -> None:
    done = postmortem("compare", *logs, "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["conclusion"]["id"] == "cause_confirmed"


@pytest.mark.parametrize(
    ("name", "conclusion"),
    [
        ("folder-retry-succeeded", "variable_proven"),
        ("folder-second-attempt-skips", "later"),
        ("appended-oom-then-success/log.txt", "cause_confirmed"),
    ],
)
def test_one_input_with_several_attempts(name: str, conclusion: str) -> None:
    done = postmortem("compare", str(FIXTURES / name), "--format", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["conclusion"]["id"] == conclusion


def test_a_run_folder_with_three_attempts(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    again = head(config(train__gradient_checkpointing=False, train__batch_size=2)) + training(40, {0, 1, 2, 3})
    first = head(config(train__gradient_checkpointing=False, train__batch_size=4)) + training(40, {0, 1, 2, 3})
    last = head(config(train__batch_size=2)) + training(40, []) + finished()
    for name, text in (("logs/0_log.txt", first), ("logs/1_log.txt", again), ("log.txt", last)):
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    done = postmortem("compare", str(tmp_path), "--format", "json")
    found = json.loads(done.stdout)
    assert [item["conclusion"] for item in found["history"]] == [None, "not_enough", "cause_confirmed"]
    assert [item["id"] for item in found["helped"]] == ["gradient_checkpointing"]
    assert [item["id"] for item in found["in_vain"]] == ["batch_size"]


def test_configs_are_given_in_the_order_of_the_logs(tmp_path: Path) -> None:
    arguments = []
    for name, text, on in (("failed", FAILED, False), ("retry", FINE, True)):
        settings = json.dumps(config(train__gradient_checkpointing=on))
        (tmp_path / f"{name}.json").write_text(settings, encoding="utf-8")
        dump = json.dumps(config(train__gradient_checkpointing=on), indent=4)
        (tmp_path / f"{name}.log").write_text(text.replace(dump, ""), encoding="utf-8", newline="")
        arguments += [str(tmp_path / f"{name}.log"), "--config", str(tmp_path / f"{name}.json")]
    done = postmortem("compare", *arguments, "--format", "json")
    assert json.loads(done.stdout)["conclusion"]["id"] == "cause_confirmed"


def test_a_ticket_is_written_in_korean_and_redacted(logs: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "ticket.md"
    done = postmortem("compare", *logs, "--format", "markdown", "--lang", "ko", "-o", str(target))
    assert (done.returncode, done.stdout) == (0, b"")
    assert target.read_text(encoding="utf-8").startswith("### 확인됨")


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["{failed}"], 2, b"second log"),
        ([], 2, b"FAILED"),
        (["{failed}", "{retry}", "--lang", "xx"], 2, b"--lang"),
        (["{failed}", "--config", "a", "--config", "b"], 2, b"--config"),
        (["-", "-"], 2, b"standard input"),
        (["{failed}", "/no/such.log"], 3, b"no such file"),
    ],
)
def test_failures_are_one_line(logs: tuple[str, str], arguments: list[str], status: int, says: bytes) -> None:
    filled = [item.format(failed=logs[0], retry=logs[1]) for item in arguments]
    done = postmortem("compare", *filled, stdin=b"")
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (status, b"", 1)
    assert says in done.stderr
