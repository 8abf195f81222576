"""A further language needs files only: with a made-up one, no word of ours in English comes out of any command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from postmortem.knowledge.schema import Knowledge
from tests.simulate import config, finished, head, training

LITTLE = re.compile(
    r"\b(?:the|of|and|with|was|is|at|line|lines|step|steps|from|peak|about|then|cost|where|or|no|not|for|this|by|page)\b"
)
FAILING = head(config(train__gradient_checkpointing=False)) + training(400, {0, 1, 2, 3})


def made_up(text: str) -> str:
    """The text in letters that no English word has; what is filled in, and the breaks, stay."""
    letters = {ord(letter): chr(ord(letter) + 0x1D5D4 - ord("A")) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    letters |= {ord(letter): chr(ord(letter) + 0x1D5EE - ord("a")) for letter in "abcdefghijklmnopqrstuvwxyz"}
    parts = re.split(r"(\{[\w.]+[}?])", text)
    return "".join(part if part.startswith("{") else part.translate(letters) for part in parts)


@pytest.fixture(scope="module")
def pack(knowledge: Knowledge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    (folder / "text" / "fr").mkdir(parents=True)
    texts = {key: made_up(text) for key, text in knowledge.texts["en"].items()}
    (folder / "text" / "fr" / "all.yaml").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    return folder


def run(pack: Path, *arguments: str, lang: str = "fr") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "postmortem", *arguments, "--lang", lang, "--patterns", str(pack)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )


def english(text: str) -> list[str]:
    """Lines with words of English that are not quoted from a log."""
    quoted = ("OOM during", "Error running", "raise ", "BaseSDTrainProcess")
    text = re.sub(r"\S*/\S*_\S*", "", text)  # the paths of this test
    return [line for line in text.splitlines() if LITTLE.search(line) and not any(part in line for part in quoted)]


def test_every_command_speaks_it(pack: Path, tmp_path: Path) -> None:
    failed, retry, job = tmp_path / "f.log", tmp_path / "r.log", tmp_path / "job.json"
    failed.write_text(FAILING, encoding="utf-8", newline="")
    retry.write_text(head(config()) + training(40, []) + finished(), encoding="utf-8", newline="")
    job.write_text(
        json.dumps({"job": "extension", "config": {"name": "mugs", "process": [config()]}}), encoding="utf-8"
    )
    for arguments, statuses in (
        ((str(failed),), {1}),
        ((str(failed), "--format", "markdown"), {1}),
        (("compare", str(failed), str(retry)), {0}),
        (("compare", str(failed), str(retry), "--format", "markdown"), {0}),
        (("check", str(job), "--gpu", "8", "--log", str(retry)), {0}),
        (("fix", str(failed)), {0}),
        (("explain",), {0}),
        (("explain", "enable_gradient_checkpointing"), {0}),
        (("explain", "bucket_spike"), {0}),
    ):
        done = run(pack, *arguments)
        assert done.returncode in statuses, (arguments, done.stderr)
        told = done.stderr if arguments[0] == "fix" else done.stdout + done.stderr  # a diff is not in any language
        assert english(told) == [], arguments
        assert any(ord(letter) > 0x1D5D0 for letter in told)


def test_the_check_for_english_can_fail() -> None:
    assert english("the peak of this") and not english(made_up("the peak of this"))


def test_a_language_without_files_is_refused(pack: Path) -> None:
    done = run(pack, "explain", "bucket_spike", lang="xx")
    assert (done.returncode, done.stdout) == (2, "")
    assert "have en, fr, ko" in done.stderr


def test_the_default_is_english_whatever_the_environment_says(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "postmortem"],
        input=FAILING,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "LANG": "ko_KR.UTF-8", "LC_ALL": "ko_KR.UTF-8", "PYTHONIOENCODING": "utf-8"},
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("GPU out of memory")
