"""Find the runs below some folders: run folders with all their attempts, loose logs, archives; in a stable order."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from postmortem.fleet.places import Entry, LocalPlace, Place
from postmortem.intake import is_url, jobdb
from postmortem.intake.errors import IntakeError
from postmortem.intake.folders import CONFIG_NAMES, LOG_NAMES, MAX_OLD_LOGS, OLD_LOG, natural
from postmortem.text import printable

LOGS = (".log", ".out", ".err")
MAYBE = (".txt",)
"""What may be a log: datasets hold captions under the same name."""
ARCHIVES = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz")
PASSED_OVER = frozenset({"samples", ".git", "node_modules", "__pycache__", ".venv", "venv", "site-packages"})
"""Folders that hold no run: previews, and what a program brings with it."""
NO_LOGS = frozenset({"pid.txt", "requirements.txt", "LICENSE.txt", "README.txt"})
MAX_DEPTH = 200
CAPTIONS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".mp4", ".mov", ".avi", ".webm"})


class Target(msgspec.Struct, frozen=True):
    """One run to analyse: where it is, under which name the tables show it, and what tells whether it changed.

    `path` is a path of this machine or a URL of a store. `kind` is folder, log or archive; `sure` is false for a file
    that may be no log at all. `signature` names the files that are read, with size and time, and is empty where a store
    tells nothing by which a change could be seen; `bytes` is the size of its logs. `files` are those in a store that an
    analysis reads, with their sizes: names in the folder, or an empty name for the target itself.
    """

    path: str
    name: str
    kind: str
    sure: bool
    signature: str
    bytes: int
    mtime: float
    files: tuple[tuple[str, int], ...] = ()


def find(
    roots: Sequence[str | Path],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    since: float | None = None,
) -> Iterator[Target]:
    """The runs below `roots` (paths, or URLs of stores that fsspec knows), each once, in the order of their names.

    Patterns are of the shell's kind and are held against the path below its root, and against its last part; `since` is
    a time in seconds. Raises IntakeError for a root that is not there.
    """
    seen: set[tuple[Any, Any]] = set()
    for root in roots:
        for target in _below(str(root), seen):
            if since is not None and target.mtime < since:
                continue
            if include and not _any(target.name, include):
                continue
            if exclude and _any(target.name, exclude):
                continue
            yield target


def _below(root: str, seen: set[tuple[Any, Any]]) -> Iterator[Target]:
    if is_url(root):
        from postmortem.fleet import stores

        found = stores.open_root(root)
        if isinstance(found, Place):
            return _walk(found, "", seen, 0)
        return _file(found, found.name, seen)
    place = LocalPlace(root)
    try:
        mode = place.stat().st_mode
    except OSError as error:
        raise IntakeError(f"{printable(root)[:300]}: {(error.strerror or 'not readable').lower()}") from None
    return _walk(place, "", seen, 0) if stat.S_ISDIR(mode) else _file(place, Path(root).name, seen)


def _any(name: str, patterns: Sequence[str]) -> bool:
    last = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(last, pattern) for pattern in patterns)


def _walk(folder: Place, name: str, seen: set[tuple[Any, Any]], depth: int) -> Iterator[Target]:
    """The runs in `folder`; what cannot be listed is passed over, and a folder met twice (a link) is read once."""
    try:
        found = folder.stat()
        if (found.st_dev, found.st_ino) in seen or depth > MAX_DEPTH:
            return
        seen.add((found.st_dev, found.st_ino))
        entries = sorted(folder.entries(), key=lambda entry: (natural(entry.name), entry.name))
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
                yield from _walk(folder.below(entry), below, seen, depth + 1)
            elif entry.is_file() and not (Path(entry.name).stem in captioned and entry.name.endswith(MAYBE)):
                yield from _file(entry, below, seen)
        except OSError:
            continue


def _run(folder: Place, name: str, entries: Sequence[Entry]) -> Target | None:
    """`folder` as a run folder: its newest log, its older ones, what else an analysis reads of it."""
    logs: list[Entry] = []
    beside: list[Entry] = []
    for entry in entries:
        if entry.name == "logs" and entry.is_dir(follow_symlinks=False):
            old = folder.below(entry).entries()
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
    sizes = {entry.name: entry.stat() for entry in logs}
    stats = [*sorted(sizes.items()), *_stats(beside)]
    database = None if folder.remote else jobdb.find(Path(folder.path))
    if database is not None:
        # what the UI wrote last may stand in the write-ahead log alone
        stats += _stats([LocalPlace(f"{database}{end}") for end in ("", "-wal")])
    last = PurePosixPath(folder.path).name if folder.remote else Path(folder.path).name
    return Target(
        path=folder.path,
        name=name or last or folder.path,
        kind="folder",
        sure=True,
        signature=_signature(stats),
        bytes=sum(found.st_size for found in sizes.values()),
        mtime=max(found.st_mtime for found in sizes.values()),
        files=tuple(_read_there(logs, entries)) if folder.remote else (),
    )


def _stats(entries: Iterable[Entry | LocalPlace]) -> Iterator[tuple[str, Any]]:
    """Name and state of each that is still there: a run that goes on takes old checkpoints away."""
    for entry in entries:
        with suppress(OSError):
            yield PurePosixPath(entry.path).name, entry.stat()


def _read_there(logs: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[tuple[str, int]]:
    """The files of a folder in a store that an analysis reads."""
    old = sorted((one for one in logs if OLD_LOG.fullmatch(one.name)), key=lambda one: natural(one.name))
    yield from ((f"logs/{one.name}", one.stat().st_size) for one in old[-MAX_OLD_LOGS:])
    for entry in entries:
        if entry.is_file() and (entry.name in (*LOG_NAMES, *CONFIG_NAMES) or entry.name.startswith("loss_log.db")):
            yield entry.name, entry.stat().st_size


def _file(entry: Entry | LocalPlace, name: str, seen: set[tuple[Any, Any]]) -> Iterator[Target]:
    path = Path(name)
    suffix = path.suffix.lower()
    kind = "log" if suffix in (*LOGS, *MAYBE) else "archive" if suffix in ARCHIVES else None
    found = _state(entry)
    if kind is None or path.name in NO_LOGS or not stat.S_ISREG(found.st_mode) or (found.st_dev, found.st_ino) in seen:
        return
    seen.add((found.st_dev, found.st_ino))
    packed = kind == "archive" and (Path(path.stem).suffix.lower() in LOGS or path.stem in LOG_NAMES)
    yield Target(
        path=entry.path,
        name=name,
        kind=kind,
        sure=suffix in LOGS or packed,
        signature=_signature([(path.name, found)]),
        bytes=found.st_size,
        mtime=found.st_mtime,
        files=(("", found.st_size),) if is_url(entry.path) and not entry.path.lower().startswith("http") else (),
    )


def _state(entry: Entry | LocalPlace) -> Any:
    """What makes it the same file, too, which a listing on Windows leaves out: there all files would be one."""
    found = entry.stat()
    return found if found.st_ino or is_url(entry.path) else LocalPlace(entry.path).stat()


def _signature(stats: Iterable[tuple[str, Any]]) -> str:
    """What changes when one of the files does; empty where a store says neither time nor checksum."""
    parts = []
    for name, found in stats:
        if not found.st_mtime_ns and not found.st_ino and stat.S_ISREG(found.st_mode):
            return ""
        # the time of writing can be set back (a restored copy); that of the change to the inode cannot
        changed = getattr(found, "st_ctime_ns", 0)
        parts.append(f"{name}:{found.st_size}:{found.st_mtime_ns}:{found.st_ino}:{changed}")
    return "|".join(parts)
