"""How files are written: whole or not at all, and never where a link of another user leads.

Everything that writes for people goes through `write_whole`: reports, tickets, configs, pages, a watcher's notes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

PREFIX, SUFFIX = ".postmortem-", ".part"
"""What a file is called until it is whole. Only a process that was killed leaves one, and the next one removes it."""
STALE_S = 3600.0
"""One that is younger may still be written by somebody else."""
OLD_S = 2 * 86400.0
"""No command unpacks something and then works on it for so long."""
MAX_LINKS = 40
MAX_SWEPT = 20_000
"""Entries of a folder that are looked through for what was left."""
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""What file systems say that cannot be asked to write at once."""


def write_whole(content: bytes, target: Path, *, private: bool = False) -> None:
    """Write `content` to `target`, which then holds all of it or is as it was; `private`: for its owner's eyes only.

    A new file has the rights that the umask leaves, one that was ours keeps its own. Raises OSError.
    """
    place = destination(target)
    name = _written(content, place.parent, 0o600 if private else _mode(place))
    try:
        os.replace(name, place)  # noqa: PTH105
    except BaseException:
        _drop(name)
        raise


def write_new(content: bytes, target: Path, mode: int) -> None:
    """Write `content` to a file that is not there yet, with the rights `mode`. Raises FileExistsError and OSError."""
    name = _written(content, target.parent, mode)
    try:
        try:
            os.link(name, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: an empty file takes the name first
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(name, target)  # noqa: PTH105
    finally:
        _drop(name)


def destination(target: Path) -> Path:
    """Where `target` leads, its links followed as far as they can be trusted. Raises OSError.

    A link is where somebody wants our output to go. In a folder that all may write to, as /tmp, that may be anybody
    (Linux itself refuses such a link when a file is opened, not when one is renamed over another); and the file itself
    is the user's choice, so that only his own link, or the system's, may stand in its place.
    """
    if not hasattr(os, "geteuid"):
        return target.resolve()
    whole = Path.cwd() / target
    place = Path(whole.anchor)
    ahead = list(reversed(whole.parts[1:]))
    links = 0
    while ahead:
        part = ahead.pop()
        if part == "..":
            place = place.parent
            continue
        entry = place / part
        try:
            found = entry.lstat()
        except FileNotFoundError:
            place = entry
            continue
        if not stat.S_ISLNK(found.st_mode):
            place = entry
            continue
        links += 1
        if links > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not _trusted(found, place, last=not ahead):
            raise OSError(errno.ELOOP, "is a link that another user placed; give the file that is meant")
        inner = Path(os.readlink(entry))  # noqa: PTH115
        if inner.is_absolute():
            place = Path(inner.anchor)
        ahead.extend(reversed(inner.parts[1:] if inner.is_absolute() else inner.parts))
    return place


def sweep(folder: Path, older_s: float = STALE_S) -> None:
    """Remove what writes that were killed half way left in `folder`, and never anything else."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MAX_SWEPT:
                return
            if not (entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX)):
                continue
            with contextlib.suppress(OSError):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > older_s:
                    os.unlink(entry.path)  # noqa: PTH108


def sweep_folders(place: Path, prefix: str, older_s: float = OLD_S) -> None:
    """Remove folders of ours in `place` that a command which was killed has left there."""
    if not hasattr(os, "geteuid"):
        return
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for count, entry in enumerate(entries):
            if count >= MAX_SWEPT:
                return
            with contextlib.suppress(OSError):
                if not entry.name.startswith(prefix) or not entry.is_dir(follow_symlinks=False):
                    continue
                found = entry.stat(follow_symlinks=False)
                ours = found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) == 0o700
                if ours and time.time() - found.st_mtime > older_s:
                    shutil.rmtree(entry.path, ignore_errors=True)


def _written(content: bytes, folder: Path, mode: int) -> str:
    """A file in `folder` under a name of its own that holds `content` for good."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=PREFIX, suffix=SUFFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _sync(file.fileno())
        os.chmod(name, mode)  # noqa: PTH101  (a string, as mkstemp gives it)
    except BaseException:  # Ctrl-C too must leave nothing half written
        _drop(name)
        raise
    return name


def _drop(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name)  # noqa: PTH108


def _trusted(link: os.stat_result, folder: Path, *, last: bool) -> bool:
    if link.st_uid in (os.geteuid(), 0):
        return True
    if last:
        return False
    above = folder.stat()
    shared = bool(above.st_mode & stat.S_ISVTX) and bool(above.st_mode & stat.S_IWOTH)
    return not shared or link.st_uid == above.st_uid


def _mode(place: Path) -> int:
    """The rights of the file that is there, if it is the user's own; else those of a new one."""
    try:
        found = place.stat()
    except FileNotFoundError:
        return 0o666 & ~_umask()
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        return 0o666 & ~_umask()
    return found.st_mode & 0o777


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
