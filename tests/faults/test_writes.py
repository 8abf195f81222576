"""Every step of every write of every command goes wrong once, in every way; what is left is the old or the new, whole.

The first run of a case counts its steps; the next ones fail at each of them in turn. `make faults` does that; a normal
run takes a few steps of each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postmortem.patch.job import as_yaml, from_dump
from tests.simulate import config, head, training

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

SETTINGS = config(train__gradient_checkpointing=False, train__batch_size=4)
LOG = head(SETTINGS) + training(400, {0, 1, 2, 3})
JOB = as_yaml(from_dump(SETTINGS, "mugs"))
OLD = b"what stood there before\n"
REPORTS = {0, 1}
FAULTS = [("ENOSPC", True), ("short", True), ("EIO", False), ("EINTR", False)]
EVERY = os.environ.get("FAULTS") == "all"
INTERRUPTED = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}


class Case(msgspec.Struct, frozen=True):
    """A command, and the files that it writes, below the folder it runs in (`/` at the end: a folder of files)."""

    arguments: tuple[str, ...]
    writes: tuple[str, ...] = ()
    stdin: str | None = None
    there: tuple[str, ...] = ()
    """Of these, the files that hold something before."""
    keeps: tuple[str, ...] = ()
    """Files that may be left beside: a cache, a memory. Both must read as whole or not be read at all."""
    tolerant: bool = False
    """Whether a fault is told as an event of its own, and the command goes on."""
    made: str | None = None
    """A file that appears when another is written over: its old content."""


CASES = {
    "analyze-new": Case(("run/log.txt", "--format", "markdown", "-o", "out.md"), ("out.md",)),
    "analyze-over": Case(("run/log.txt", "--format", "html", "-o", "out.html"), ("out.html",), there=("out.html",)),
    "analyze-key": Case(
        ("run", "--format", "json", "--redact", "--redaction-map", "key.json", "-o", "out.json"),
        ("key.json", "out.json"),
        there=("out.json",),
    ),
    "analyze-stdin": Case(("analyze", "-", "--format", "markdown", "-o", "out.md"), ("out.md",), stdin=LOG),
    "analyze-tee": Case(("analyze", "-", "--tee", "-o", "out.txt"), ("out.txt",), stdin=LOG),
    "analyze-zip": Case(("run.zip", "-o", "out.txt"), ("out.txt",)),
    "analyze-stdout": Case(("run/log.txt", "--format", "json")),
    "fix-out": Case(("fix", "run", "-o", "fixed.yaml"), ("fixed.yaml",), there=("fixed.yaml",)),
    "fix-in-place": Case(("fix", "run", "--in-place"), ("run/config.yaml",), made="run/config.yaml.bak"),
    "bundle": Case(
        ("bundle", "run", "-o", "ticket.zip", "--redaction-map", "key.json"),
        ("ticket.zip", "key.json"),
        there=("ticket.zip",),
    ),
    "compare": Case(("compare", "run/log.txt", "other/log.txt", "-o", "compared.txt"), ("compared.txt",)),
    "batch-files": Case(
        (
            "batch",
            "run",
            "other",
            "--workers",
            "1",
            "--no-cache",
            "--format",
            "csv",
            "-o",
            "rows.csv",
            "--groups",
            "groups.json",
        ),
        ("rows.csv", "groups.json"),
        there=("rows.csv",),
    ),
    "batch-parquet": Case(
        ("batch", ".", "--workers", "1", "--no-cache", "--format", "parquet", "-o", "rows.parquet"), ("rows.parquet",)
    ),
    "batch-page": Case(
        ("batch", ".", "--workers", "1", "--html", "page.html", "--format", "jsonl", "-o", "rows.jsonl"),
        ("page.html", "rows.jsonl", "page_reports/"),
        there=("page.html",),
        keeps=("home/postmortem/",),
    ),
    "watch": Case(
        ("watch", ".", "--once", "--interval", "0.05", "--quiet", "0", "--run", "true {report}"),
        ("run/postmortem.md", "run/postmortem.html", "other/postmortem.md", "other/postmortem.html"),
        keeps=("home/postmortem/",),
        tolerant=True,
    ),
}


def chosen(steps: int, name: str) -> range:
    """The steps that go wrong: all, or three that differ from case to case."""
    if EVERY:
        return range(1, steps + 1)
    stride = max(1, -(-steps // 3))
    return range(1 + sum(name.encode()) % stride, steps + 1, stride)


class Zygote:
    """The process that forks."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, stage: Stage, case: Case, fault: str | None, at: int, *, lasting: bool = False) -> dict[str, Any]:
        request = {
            "argv": case.arguments,
            "cwd": str(stage.root),
            "env": {"XDG_CACHE_HOME": str(stage.root / "home"), "TMPDIR": str(stage.tmp), "PATH": os.environ["PATH"]},
            "fault": fault,
            "at": at,
            "lasting": lasting,
            "stdin": str(stage.stdin),
            "stdout": str(stage.place / "stdout"),
            "stderr": str(stage.place / "stderr"),
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        found["stdout"] = (stage.place / "stdout").read_bytes()
        found["stderr"] = (stage.place / "stderr").read_text(encoding="utf-8", errors="replace")
        return found

    def close(self) -> None:
        self._process.communicate()


class Stage:
    """A folder with two runs, an empty temporary folder, and what a run of the command reads and prints."""

    def __init__(self, place: Path, case: Case, warm: Path) -> None:
        self.place = place
        self.root, self.tmp, self.stdin = place / "work", place / "tmp", place / "stdin"
        for name in ("run", "other"):
            folder = self.root / name
            folder.mkdir(parents=True)
            (folder / "log.txt").write_text(LOG.replace("mugs", name), encoding="utf-8", newline="")
            (folder / "config.yaml").write_text(JOB, encoding="utf-8")
            past = time.time() - 1000
            os.utime(folder / "log.txt", (past, past))
        if "run.zip" in case.arguments:
            shutil.make_archive(str(self.root / "run"), "zip", self.root / "run")
        self.tmp.mkdir()
        shutil.copytree(warm, self.root / "home")
        self.stdin.write_text(case.stdin or "", encoding="utf-8")
        for name in case.there:
            (self.root / name).write_bytes(OLD)

    def files(self) -> dict[str, bytes]:
        """All files, by their path below the folder or in the temporary one."""
        found = {}
        for top in (self.root, self.tmp):
            for path in sorted(top.rglob("*")):
                if path.is_file() or path.is_symlink():
                    found[str(path.relative_to(top if top is self.root else self.place))] = path.read_bytes()
        return found


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> Path:
    """A cache folder that holds the compiled knowledge base, as any start but the first one finds it."""
    place = tmp_path_factory.mktemp("warm")
    empty = place / "empty"
    empty.mkdir()
    stage = Stage(place / "stage", CASES["analyze-stdout"], empty)
    zygote.run(stage, CASES["analyze-stdout"], None, 0)
    return stage.root / "home"


def is_own(name: str, case: Case) -> bool:
    return any(name == one or (one.endswith("/") and name.startswith(one)) for one in (*case.writes, *case.keeps))


def is_part(name: str) -> bool:
    return ".postmortem-" in name


def check(
    case: Case, before: dict[str, bytes], whole: dict[str, bytes], after: dict[str, bytes], *, killed: bool
) -> None:
    """Old or new, each whole; nothing else came, nothing went."""
    for name, content in after.items():
        if (name in before and content == before[name]) or (killed and is_part(name)):
            continue
        if any(name == one or (one.endswith("/") and name.startswith(one)) for one in case.writes):
            assert name in whole and content == whole[name], f"{name} is neither old nor new"
        elif case.made and name.startswith(case.made) and (name == case.made or killed):
            assert content == before[case.writes[0]], "a backup that is not the old file"
        elif any(name.startswith(one) for one in case.keeps):
            assert not is_part(name), f"{name} is left"
        else:
            assert killed and name.startswith("tmp/"), f"{name} came or changed"
    assert not before.keys() - after.keys()
    if case.made and after[case.writes[0]] != before[case.writes[0]]:
        assert after[case.made] == before[case.writes[0]], "changed without a backup"


def own_fault(case: Case, stderr: str) -> bool:
    """Whether stderr tells of a fault of ours (with `--tee`, a traceback of the run's own stands there too)."""
    signs = ["internal error", "escaped: ", *(["Traceback"] if "--tee" not in case.arguments else [])]
    return any(sign in stderr for sign in signs)


def settled(case: Case, whole: dict[str, bytes], after: dict[str, bytes]) -> bool:
    """Whether all outputs are the new ones."""
    names = [name for name in whole if any(name == o or (o.endswith("/") and name.startswith(o)) for o in case.writes)]
    return all(after.get(name) == whole[name] for name in names)


def stages(place: Path, case: Case, warm: Path) -> Callable[[], tuple[Stage, dict[str, bytes]]]:
    """Makes the stage anew, always at the same place, since names of reports depend on it."""

    def staged() -> tuple[Stage, dict[str, bytes]]:
        shutil.rmtree(place, ignore_errors=True)
        stage = Stage(place, case, warm)
        return stage, stage.files()

    return staged


@pytest.mark.parametrize("name", CASES)
def test_every_step_of_every_write_may_fail(name: str, zygote: Zygote, warm: Path, tmp_path: Path) -> None:
    case = CASES[name]
    staged = stages(tmp_path / "stage", case, warm)
    stage, before = staged()
    base = zygote.run(stage, case, None, 0)
    whole = stage.files()
    assert base["status"] in REPORTS, base
    steps = len(base["steps"])
    assert steps
    check(case, before, whole, whole, killed=False)
    assert settled(case, whole, whole) and all(any(n.startswith(w) for n in whole) for w in case.writes)
    for fault, lasting in FAULTS if EVERY else FAULTS[:2]:
        for at in chosen(steps, f"{name}{fault}"):
            stage, before = staged()
            told = zygote.run(stage, case, fault, at, lasting=lasting)
            after = stage.files()
            where = f"{fault} at {at}/{steps}: {base['steps'][at - 1]}: {told['status']} {told['stderr']}"
            try:
                check(case, before, whole, after, killed=False)
                done = settled(case, whole, after) and told["stdout"] == base["stdout"]
                if case.tolerant:
                    assert told["status"] == 0
                elif told["status"] in REPORTS:
                    assert done
                else:
                    assert told["status"] == 3
                if fault in ("EINTR", "short") and not case.tolerant:
                    assert done
                assert not own_fault(case, told["stderr"])
                if told["status"] == 3:
                    assert told["stderr"].splitlines()[-1].startswith("postmortem: ")
            except AssertionError as error:
                raise AssertionError(f"{where}\n{error}") from None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sign", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_every_step_of_every_write_may_be_the_last(
    name: str, sign: str, zygote: Zygote, warm: Path, tmp_path: Path
) -> None:
    case = CASES[name]
    staged = stages(tmp_path / "stage", case, warm)
    stage, before = staged()
    base = zygote.run(stage, case, None if sign != "SIGKILL" else "SIGKILL", 0)
    whole = stage.files()
    steps = len(base["steps"])
    for at in chosen(steps, f"{name}{sign}"):
        stage, before = staged()
        told = zygote.run(stage, case, sign, at)
        after = stage.files()
        where = f"{sign} at {at}/{steps}: {base['steps'][at - 1]}: {told['status']} {told['stderr']}"
        try:
            check(case, before, whole, after, killed=sign == "SIGKILL")
            if case.tolerant and sign != "SIGKILL":
                assert told["status"] == 0
            elif sign == "SIGINT" and "--tee" in case.arguments:
                assert told["status"] in (*REPORTS, 130)
            else:
                assert told["status"] == INTERRUPTED[sign]
            assert not own_fault(case, told["stderr"])
            if sign == "SIGKILL":
                again = zygote.run(stage, case, None, 0)
                now = stage.files()
                check(case, before, whole, now, killed=True)
                assert again["status"] in REPORTS
                if case.made is None and not case.tolerant:
                    assert settled(case, whole, now)
        except AssertionError as error:
            raise AssertionError(f"{where}\n{error}") from None


@pytest.mark.parametrize("name", ["analyze-zip", "analyze-stdin", "batch-page", "batch-parquet", "watch"])
@pytest.mark.parametrize("size", [0, 700, 5_000, 40_000])
def test_files_that_may_not_grow(name: str, size: int, zygote: Zygote, warm: Path, tmp_path: Path) -> None:
    """What libraries write too (SQLite, copies, archives): the system itself refuses every file beyond `size`."""
    case = CASES[name]
    staged = stages(tmp_path / "stage", case, warm)
    stage, before = staged()
    zygote.run(stage, case, None, 0)
    whole = stage.files()
    stage, before = staged()
    told = zygote.run(stage, case, "FSIZE", size)
    after = stage.files()
    check(case, before, whole, after, killed=False)
    assert told["status"] in ((0,) if case.tolerant else (*REPORTS, 3)), told["stderr"]
    assert not own_fault(case, told["stderr"])
    if told["status"] != 3 and not case.tolerant:
        assert settled(case, whole, after)
