"""How far a long input is: for a person at a terminal only, and gone before the report."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from postmortem.cli import progress
from tests.simulate import config, finished, head, training

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
COMMAND = [sys.executable, "-m", "postmortem"]
LONG = (head(config()) + training(40, [])).encode() + b"a line of no meaning\n" * 200_000 + finished().encode()


def test_a_long_input_is_counted_and_the_line_is_taken_away(in_terminal: Callable[..., tuple[int, bytes]]) -> None:
    status, shown = in_terminal(*COMMAND, stdin=LONG, slow=1.3)
    assert status == 0
    drawn, _, report = shown.partition(b"\x1b[1;32mThe run completed")
    assert re.search(rb"[1-4]\.\d MiB  \d+(\.\d)? [KM]iB/s", drawn)
    assert drawn.endswith((b"\x1b[2K", b"\x1b[?25h"))
    assert drawn.count(b"\n") <= 1
    assert b"MiB/s" not in report


@pytest.mark.parametrize("arguments", [("--tee",), ()])
def test_nothing_is_drawn_for_short_ones_dumb_ones_and_with_tee(
    in_terminal: Callable[..., tuple[int, bytes]], arguments: tuple[str, ...]
) -> None:
    slow = 1.3 if arguments else 0
    _, shown = in_terminal(*COMMAND, *arguments, stdin=LONG, slow=slow, TERM="dumb" if not arguments else "xterm")
    assert b"B/s" not in shown


def test_nothing_is_drawn_without_a_terminal() -> None:
    done = subprocess.run([*COMMAND], input=LONG, capture_output=True, timeout=60, check=False)
    assert done.stderr == b""


def test_a_file_is_counted_against_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from postmortem.intake import open_path

    class Bar:
        def start(self) -> None:
            """As Rich's."""

        stop = start

        def update(self, task: int, *, completed: int, said: str, refresh: bool) -> None:
            seen.append((completed, said))

    seen: list[tuple[int, str]] = []
    totals: list[int | None] = []

    def bar(total: int | None) -> Bar:
        totals.append(total)
        return Bar()

    monkeypatch.setattr(progress, "WAIT_S", 0.0)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    monkeypatch.setattr(progress, "_seen", lambda: True)
    monkeypatch.setattr(progress, "_bar", bar)
    path = tmp_path / "run.log"
    path.write_bytes(LONG.decode().encode("utf-16"))
    opened = open_path(path)
    with progress.reading(opened.logs) as told:
        for log in opened.logs:
            for _ in log.chunks(told):
                pass
    size = path.stat().st_size
    assert totals == [size]
    assert seen[-1][0] == size
    assert re.fullmatch(r"8\.\d MiB / 8\.\d MiB  [\d.]+ [MG]iB/s  0:00", seen[-1][1])
