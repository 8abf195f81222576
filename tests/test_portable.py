"""What Windows and macOS do otherwise, shown without them: modules, signals and calls that are not there, names that
are devices, shares, files that are in use, consoles that do not understand."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NoReturn

import pytest

from postmortem import processes
from postmortem.cli import output
from postmortem.cli.errors import Failure
from postmortem.fleet.watch import hook
from postmortem.fleet.watch.memory import Memory
from postmortem.intake.archives import unpack
from postmortem.intake.jobdb import _uri
from postmortem.intake.packed import Limits
from postmortem.intake.sources import is_url
from postmortem.knowledge import kept
from tests.simulate import config, head, training

FIXTURE = Path(__file__).parent.parent / "fixtures" / "early-step-checkpointing-off"
LOG = head(config()) + training(400, {0, 1, 2, 3})
# what a Windows Python lacks; `shutil` chose its way to remove folders before we get here
ELSEWHERE = """
import json, multiprocessing, os, shutil, signal, sys, tempfile
shutil._use_fd_functions = False
for module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "readline", "curses"):
    sys.modules[module] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_DIRECTORY", "sched_getaffinity", "killpg", "getuid", "geteuid",
             "getgid", "fork", "setsid", "fchmod", "fchown", "chown", "lchown", "mkfifo", "getpgid", "statvfs"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("SIGALRM", "SIGPIPE", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGQUIT", "pthread_sigmask", "setitimer", "alarm"):
    if hasattr(signal, name):
        delattr(signal, name)
from postmortem.cli.main import run
for arguments in json.load(sys.stdin):
    print(json.dumps([arguments[0], run(arguments)]), file=sys.stderr, flush=True)
"""


def test_no_command_needs_what_only_posix_has(tmp_path: Path) -> None:
    job = tmp_path / "output" / "mugs"
    job.mkdir(parents=True)
    shutil.copyfile(FIXTURE / "log.txt", job / "log.txt")
    settings = (FIXTURE / "config.yaml").read_text(encoding="utf-8")
    to_fix = settings.replace("gradient_checkpointing: true", "gradient_checkpointing: false")
    (job / "config.yaml").write_text(to_fix, encoding="utf-8")
    log, ticket = str(job / "log.txt"), str(tmp_path / "ticket.zip")
    report = str(tmp_path / "report.json")
    commands = [
        ["analyze", log],
        ["analyze", log, "--format", "json", "-o", report],
        ["analyze", str(job), "--format", "html", "-o", str(tmp_path / "report.html")],
        ["compare", log, log],
        ["check", str(job / "config.yaml"), "--gpu", "24"],
        ["batch", str(tmp_path / "output"), "--workers", "1", "--html", str(tmp_path / "fleet.html")],
        ["watch", str(tmp_path / "output"), "--once", "--quiet", "0"],
        ["bundle", log, "-o", ticket],
        ["verify", report, log],
        ["explain", "early_step"],
        ["patterns", "list"],
        ["schema"],
        ["fix", str(job), "--in-place"],
    ]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ELSEWHERE],
        input=json.dumps(commands),
        capture_output=True,
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    told = dict(json.loads(line) for line in done.stderr.splitlines() if line.startswith("["))
    assert told == {**dict.fromkeys([arguments[0] for arguments in commands], 0), "analyze": 1}, done.stderr
    assert "internal error" not in done.stderr
    assert (job / "postmortem.md").is_file() and (job / "config.yaml.bak").is_file() and Path(ticket).is_file()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("NUL.txt", ("_NUL.txt",)),
        ("con.log", ("_con.log",)),
        ("COM1.log.1", ("_COM1.log.1",)),
        ("com¹.log", ("_com¹.log",)),
        ("aux /lpt9/Prn.yaml", ("_aux", "_lpt9", "_Prn.yaml")),
        ("CON.run/log.txt", ("_CON.run", "log.txt")),
        ("console/nullog.txt", ("console", "nullog.txt")),
        ("run:stream/com10.log", ("run_stream", "com10.log")),
    ],
)
def test_what_is_packed_is_never_written_to_a_device(name: str, parts: tuple[str, ...]) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, LOG)
    packed.seek(0)
    unpacked = unpack(packed, packed.read(4), "run.zip", Limits())
    (file,) = unpacked.files
    assert file.relative_to(unpacked.folder).parts == parts and file.read_bytes() == LOG.encode()


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        (PureWindowsPath(r"C:\Users\김 민\aitk_db.db"), "file:///C:/Users/%EA%B9%80%20%EB%AF%BC/aitk_db.db"),
        # two slashes more: with `//nas/…` the share's host would be an authority, which SQLite refuses
        (PureWindowsPath(r"\\nas\train\aitk_db.db"), "file:////nas/train/aitk_db.db"),
        (PurePosixPath("/srv/50%?#/aitk_db.db"), "file:///srv/50%25%3F%23/aitk_db.db"),
    ],
)
def test_a_database_is_found_wherever_it_lies(path: PureWindowsPath | PurePosixPath, uri: str) -> None:
    assert _uri(path) == uri + "?mode=ro&immutable=1"


@pytest.mark.parametrize("named", [r"C:\runs\log.txt", "C:/runs/log.txt", "c://runs/log.txt", r"\\nas\runs", "nul"])
def test_a_drive_is_no_scheme(named: str) -> None:
    assert not is_url(named)


def _in_use(*_: Any, **__: Any) -> NoReturn:
    raise PermissionError(13, "Access is denied")  # what Windows says of a file that another program has open


def test_a_report_whose_file_is_in_use_is_one_line_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.md"
    target.write_text("open in an editor")
    monkeypatch.setattr(os, "replace", _in_use)
    with pytest.raises(Failure, match=r"report\.md: cannot write: access is denied$"):
        output.write("new", target)
    assert target.read_text() == "open in an editor" and [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_a_cache_that_is_in_use_does_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "replace", _in_use)
    kept._write(tmp_path / "knowledge-1", b"compiled")
    assert not list(tmp_path.iterdir())


def test_a_cache_has_a_place_on_windows_and_none_without_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "POSTMORTEM_NO_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert kept.home() == tmp_path / "postmortem"
    monkeypatch.delenv("LOCALAPPDATA")

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert kept.home() is None


def test_without_locks_a_watcher_is_taken_to_be_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    written: list[str] = []
    first, second = (Memory(tmp_path, tmp_path, "1", lambda path, _: written.append(str(path))) for _ in range(2))
    assert first.alone() and second.alone()


def test_workers_are_counted_where_the_system_binds_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert processes.cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processes.cores() == 1


def test_a_command_that_hangs_is_ended_where_there_are_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "killpg", raising=False)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    hook._end(process)
    assert process.poll() is not None


class _Console(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("legacy", "colour"), [(True, False), (False, True)])
def test_a_console_of_windows_gets_colour_only_if_it_acts_on_escapes(
    legacy: bool, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdout", _Console())
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr("rich.console.detect_legacy_windows", lambda: legacy)
    assert output.colour_stdout() is colour
