"""What a console without our characters, without colour, or without letters of the language is given."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from postmortem.cli import output
from postmortem.cli.errors import Failure
from tests.simulate import config, head, training

LOG = (head(config()).replace("mugs", "머그컵") + training(400, {0, 1, 2, 3})).encode()
COMMAND = [sys.executable, "-m", "postmortem"]


def on(encoding: str, *arguments: str, stdin: bytes = LOG) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("encoding", ["cp437", "cp850", "cp1252", "cp949", "ascii"])
def test_every_command_speaks_on_every_code_page(encoding: str) -> None:
    for arguments in (
        ("--help",),
        ("analyze", "--help"),
        ("explain",),
        ("explain", "early_step"),
        ("explain", "reduce_batch_size"),
    ):
        done = on(encoding, *arguments)
        assert done.returncode == 0
        assert b"?" not in done.stdout.replace(b"(?", b"").replace(b"]?", b"").replace(b")?", b"")
        assert done.stdout.decode(encoding)
    report = on(encoding).stdout.decode(encoding)
    assert report.startswith("GPU out of memory")
    assert "? (batch skipped)" not in report


def test_json_loses_nothing_on_a_code_page() -> None:
    whole, escaped = on("utf-8", "--format", "json"), on("cp437", "--format", "json", "--lang", "ko")
    name = json.loads(whole.stdout)["run"]["job_name"]
    assert name == "머그컵"
    assert json.loads(escaped.stdout)["run"]["job_name"] == name
    assert json.loads(escaped.stdout)["lang"] == "ko"
    assert escaped.stderr == b""


def test_korean_where_it_cannot_be_shown_is_english_and_said(tmp_path: Path) -> None:
    done = on("cp437", "--lang", "ko")
    assert done.stdout.startswith(b"GPU out of memory")
    assert done.stderr.count(b"\n") == 1
    assert b"cp437" in done.stderr
    assert on("cp949", "--lang", "ko").stdout.decode("cp949").startswith("첫 학습 스텝")
    out = tmp_path / "report.txt"
    done = on("cp437", "--lang", "ko", "-o", str(out))
    assert (done.returncode, done.stderr) == (1, b"")
    assert out.read_text(encoding="utf-8").startswith("첫 학습 스텝")
    explained = on("cp1252", "explain", "early_step", "--lang", "ko")
    assert explained.returncode == 0
    assert b"cp1252" in explained.stderr


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    in_terminal: Callable[..., tuple[int, bytes]], environment: dict[str, str], coloured: bool
) -> None:
    _, shown = in_terminal(*COMMAND, stdin=LOG, **environment)
    assert (b"\x1b[" in shown) == coloured


def test_colour_can_be_forced_into_a_pipe() -> None:
    for force, coloured in (("1", True), ("0", False)):
        done = subprocess.run(
            COMMAND, input=LOG, capture_output=True, env={**os.environ, "FORCE_COLOR": force}, timeout=60, check=False
        )
        assert (b"\x1b[" in done.stdout) == coloured


class Reluctant(io.RawIOBase):
    """A pipe whose writes take little, and at the end none."""

    def __init__(self, most: int) -> None:
        self.taken = b""
        self._most = most

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int | None:
        part = bytes(data[: min(7, self._most - len(self.taken))])
        self.taken += part
        return len(part) or None


@pytest.mark.parametrize("kind", ["text", "json", "html"])
def test_an_unbuffered_stdout_gets_all_of_it(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With PYTHONUNBUFFERED a write may be cut short, as where Ctrl-Z stops the command at a full pipe."""
    text = '{"a": "' + "mugs ✓ " * 30 + '"}\n'
    for write in (partial(output.write, text, None, kind=kind), partial(output.write_diff, text)):
        pipe = Reluctant(most=10_000)
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "utf-8", write_through=True))  # type: ignore[type-var]
        write()
        assert pipe.taken == text.encode()
        # who takes no more, and lets nobody wait
        pipe = Reluctant(most=50)
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "utf-8", write_through=True))  # type: ignore[type-var]
        with pytest.raises(Failure, match="stdout: cannot write: "):
            write()
