"""`postmortem check` as a shell sees it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.test_main import postmortem
from tests.simulate import config, finished, head, training


@pytest.fixture
def job(tmp_path: Path) -> str:
    path = tmp_path / "config.yaml"
    value = {"job": "extension", "config": {"name": "[name]", "process": [config(train__gradient_checkpointing=False)]}}
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return str(path)


def test_a_job_that_does_not_fit_is_checked_all_the_same(job: str) -> None:
    done = postmortem("check", job, "--gpu", "24")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Does not fit")


def test_json_has_the_documented_keys_and_the_forecast_of_the_report(job: str, tmp_path: Path) -> None:
    done = postmortem("check", job, "--gpu", "24", "--format", "json")
    found = json.loads(done.stdout)
    text = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    keys = {*found, *found["jobs"][0], *found["jobs"][0]["phases"][0], *found["jobs"][0]["trial"]}
    assert [key for key in sorted(keys) if not re.search(rf"[`.]{key}(?:\[\])?`", text)] == []
    log = tmp_path / "run.log"
    log.write_text(head(config(train__gradient_checkpointing=False)) + training(40, {0, 1, 2, 3}), encoding="utf-8")
    report = json.loads(postmortem("analyze", str(log), "--format", "json", "--exit-zero").stdout)
    assert set(found["jobs"][0]["phases"][0]["forecast"]) == set(report["forecast"])


def test_with_the_log_of_a_stable_run_in_korean_into_a_file(job: str, tmp_path: Path) -> None:
    log = tmp_path / "stable.log"
    log.write_text(head(config()) + training(40, []) + finished(), encoding="utf-8", newline="")
    target = tmp_path / "check.txt"
    done = postmortem("check", job, "--log", str(log), "--lang", "ko", "-o", str(target))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert "로그의 실행이 메모리 부족 없이 완료됨" in target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, b"no such file"),
        (b"dear diary", b"not a job config"),
        (b"a: [1", b"not YAML"),
        (b"{", b"not JSON"),
        (b"config: {process: []}", b"holds no process"),
        (b"x: !!python/object/apply:os.system [ls]", b"not YAML"),
        (b"", b"not a job config"),
    ],
)
def test_what_is_no_job_config_is_one_line_and_status_3(tmp_path: Path, content: bytes | None, says: bytes) -> None:
    path = tmp_path / "c.yaml"
    if content is not None:
        path.write_bytes(content)
    done = postmortem("check", str(path))
    assert (done.returncode, done.stdout) == (3, b"")
    assert says in done.stderr and done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "arguments", [[], ["--gpu", "0"], ["--gpu", "x"], ["--lang", "fr"], ["--format", "yaml"], ["--format", "markdown"]]
)
def test_bad_usage_is_status_2(job: str, arguments: list[str]) -> None:
    done = postmortem("check", *([job, *arguments] if arguments else []))
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_log_that_is_none_is_status_3(job: str, tmp_path: Path) -> None:
    assert postmortem("check", job, "--log", str(tmp_path / "none.log")).returncode == 3
