"""One nasty text through every way in, and every form of every command: nothing of it acts where it comes out.

What is looked at are the bytes that leave: stdout, stderr, files and their names.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from postmortem.cli.main import run
from postmortem.fleet.table import FORMULA
from postmortem.patch.job import as_json, as_yaml, from_dump
from tests.hostile import acting
from tests.simulate import bar, buckets, config, head

NASTY = (
    "=1+1 \x1b[31mred\x1b]0;title\x07\x1b]8;;https://evil.example\x1b\\x\x9b2J\x85\x7f\x08\x00"
    "\u202egpj\u2066\u200f\u200b\u200d\ufeff\u00ad\u2028\u2029\U000e0041"
    "[red][/][link=https://evil.example]<script>alert(1)</script><img src=x onerror=alert(1)>"
    "|`code`](https://evil.example)@team ${HOME} $(id) `id` ; rm -rf 'x' \"y\" %s {0} {name}"
)
NAME = NASTY.replace("\x00", "").replace("/", "_").encode()[:180].decode("utf-8", "ignore")
"""As a file's name: what a system takes."""
SETTINGS = config(train__gradient_checkpointing=False, name=NASTY, training_folder=f"/out/{NASTY}")
SETTINGS["datasets"][0]["folder_path"] = f"/data/{NASTY}"
SETTINGS["sample"]["samples"] = [{"prompt": NASTY}]
SETTINGS["trigger_word"] = NASTY
SETTINGS[NASTY] = NASTY
LINE = NASTY.replace("\x00", "").replace("\x85", "").replace("\u2028", "").replace("\u2029", "")
LOG = (
    head(SETTINGS, name=LINE)
    + buckets({"512x512": 3, f"{LINE}": 2}, f"/data/{LINE}")
    + bar(LINE, 0, 400, 0, f", loss: {LINE}")
    + f"\n{LINE}\nTraceback (most recent call last):\n"
    + f'  File "/x/{LINE}.py", line 3, in {LINE}\n    {LINE}\n'
    + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB "
    + f"of which 1.00 GiB is free. {LINE}\n"
    + f"Error running job: CUDA out of memory. {LINE}\n"
)


class World:
    """A place in which everything bears the nasty name or holds the nasty text."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "runs" / NAME
        (self.folder / "samples").mkdir(parents=True)
        (self.folder / "log.txt").write_text(LOG, encoding="utf-8", newline="")
        (self.folder / "config.yaml").write_text(as_yaml(from_dump(SETTINGS, NASTY)), encoding="utf-8")
        (self.folder / ".job_config.json").write_text(as_json(from_dump(SETTINGS, NASTY)), encoding="utf-8")
        (self.folder / f"{NAME[:120]}_000000250.safetensors").write_bytes(b"{")
        self.log = root / "runs" / f"{NAME[:100]}.log"
        self.log.write_text(LOG, encoding="utf-8", newline="")
        self.data = root / NAME
        self.data.mkdir()
        (self.data / ".aitk_size.json").write_text(json.dumps({f"{NAME}.jpg": [512, 512, NASTY]}))
        self.zip = root / f"{NAME[:100]}.zip"
        with zipfile.ZipFile(self.zip, "w") as packed:
            packed.writestr(f"{NAME[:60]}.log", LOG)
            packed.writestr(f"{NAME[:60]}.yaml", as_yaml(from_dump(SETTINGS, NASTY)))
        self.db = self.folder / "aitk_db.db"
        with sqlite3.connect(self.db) as base:
            base.execute("CREATE TABLE Job (id TEXT, name TEXT, status TEXT, info TEXT, job_config TEXT, step INT)")
            row = (NASTY, NAME, NASTY, f"CUDA out of memory {NASTY}", as_json(from_dump(SETTINGS, NASTY)), 3)
            base.execute("INSERT INTO Job VALUES (?, ?, ?, ?, ?, ?)", row)
        base.close()
        self.pack = root / f"pack {NAME[:60]}"
        (self.pack / "text" / "en").mkdir(parents=True)
        pattern = {"id": "mine.nasty", "role": "other_error", "anchors": ["nasty"], "regex": "nasty", "source": NASTY}
        pattern |= {"sets": {"kind": "not_memory"}, "examples": {"match": ["nasty " + NASTY]}}  # type: ignore[dict-item]
        texts = {"signature": {"mine.nasty": NASTY}, "remedy": {"enable_gradient_checkpointing": {"title": NASTY}}}
        for path, value in (("mine.yaml", {"patterns": [pattern]}), ("text/en/mine.yaml", texts)):
            # YAML writes what is beyond the first plane in another way than JSON
            (self.pack / path).write_text(json.dumps(value).replace("\\udb40\\udc41", "\\U000e0041"))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


def clean(shown: bytes, what: str) -> str:
    """The text of `shown`, in which nothing may act. A tab, a mark at the start and CSV's line breaks are no harm."""
    text = shown.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\t", " ")
    assert acting(text) == [], what
    return text


