"""Find the runs below some folders: run folders with all their attempts, loose logs, archives; in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from postmortem.intake import jobdb
from postmortem.intake.errors import IntakeError
from postmortem.intake.folders import CONFIG_NAMES, LOG_NAMES, OLD_LOG, natural
from postmortem.text import printable

LOGS = (".log", ".out", ".err")
MAYBE = (".txt",)
"""What may be a log: datasets hold captions under the same name."""
ARCHIVES = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz")
PASSED_OVER = frozenset({"samples", ".git", "node_modules", "__pycache__", ".venv", "venv", "site-packages"})
"""Folders that hold no run: previews, and what a program brings with it."""
NO_LOGS = frozenset({"pid.txt", "requirements.txt", "LICENSE.txt", "README.txt"})
MAX_DEPTH = 40
CAPTIONS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".mp4", ".mov", ".avi", ".webm"})


class Target(msgspec.Struct, frozen=True):
    """One run to analyse: where it is, under which name the tables show it, and what tells whether it changed.

    `kind` is folder, log or archive; `sure` is false for a file that may be no log at all. `signature` names the files
    that are read, with size and time; `bytes` is the size of its logs.
    """

    path: str
    name: str
    kind: str
    sure: bool
    signature: str
    bytes: int
    mtime: float


def find(
    roots: Sequence[Path],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    since: float | None = None,
) -> Iterator[Target]:
    """The runs below `roots`, each once, in the order of their names. Patterns are of the shell's kind and are held
    against the path below its root, and against its last part; `since` is a time in seconds.

    Raises IntakeError for a root that is not there.
    """
    seen: set[tuple[int, int]] = set()
    for root in roots:
        try:
            mode = root.stat().st_mode
        except OSError as error:
            raise IntakeError(f"{printable(str(root))[:300]}: {(error.strerror or 'not readable').lower()}") from None
        found = _walk(root, "", seen, 0) if stat.S_ISDIR(mode) else iter(_file(root, root.name, seen))
        for target in found:
            if since is not None and target.mtime < since:
                continue
            if include and not _any(target.name, include):
                continue
            if exclude and _any(target.name, exclude):
                continue
            yield target


def _any(name: str, patterns: Sequence[str]) -> bool:
    last = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(last, pattern) for pattern in patterns)


def _walk(folder: Path, name: str, seen: set[tuple[int, int]], depth: int) -> Iterator[Target]:
    """The runs in `folder`; what cannot be listed is passed over, and a folder met twice (a link) is read once."""
    try:
        found = folder.stat()
        if (found.st_dev, found.st_ino) in seen or depth > MAX_DEPTH:
            return
        seen.add((found.st_dev, found.st_ino))
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: (natural(entry.name), entry.name))
    except OSError:
        return
    names = {entry.name for entry in entries}
    run = _run(folder, name, entries) if LOG_NAMES[0] in names or "logs" in names else None
    taken: set[str] = set()
    if run is not None:
        yield run
        taken = {LOG_NAMES[0], "logs"}
    captioned = {Path(one).stem for one in names if Path(one).suffix.lower() in CAPTIONS}
    for entry in entries:
        below = f"{name}/{entry.name}" if name else entry.name
        if entry.name in taken or entry.name in PASSED_OVER:
            continue
        try:
            if entry.is_dir():
                yield from _walk(Path(entry.path), below, seen, depth + 1)
            elif entry.is_file() and not (Path(entry.name).stem in captioned and entry.name.endswith(MAYBE)):
                yield from _file(Path(entry.path), below, seen)
        except OSError:
            continue


def _run(folder: Path, name: str, entries: Sequence[os.DirEntry[str]]) -> Target | None:
    """`folder` as a run folder: its newest log, its older ones, what else an analysis reads of it."""
    logs: list[os.DirEntry[str]] = []
    beside: list[os.DirEntry[str]] = []
    for entry in entries:
        if entry.name == "logs" and entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as old:
                logs += [one for one in old if OLD_LOG.fullmatch(one.name) and one.is_file(follow_symlinks=False)]
        elif entry.name in LOG_NAMES and entry.is_file():
            logs.append(entry)
        elif (
            entry.is_file()
            and (entry.name in CONFIG_NAMES or entry.name.endswith((".db", ".db-wal", ".safetensors", ".pt")))
        ) or (entry.name == "samples" and entry.is_dir()):
            beside.append(entry)
    if not logs:
        return None
    stats = [(entry.name, entry.stat()) for entry in (*sorted(logs, key=lambda one: one.name), *beside)]
    database = jobdb.find(folder)
    if database is not None:
        stats.append((database.name, database.stat()))
    return Target(
        path=str(folder),
        name=name or folder.name or str(folder),
        kind="folder",
        sure=True,
        signature="|".join(_sign(name, found) for name, found in stats),
        bytes=sum(entry.stat().st_size for entry in logs),
        mtime=max(entry.stat().st_mtime for entry in logs),
    )


def _file(path: Path, name: str, seen: set[tuple[int, int]]) -> Iterator[Target]:
    suffix = path.suffix.lower()
    kind = "log" if suffix in (*LOGS, *MAYBE) else "archive" if suffix in ARCHIVES else None
    found = path.stat()
    if kind is None or path.name in NO_LOGS or not stat.S_ISREG(found.st_mode) or (found.st_dev, found.st_ino) in seen:
        return
    seen.add((found.st_dev, found.st_ino))
    yield Target(
        path=str(path),
        name=name,
        kind=kind,
        sure=suffix in LOGS,
        signature=_sign(path.name, found),
        bytes=found.st_size,
        mtime=found.st_mtime,
    )


def _sign(name: str, found: os.stat_result) -> str:
    return f"{name}:{found.st_size}:{found.st_mtime_ns}:{found.st_ino}"
