"""What can be seen of a run from outside: how its log stands, its last bytes, its process, the UI's database."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from postmortem.fleet.watch.state import Hint, LogStat, Process
from postmortem.intake import jobdb
from postmortem.intake.folders import LOG_NAMES, OLD_LOG
from postmortem.intake.tail import read_tail
from postmortem.model import Attempt
from postmortem.scan import Lexicon, scan
from postmortem.timeline import build

TAIL = 64 * 1024
MAX_PID = 4_194_304
REUSED_S = 60.0
"""A process that started so long after its number was written down is another one."""
MAX_DATABASES = 16
MAX_LOOKED = 500
"""Folders without a log that are looked into in one listing."""
_ENDED = ("failed", "killed", "stopped")
_PROC = Path("/proc")


def log_of(path: Path, *, folder: bool) -> LogStat | None:
    """How the newest log of a run stands; None where there is none (yet). Raises OSError."""
    newest = path / LOG_NAMES[0] if folder else path
    try:
        return _stat(newest)
    except (FileNotFoundError, NotADirectoryError):
        old = rotated(path) if folder else None
        return _stat(old) if old is not None else None


def _stat(path: Path) -> LogStat | None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        return None
    return LogStat(str(path), found.st_ino, found.st_size, found.st_mtime_ns)


def rotated(folder: Path) -> Path | None:
    """The log that the UI moved aside last."""
    try:
        with os.scandir(folder / "logs") as entries:
            numbered = [(int(found[1]), entry.path) for entry in entries if (found := OLD_LOG.fullmatch(entry.name))]
    except OSError:
        return None
    return Path(max(numbered)[1]) if numbered else None


def newcomers(parents: Iterable[Path], known: Container[str]) -> Iterator[str]:
    """Folders with a log, directly in one of `parents`, that are not `known`: what a listing or two can tell."""
    for parent in parents:
        looked = 0
        above = "" if str(parent) == "." else f"{parent}{os.sep}"
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    path = above + entry.name
                    if path in known or not entry.is_dir():
                        continue
                    looked += 1
                    if looked > MAX_LOOKED:
                        break
                    if Path(path, LOG_NAMES[0]).exists():
                        yield path
        except OSError:
            continue


def hint(path: Path, lexicon: Lexicon) -> Hint:
    """What the last bytes of a log say. Raises OSError."""
    scanned = scan([read_tail(path, TAIL)], lexicon)
    attempts = build([scanned], lexicon)
    return hint_of(attempts[-1]) if attempts else Hint.OPEN


def hint_of(attempt: Attempt) -> Hint:
    """What an attempt, of which the start may be missing, says of its end."""
    if attempt.end.outcome.startswith("completed"):
        return Hint.DONE
    if attempt.end.outcome not in _ENDED:
        return Hint.OPEN
    told = attempt.closing or any("running_job" in name for error in attempt.errors for name in error.carriers)
    return Hint.ENDED if told or attempt.end.outcome == "stopped" else Hint.ERROR


def process_of(folder: Path) -> Process:
    """Whether the process that the UI wrote down in `pid.txt` lives."""
    try:
        # a pipe of that name would wait for a writer for ever
        with open(folder / "pid.txt", "rb", opener=_at_once) as file:
            written = file.read(20)
            since = os.fstat(file.fileno()).st_mtime
    except OSError:
        return Process.UNKNOWN
    written = (written or b"").strip()
    if not written.isdigit() or not 1 < int(written) <= MAX_PID or os.name != "posix":
        return Process.UNKNOWN  # on Windows, signal 0 is no question but Ctrl-C
    pid = int(written)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Process.GONE
    except OSError:
        pass  # another user's: it is there
    return _training(pid, since)


def _at_once(path: str, flags: int) -> int:
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError("no file")
    return handle


def _training(pid: int, since: float) -> Process:
    """Whether the process `pid` can be the run that was started at `since`, where the system lets one look."""
    place = _PROC / str(pid)
    try:
        fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
        if fields[0] in (b"Z", b"X"):
            return Process.GONE
        command = (place / "cmdline").read_bytes()
        boot = re.search(rb"^btime (\d+)", (_PROC / "stat").read_bytes(), re.MULTILINE)
        started = int(boot[1]) + int(fields[19]) / os.sysconf("SC_CLK_TCK") if boot else since
    except (OSError, IndexError, ValueError):
        return Process.ALIVE
    return Process.ALIVE if b"python" in command and started < since + REUSED_S else Process.UNKNOWN


class Jobs:
    """What the UI's database says of jobs, read again only when it has changed."""

    def __init__(self, named: Path | None = None, every_s: float = 4.0) -> None:
        self._named = named
        self._every_s = every_s
        self._known: dict[str, tuple[object, float, dict[str, str]]] = {}

    def path_of(self, folder: Path) -> Path | None:
        """The database that a run belongs to."""
        return self._named if self._named is not None else jobdb.find(folder)

    def status(self, folder: Path, now: float) -> str | None:
        """The word that the UI has for the job of this run; None where it has none."""
        path = self.path_of(folder)
        if path is None:
            return None
        mark = tuple(_mark(path.with_name(path.name + suffix)) for suffix in ("", "-wal"))
        known = self._known.get(str(path))
        if known is None or (known[0] != mark and now - known[1] >= self._every_s):
            named = [(row.name.reveal(), row.status) for row in jobdb.read(path, configs=False).rows]
            often = Counter(name for name, _ in named)
            known = (mark, now, {name: status for name, status in named if often[name] == 1})
            while len(self._known) >= MAX_DATABASES:
                self._known.pop(next(iter(self._known)))
            self._known[str(path)] = known
        return known[2].get(folder.name)


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