def outputs(world: World, name: str) -> tuple[tuple[str, ...], ...]:
    """Command lines: every command in every form, with every way in."""
    place, log = str(world.folder), str(world.log)
    ways = (place, log, str(world.zip))
    both = ("--redact", "--no-redact")
    found: list[tuple[str, ...]] = []
    if name == "analyze":
        for form in ("terminal", "json", "html"):
            found += [("analyze", way, "--format", form, redact) for way in ways for redact in both]
        for flavor in ("github", "discord", "jira", "plain"):
            found += [("analyze", log, "--format", "markdown", "--flavor", flavor, redact) for redact in both]
        found += [("analyze", log, "--dataset", str(world.data), "--lang", lang) for lang in ("en", "ko")]
        found += [("analyze", log, "--db", str(world.db)), ("analyze", log, "--config", f"{place}/config.yaml")]
        found += [
            ("analyze", log, "--patterns", str(world.pack)),
            ("explain", "mine.nasty", "--patterns", str(world.pack)),
        ]
        found += [
            ("patterns", "list", "--patterns", str(world.pack)),
            ("patterns", "test", "--patterns", str(world.pack)),
        ]
    elif name == "others":
        for form in ("terminal", "json", "markdown"):
            found += [("compare", place, log, "--format", form, redact) for redact in both]
        found += [("check", f"{place}/config.yaml", "--format", form, "--gpu", "24") for form in ("terminal", "json")]
        found += [("check", f"{place}/config.yaml", "--log", log)]
        found += [("fix", log, "--config", f"{place}/config.yaml", "-o", str(world.root / "fixed.yaml"))]
        found += [
            ("fix", place, "--only", "nope" + NAME),
            ("explain", NAME),
            ("batch", str(world.root / "runs"), "--where", NAME),
        ]
    elif name == "batch":
        for form in ("table", "csv", "jsonl"):
            found += [("batch", str(world.root / "runs"), "--workers", "1", "--no-cache", "--format", form)]
    else:
        gone = str(world.root / "nowhere" / NAME)
        found += [
            ("analyze", gone),
            ("analyze", NAME),
            ("analyze", log, "--config", gone),
            ("analyze", log, "--db", gone),
        ]
        found += [
            ("analyze", log, "--dataset", gone),
            ("analyze", log, "--patterns", gone),
            ("analyze", log, "--lang", NAME),
        ]
        found += [("analyze", log, "-o", f"{gone}/x"), ("analyze", log, "--format", NAME), (NAME, NAME), ("--" + NAME,)]
        found += [("analyze", log, "-o", log), ("compare", gone, log), ("check", gone), ("check", log), ("fix", gone)]
        found += [("verify", gone, log), ("verify", log, log), ("bundle", gone, "-o", "x.zip"), ("batch", gone)]
        found += [
            ("watch", gone, "--once"),
            ("watch", log),
            ("watch", place, "--run", NAME),
            ("analyze", f"https://{NAME}"),
        ]
        found += [
            ("patterns", "drift", gone),
            ("patterns", "drift", place),
            ("analyze", str(world.data)),
            ("schema", NAME),
        ]
        found += [
            ("batch", place, "--since", NAME),
            ("batch", place, "--groups", f"{gone}.x"),
            ("analyze", f"s3://{NAME}"),
        ]
        found += [("batch", place, "--engine", "dask", "--scheduler", NAME), ("analyze", log, "--attempt", NAME)]
    return tuple(found)


