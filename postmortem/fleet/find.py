"""Find the runs below some folders: run folders with all their attempts, loose logs, archives; in a stable order."""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from postmortem.fleet.places import Entry, LocalPlace, Place
from postmortem.intake import is_url, jobdb
from postmortem.intake.errors import IntakeError
from postmortem.intake.folders import CONFIG_NAMES, LOG_NAMES, MAX_OLD_LOGS, OLD_LOG, inside, natural
from postmortem.text import named

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


class Passed:
    """What lies below the roots and was not looked into: links that lead out of them, or to what is no file, and what
    could not be read, by name with the reason."""

    def __init__(self) -> None:
        self.links = 0
        self.unread: dict[str, str] = {}


class _Walk(msgspec.Struct):
    """One way through a root: what was met already, and where the root really is (None: in a store)."""

    seen: set[tuple[Any, Any]]
    passed: Passed
    root: str | None = None

    def leads_out(self, entry: Entry) -> bool:
        """Whether `entry` is a link to something outside of the root."""
        if self.root is None or not _is_link(entry):
            return False
        real = os.path.realpath(entry.path)
        return real != self.root and not real.startswith(self.root.rstrip(os.sep) + os.sep)

    def unread(self, name: str, error: OSError) -> None:
        """Note what could not be read; what has gone meanwhile is nothing to speak of."""
        if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
            self.passed.unread.setdefault(name, _why(error))


def find(
    roots: Sequence[str | Path],
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    since: float | None = None,
    passed: Passed | None = None,
) -> Iterator[Target]:
    """The runs below `roots` (paths, or URLs of stores that fsspec knows), each once, in the order of their names.

    Patterns are of the shell's kind and are held against the path below its root, and against its last part; `since` is
    a time in seconds; `passed` takes what was passed over. Raises IntakeError for a root that cannot be read.
    """
    passed = passed if passed is not None else Passed()
    seen: set[tuple[Any, Any]] = set()
    for root in roots:
        for target in _below(str(root), seen, passed):
            if since is not None and target.mtime < since:
                continue
            if include and not _any(target.name, include):
                continue
            if exclude and _any(target.name, exclude):
                continue
            yield target


def _below(root: str, seen: set[tuple[Any, Any]], passed: Passed) -> Iterator[Target]:
    if is_url(root):
        from postmortem.fleet import stores
        from postmortem.intake import remote

        try:
            here = remote.local_path(root)
        except ValueError:
            here = None  # no URL at all, which the store says
        if here is not None:
            yield from _below(str(here), seen, passed)
            return
        found = stores.open_root(root)
        if isinstance(found, Place):
            yield from _walk(found, "", _Walk(seen, passed), 0)
        else:
            yield from _file(found, found.name, seen)
        return
    place = LocalPlace(root)
    try:
        mode = place.stat().st_mode
        if not stat.S_ISDIR(mode):
            yield from _file(place, Path(root).name, seen)
            return
        place.entries()
    except OSError as error:
        raise IntakeError(f"{named(root)}: {_why(error)}") from None
    yield from _walk(place, "", _Walk(seen, passed, os.path.realpath(root)), 0)


def _why(error: OSError) -> str:
    return (error.strerror or "not readable").lower()


def _is_link(entry: Entry) -> bool:
    return isinstance(entry, os.DirEntry) and entry.is_symlink()


def _any(name: str, patterns: Sequence[str]) -> bool:
    last = name.rsplit("/", 1)[-1]
    return any(fnmatchcase(name, pattern) or fnmatchcase(last, pattern) for pattern in patterns)


def _walk(folder: Place, name: str, walk: _Walk, depth: int) -> Iterator[Target]:
    """The runs in `folder`; what cannot be read is noted, and a folder met twice (a link) is read once."""
    try:
        found = folder.stat()
        if (found.st_dev, found.st_ino) in walk.seen or depth > MAX_DEPTH:
            return
        walk.seen.add((found.st_dev, found.st_ino))
        entries = sorted(folder.entries(), key=lambda entry: (natural(entry.name), entry.name))
    except OSError as error:
        walk.unread(name, error)
        return
    names = {entry.name for entry in entries}
    taken: set[str] = set()
    try:
        run = _run(folder, name, entries, walk) if LOG_NAMES[0] in names or "logs" in names else None
    except OSError as error:  # its files cannot be asked for anything
        walk.unread(name, error)
        return
    if run is not None:
        yield run
        taken = {LOG_NAMES[0], "logs"}
    captioned = {Path(one).stem for one in names if Path(one).suffix.lower() in CAPTIONS}
    for entry in entries:
        below = f"{name}/{entry.name}" if name else entry.name
        if entry.name in PASSED_OVER or (entry.name in taken and not walk.leads_out(entry)):
            continue
        try:
            yield from _entry(folder, entry, below, walk, depth, captioned)
        except OSError as error:
            walk.unread(below, error)


def _entry(
    folder: Place, entry: Entry, below: str, walk: _Walk, depth: int, captioned: Container[str]
) -> Iterator[Target]:
    """What an entry of `folder` is: a folder with more of them, a log or an archive."""
    caption = entry.name.endswith(MAYBE) and Path(entry.name).stem in captioned
    if entry.is_dir():
        if walk.leads_out(entry):
            walk.passed.links += 1
            return
        yield from _walk(folder.below(entry), below, walk, depth + 1)
    elif _kind(entry.name) is None or caption:
        return
    elif walk.leads_out(entry) or (_is_link(entry) and not entry.is_file()):
        walk.passed.links += 1
    elif entry.is_file():
        yield from _file(entry, below, walk.seen)


def _run(folder: Place, name: str, entries: Sequence[Entry], walk: _Walk) -> Target | None:
    """`folder` as a run folder: its newest log, its older ones, what else an analysis reads of it."""
    logs: list[Entry] = []
    beside: list[Entry] = []
    for entry in entries:
        if entry.name == "logs" and entry.is_dir(follow_symlinks=False):
            logs += _old_logs(folder, entry, f"{name}/logs" if name else "logs", walk)
        elif entry.name in LOG_NAMES and entry.is_file():
            # a link that leads out of its folder is no part of the run, as for a single one
            if not _is_link(entry) or inside(Path(folder.path), Path(entry.path)):
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


def _old_logs(folder: Place, logs: Entry, name: str, walk: _Walk) -> list[Entry]:
    """The older logs of a run; those that cannot be had do not take the rest of it with them."""
    found: list[Entry] = []
    try:
        for one in folder.below(logs).entries():
            if OLD_LOG.fullmatch(one.name) and one.is_file(follow_symlinks=False):
                one.stat()
                found.append(one)
    except OSError as error:
        walk.unread(name, error)
    return found


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


def _kind(name: str) -> str | None:
    """What a file of that name may be."""
    suffix = Path(name).suffix.lower()
    return "log" if suffix in (*LOGS, *MAYBE) else "archive" if suffix in ARCHIVES else None


def _file(entry: Entry | LocalPlace, name: str, seen: set[tuple[Any, Any]]) -> Iterator[Target]:
    path = Path(name)
    suffix = path.suffix.lower()
    kind = _kind(name)
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
