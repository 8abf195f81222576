"""What watch settled before, kept over its restarts: one small file for each folder that is watched.

It saves reading again what nothing is to be said of, and keeps a failure from being told twice where its report could
not be written or was taken away. Without it a restart reads more; the reports themselves still tell what was told.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from hashlib import blake2b
from pathlib import Path
from typing import IO

import msgspec

from postmortem.files import sweep
from postmortem.fleet.watch.files import STALE_S, NotWritten, Write

LAYOUT = 1
SPARE = 1_000
MAX_BYTES = 64 * 1024 * 1024


class Settled(msgspec.Struct, frozen=True, array_like=True):
    """How the log of a run stood when it was judged, by which version, and the name of the failure that was told."""

    mark: tuple[int, int, int]
    version: str
    told: str | None = None


class _File(msgspec.Struct):
    layout: int
    runs: dict[str, Settled]


class Memory:
    """The settled runs below one folder; kept in memory alone where `home` is None or cannot be written."""

    def __init__(self, home: Path | None, folder: Path, version: str, write: Write) -> None:
        self._version = version
        self._write = write
        name = blake2b(os.fsencode(os.path.abspath(folder)), digest_size=8).hexdigest()  # noqa: PTH100
        self._path = home / f"watch-{name}.json" if home is not None else None
        self._lock: IO[bytes] | None = None
        self._runs = _load(self._path) if self._path is not None else {}
        self._dirty = False

    def alone(self) -> bool:
        """Whether no other watcher of this machine and user follows the folder; from now on none may until we end."""
        if self._path is None:
            return True
        try:
            import fcntl

            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sweep(self._path.parent, STALE_S)
            self._lock = self._path.with_suffix(".lock").open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except (ImportError, OSError):
            return True  # no such locks here
        return True

    def settled(self, path: str, mark: tuple[int, int, int]) -> bool:
        """Whether the run was judged with its log as it stands now, and a newer version has nothing to add."""
        known = self._runs.get(_key(path))
        return known is not None and known.mark == mark and (known.version == self._version or known.told is not None)

    def told(self, path: str) -> str | None:
        """Which failure of the run was told last."""
        known = self._runs.get(_key(path))
        return known.told if known is not None else None

    def settle(self, path: str, mark: tuple[int, int, int], told: str | None) -> None:
        """Remember that the run was judged."""
        now = Settled(mark, self._version, told)
        if self._runs.get(_key(path)) != now:
            self._runs[_key(path)] = now
            self._dirty = True

    def prune(self, live: Collection[str]) -> None:
        """Forget runs that are gone for good: only once they are many, for a volume may be away for a while."""
        if len(self._runs) > 2 * len(live) + SPARE:
            kept = {_key(path) for path in live}
            self._runs = {key: value for key, value in self._runs.items() if key in kept}
            self._dirty = True

    def save(self) -> None:
        """Write the file if there is news. A place that cannot be written is no error."""
        if not self._dirty or self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._write(msgspec.json.encode(_File(LAYOUT, self._runs)).decode(), self._path)
            self._dirty = False
        except (OSError, NotWritten):
            return


def _load(path: Path) -> dict[str, Settled]:
    try:
        if path.stat().st_size > MAX_BYTES:
            return {}
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError):
        return {}
    return found.runs if found.layout == LAYOUT else {}


def _key(path: str) -> str:
    """A path as text that JSON can hold: file names are bytes."""
    return os.fsencode(path).decode("latin-1")
