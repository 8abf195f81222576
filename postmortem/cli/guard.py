"""What is written is never what was read: held against what the user named, and again against what was opened."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

if TYPE_CHECKING:
    from postmortem.intake import Intake

Target = tuple[str, "Path | None"]
"""The option that names a file to write, and the file."""
MAX_LOOKED = 200_000
"""Entries of a folder among which another name of the file is looked for."""
_REPORTS = (".md", ".html", ".zip")
"""What a report in a run folder may be called: nothing that the run itself writes."""
_NEVER = (".db", ".db-wal", ".db-shm", ".safetensors", ".pt")
_BESIDE = ("", "-wal", "-shm")
"""A database is read with what lies beside it."""


def refuse(targets: Sequence[Target], *given: object, configs: bool = False, hint: str = "") -> None:
    """Raises Failure where a target is one of the inputs `given` (standard input too, where it is a file), lies in a
    folder among them, or is called as what a run lives from; with `configs`, a job config is what is to be written."""
    for option, out in targets:
        if str(out) == "-":
            raise Failure(f"{option} -: give a file name", USAGE)
        if (found := _there(out)) is None:
            continue
        assert out is not None
        name = out.resolve().name
        if _of_a_run(name, configs=configs) or any(_reads(one, out, found) for one in given if one not in (None, "")):
            _refused(option, out, hint)


def refuse_opened(targets: Sequence[Target], opened: Intake, *, folder: bool = True, hint: str = "") -> None:
    """Raises Failure where a target was opened as a part of the input, whatever name led to it; `folder`: or lies in
    the folder of the run, where reports alone may be replaced."""
    for option, out in targets:
        if (found := _there(out)) is None:
            continue
        assert out is not None
        if any(_reads(one, out, found) for one in _opened(opened, folder=folder)):
            _refused(option, out, hint)


def refuse_files(targets: Sequence[Target], read: Iterable[str]) -> None:
    """Raises Failure where a target is one of the files `read`."""
    existing = [(option, out, found) for option, out in targets if (found := _there(out)) is not None]
    for path in read if existing else ():
        for option, out, found in existing:
            if out is not None and _same(path, found):
                _refused(option, out, "")


def _refused(option: str, out: Path, hint: str) -> None:
    raise Failure(f"{option} {printable(str(out))}: is an input; give another name{hint}", USAGE)


def _there(out: Path | None) -> os.stat_result | None:
    """The file that would be written over, if there is one."""
    try:
        return out.stat() if out is not None and out.is_file() else None
    except (OSError, ValueError):
        return None


def _of_a_run(name: str, *, configs: bool) -> bool:
    from postmortem.intake.folders import CONFIG_NAMES, of_a_run

    if configs and name in CONFIG_NAMES:
        return False
    return of_a_run(name) or name.endswith(_NEVER)


def _opened(opened: Intake, *, folder: bool) -> Iterator[Path]:
    yield from opened.files
    if opened.folder is None or opened.keep is not None:
        return
    from postmortem.intake import jobdb

    if folder:
        yield opened.folder
    if (database := jobdb.find(opened.folder)) is not None:
        yield database


def _reads(one: object, out: Path, found: os.stat_result) -> bool:
    """Whether the input `one` is the file `out` or its folder, by whatever name (in a folder, reports may lie)."""
    try:
        if one == "-":
            return sys.stdin is not None and os.path.samestat(os.fstat(sys.stdin.fileno()), found)
        path = _path(one)
        if path is None:
            return False
        if not path.is_dir():
            return any(_same(f"{path}{end}", found) for end in _BESIDE)
        target = out.resolve()
        return target.suffix.lower() not in _REPORTS and (path.resolve() in target.parents or _holds(path, found))
    except (OSError, ValueError, RuntimeError):
        return False


def _path(one: object) -> Path | None:
    """The file or folder of this machine that an argument means; None for what is elsewhere."""
    from postmortem.intake import IntakeError, is_url

    if isinstance(one, str) and is_url(one):
        from postmortem.intake.remote import local_path

        try:
            return local_path(one)
        except (IntakeError, ValueError):
            return None
    return Path(str(one))


def _holds(folder: Path, found: os.stat_result) -> bool:
    """Whether something in `folder` is the same file, by a link of either kind."""
    waiting, looked = [str(folder)], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    looked += 1
                    if looked > MAX_LOOKED:
                        return False
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif (entry.is_symlink() or entry.inode() == found.st_ino) and _same(entry.path, found):
                        return True
        except OSError:
            continue
    return False


def _same(path: str, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), found)  # noqa: PTH116  (a string, of many)
    except (OSError, ValueError):
        return False
