"""`batch` from the outside: what goes to stdout, what to files, and what is said when something is wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import postmortem.fleet.run as run_module
from postmortem.cli import main
from postmortem.fleet.work import Done
from tests.simulate import config, finished, head, training


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "runs"
    for number in range(4):
        folder = root / f"kim_{number}"
        folder.mkdir(parents=True)
        off = config(train__gradient_checkpointing=False)
        text = head(off) + training(400, {0, 1, 2, 3}) if number else head(config()) + training(40, []) + finished()
        (folder / "log.txt").write_text(text + f"{number}\n")
    return root


def batch(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "postmortem", "batch", "--no-cache", "--workers", "1", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


def test_the_table_the_groups_and_the_page_in_one_go(tree: Path, tmp_path: Path) -> None:
    page, groups = tmp_path / "fleet.html", tmp_path / "groups.json"
    done = batch(tree, "--html", page, "--groups", groups, "--rank", "hours")
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.startswith("4 runs, 3 of them ran out of memory")
    (group,) = json.loads(groups.read_text())["groups"]
    assert (group["runs"], group["cause"], group["fix"]) == (3, "checkpointing_off", "enable_gradient_checkpointing")
    text = page.read_text()
    found = sorted((tmp_path / "fleet_reports").iterdir())
    assert len(found) == 3 and all(f'href="fleet_reports/{one.name}"' in text for one in found)
    assert "kim_" not in text and "&lt;run-2&gt;" in text


def test_names_are_shown_where_the_user_says_so(tree: Path, tmp_path: Path) -> None:
    page = tmp_path / "fleet.html"
    assert batch(tree, "--html", page, "--no-redact", "--lang", "ko").returncode == 0
    assert "kim_1" in page.read_text() and '<html lang="ko">' in page.read_text()


def test_reports_without_their_page_do_not_stay(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*arguments: object, **more: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    page = tmp_path / "fleet.html"
    arguments = ["batch", "--no-cache", "--workers", "1", str(tree), "--html", str(page)]
    monkeypatch.setattr("postmortem.fleet.page.render", full)
    assert main.run(arguments) == 3
    assert sorted(one.name for one in tmp_path.iterdir()) == ["runs"]
    kept = tmp_path / "fleet_reports" / "mine.txt"
    kept.parent.mkdir()
    kept.touch()
    assert main.run(arguments) == 3
    assert kept.exists(), "a folder that was there stays, and what is not ours"
    assert "no space left on device" in capsys.readouterr().err


def test_a_csv_file_opens_in_a_spreadsheet_and_a_pipe_has_no_mark(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "fleet.csv"
    assert batch(tree, "--format", "csv", "-o", target).returncode == 0
    assert target.read_bytes().startswith(b"\xef\xbb\xbfrun,path,")
    assert batch(tree, "--format", "csv").stdout.startswith("run,path,")


def test_where_narrows_rows_and_groups(tree: Path) -> None:
    done = batch(tree, "--where", "class == 'early_step' and step < 100")
    assert "Shown: 3 of 4." in done.stdout
    nothing = batch(tree, "--where", "class == 'early_steps'")
    assert nothing.returncode == 0
    assert nothing.stderr == "postmortem: --where: no run has the class 'early_steps'; there are early_step\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--where", "clas == 'x'"), "--where: no column clas; did you mean class"),
        (("--where", "class = 'x'"), "write == for equals"),
        (("--groups", "groups.txt"), "give a file that ends in .json or .csv"),
        (("--format", "parquet"), "give -o FILE"),
    ],
)
def test_bad_usage_is_said_before_anything_is_read(tree: Path, arguments: tuple[str, str], said: str) -> None:
    done = batch(tree, *arguments)
    assert (done.returncode, done.stdout) == (2, "") and said in done.stderr and done.stderr.count("\n") == 1


def test_a_page_that_cannot_be_written_leaves_stdout_empty(tree: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "fleet_reports"
    blocked.write_text("no folder")
    done = batch(tree, "--html", tmp_path / "fleet.html")
    assert done.returncode == 3 and done.stdout == "" and done.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["-o", "--html", "--groups"])
def test_a_place_that_is_not_there_is_said_before_anything_is_read(tmp_path: Path, option: str) -> None:
    for target, said in (
        (tmp_path / "none" / "x.json", "no such folder; make it first"),
        (tmp_path / "d.json", "is a folder"),
    ):
        (tmp_path / "d.json").mkdir(exist_ok=True)
        # the runs are not there either: that they were not looked for shows that this comes first
        done = batch(tmp_path / "no_runs", option, target)
        assert (done.returncode, done.stdout) == (3, "") and said in done.stderr and done.stderr.count("\n") == 1


def test_filters_that_let_nothing_through_are_named(tree: Path) -> None:
    done = batch(tree, "--include", "nothing*", "--since", "7d")
    assert done.returncode == 3
    assert "no run in it that --include and --since would let through" in done.stderr


@pytest.mark.parametrize(("count", "status"), [(2, 130), (0, 130)])
def test_ctrl_c_keeps_what_is_done_and_the_status_says_that_it_is_not_all(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], count: int, status: int
) -> None:
    whole = run_module.done_of

    def stopped(*arguments: Any) -> Iterator[Done]:
        yield from islice(whole(*arguments), count)
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "done_of", stopped)
    assert main.run(["batch", "--no-cache", "--workers", "1", "--format", "jsonl", str(tree)]) == status
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == count
    assert ("interrupted: 2 runs" in told.err) == bool(count) and "no run" not in told.err


def test_reports_of_runs_whose_names_are_no_text_are_linked(tree: Path, tmp_path: Path) -> None:
    for name in (b"x\xff", b"x\xfe", "x\u200b".encode(), b"a\nb"):
        (tree / "kim_1").rename(tree / os.fsdecode(name))
        (tree / "kim_1").mkdir()
        (tree / "kim_1" / "log.txt").write_bytes((tree / os.fsdecode(name) / "log.txt").read_bytes() + name + b"\n")
    page = tmp_path / "fleet.html"
    assert batch(tree, "--html", page).returncode == 0
    assert len(set(re.findall(r'href="fleet_reports/(\w+)\.html"', page.read_text()))) == 7
    assert len(list((tmp_path / "fleet_reports").iterdir())) == 7


def test_nothing_let_through_is_not_said_of_the_folder(tree: Path) -> None:
    done = batch(tree, "--since", "2999-01-01")
    assert (done.returncode, "let through" in done.stderr, done.stdout) == (3, True, "")


def test_a_url_that_is_none_is_one_clear_line() -> None:
    done = batch("http://kim:geheim@[::1")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (3, 1, "")
    assert "not a URL that can be read" in done.stderr and "geheim" not in done.stderr


def test_a_page_made_anew_leaves_no_report_of_an_earlier_one_beside_it(tree: Path, tmp_path: Path) -> None:
    page, folder = tmp_path / "fleet.html", tmp_path / "fleet_reports"
    assert batch(tree, "--no-redact", "--html", page).returncode == 0
    before = {path.name: path.read_text() for path in folder.iterdir()}
    (folder / "notes.html").write_text("the user's own")
    assert len(before) == 3 and all("kim" in text for text in before.values())
    assert batch(tree, "--where", "run == 'kim_2'", "--html", page).returncode == 0
    now = {path.name: path.read_text() for path in folder.iterdir()}
    assert len(now) == 2 and now.pop("notes.html")
    assert now.keys() < before.keys() and not any("kim" in text for text in now.values())