@pytest.mark.parametrize("name", ["analyze", "others", "batch", "errors"])
def test_nothing_acts_on_stdout_or_stderr(name: str, world: World, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for arguments in outputs(world, name):
        status = run(list(arguments))
        out, err = capfdbinary.readouterr()
        what = f"{arguments!r}: {status} {err!r}"
        shown, told = clean(out, what), clean(err, what)
        assert "internal error" not in told, what
        assert status in (0, 1, 2, 3), what
        if name == "errors":
            assert status in (2, 3) and shown == "", what
            assert told.count("\n") == 1, what
        if "html" in arguments:
            assert "<script>alert" not in shown and "<img src=x" not in shown
        if str(world.pack) in arguments and arguments[0] in ("analyze", "explain"):
            assert "evil" in shown, what
        if "csv" in arguments:
            cells = [cell for row in csv.reader(io.StringIO(shown)) for cell in row]
            assert not [cell for cell in cells if cell.startswith(FORMULA) and not re.fullmatch(r"-?[\d.e+-]+", cell)]


def test_nothing_acts_in_any_file_of_a_ticket(world: World, tmp_path: Path) -> None:
    for redact in ("--redact", "--no-redact"):
        ticket = tmp_path / "ticket.zip"
        assert run(["bundle", str(world.folder), "-o", str(ticket), redact]) == 0
        with zipfile.ZipFile(ticket) as packed:
            for name in packed.namelist():
                clean(packed.read(name), name)
        report = tmp_path / "report.json"
        with zipfile.ZipFile(ticket) as packed:
            report.write_bytes(packed.read("report.json"))
        for form in ("terminal", "json"):
            out = tmp_path / f"verified.{form}"
            assert run(["verify", str(ticket), str(world.folder), "--format", form, "-o", str(out)]) in (0, 1)
            clean(out.read_bytes(), form)


def test_nothing_acts_in_the_files_of_a_fleet(world: World, tmp_path: Path) -> None:
    import pyarrow.parquet as parquet  # type: ignore[import-untyped]

    files = {"--html": "page.html", "--groups": "groups.csv", "-o": "rows.parquet"}
    options = [word for name, file in files.items() for word in (name, str(tmp_path / file))]
    base = ["batch", str(world.root / "runs"), "--workers", "1", "--no-cache"]
    for redact in ("--redact", "--no-redact"):
        assert run([*base, *options, "--format", "parquet", redact]) == 0
        made = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(made) > 3
        for path in made:
            assert re.fullmatch(r"[\w./-]+", str(path.relative_to(tmp_path)))
            if path.suffix != ".parquet":
                clean(path.read_bytes(), path.name)
        table = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
        assert [
            acting(value) for row in table for value in row.values() if isinstance(value, str) and acting(value)
        ] == []


@pytest.mark.skipif(os.name != "posix", reason="names that other systems refuse")
def test_nothing_acts_in_what_a_watcher_writes(world: World, tmp_path: Path) -> None:
    hook = tmp_path / "hook.py"
    hook.write_text("import os, sys\nprint(ascii([v for k, v in os.environ.items() if k.startswith('POSTMORTEM_')]))")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "postmortem", "watch", str(world.root / "runs"), "--once", "--interval", "0.05"),
            *("--quiet", "0", "--format", "jsonl", "--run", f"{sys.executable} {hook} {{headline}} {{class}}"),
        ],
        capture_output=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path), "COLUMNS": NAME, "TERM": NAME, "POSTMORTEM_X": "x"},
        timeout=60,
        check=True,
    )
    events = [json.loads(line) for line in clean(done.stdout, "events").splitlines()]
    assert {event["event"] for event in events} == {"failed"}
    clean(done.stderr, "stderr")
    written = [*world.folder.glob("postmortem*"), *world.folder.parent.glob("*.postmortem.*")]
    assert len(written) == 4
    for path in written:
        clean(path.read_bytes(), path.suffix)
        path.unlink()


def test_a_name_is_told_from_the_message_about_it(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        "run.log": "run.log",
        "C:\\runs\\a b.log": "C:\\runs\\a b.log",
        "log: permission denied; run `x`": '"log: permission denied; run `x`"',
        'a": no such file or directory ': '"a\\": no such file or directory "',
        "it's": '"it\'s"',
        "n" * 400: "n" * 299 + "…",
    }
    for name, told in shown.items():
        assert run(["analyze", name]) == 3
        assert capsys.readouterr().err.startswith(f"postmortem: {told}: ")
