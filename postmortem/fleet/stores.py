"""Runs in an object store, listed through fsspec: few requests, each listing held only while it is walked through.

The root is listed one level deep; what lies below each folder of it comes in one listing of its own, some folders
ahead, so that waiting for the store overlaps. Loaded only when a root is `scheme://…`.
"""

from __future__ import annotations

import stat
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any

import msgspec

from postmortem.fleet.places import Entry, Place
from postmortem.intake import remote
from postmortem.intake.errors import IntakeError
from postmortem.intake.folders import natural

AHEAD = 16
"""Folders that are listed while earlier ones are walked through."""
_MARKS = ("ETag", "etag", "md5Hash", "md5", "crc32c", "checksum", "content_md5", "oid", "blob_id", "sha", "generation")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class StoreStat(msgspec.Struct, frozen=True):
    """What a store says of a file, under the names of `os.stat`; `st_ino` is its checksum or version."""

    st_mode: int
    st_size: int
    st_mtime: float
    st_mtime_ns: int
    st_dev: str
    st_ino: str


class StoreEntry:
    """A file or folder of a listing."""

    def __init__(self, name: str, url: str, info: dict[str, Any] | None, below: dict[str, Any] | None = None) -> None:
        self.name = name
        self.path = url
        self.info = info
        self.children = below

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        return self.info is None

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a file."""
        return self.info is not None

    def stat(self) -> StoreStat:
        """Size, time and checksum as far as the store tells them."""
        if self.info is None:
            return StoreStat(stat.S_IFDIR, 0, 0.0, 0, self.path, "")
        seconds = next((_seconds(self.info[key]) for key in _TIMES if self.info.get(key) is not None), 0.0)
        mark = next((str(self.info[key]) for key in _MARKS if self.info.get(key)), "")
        plain = mark.strip('"').translate(_PLAIN)[:80]
        size = int(self.info.get("size") or 0)
        return StoreStat(stat.S_IFREG, size, seconds, int(seconds * 1e9), self.path, plain)


_FILE = "\0"
"""The key under which a listing, made into a tree, keeps what the store says of a file."""
_PLAIN = str.maketrans({":": "_", "|": "_"})


class StorePlace:
    """A folder whose whole content is known from one listing."""

    remote = True

    def __init__(self, url: str, tree: dict[str, Any]) -> None:
        self.path = url
        self._tree = tree

    def entries(self) -> Sequence[Entry]:
        """What lies in it."""
        return [_entry(self.path, name, found) for name, found in self._tree.items()]

    def below(self, entry: Entry) -> Place:
        """A folder in it."""
        assert isinstance(entry, StoreEntry)
        return StorePlace(entry.path, entry.children or {})

    def stat(self) -> StoreStat:
        """Of the folder itself."""
        return StoreStat(stat.S_IFDIR, 0, 0.0, 0, self.path, "")


class StoreRoot:
    """The folder that was named: listed itself, then each folder in it, some ahead of the walk."""

    remote = True

    def __init__(self, url: str, files: Any, path: str) -> None:
        self.path = url.rstrip("/")
        self._files = files
        self._base = path.rstrip("/")
        self._listed: dict[str, Future[dict[str, Any]]] = {}
        self._waiting: deque[str] = deque()
        self._pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="listing")

    def entries(self) -> Sequence[Entry]:
        """What lies in it. Raises OSError."""
        found: list[Entry] = []
        folders = []
        for info in self._files.ls(self._base, detail=True):
            name = str(info["name"]).rstrip("/").rsplit("/", 1)[-1]
            if not name or str(info["name"]).rstrip("/") == self._base:
                continue
            folder = info.get("type") == "directory"
            folders += [name] if folder else []
            found.append(StoreEntry(name, f"{self.path}/{name}", None if folder else info))
        self._waiting.extend(sorted(folders, key=lambda name: (natural(name), name)))
        self._more()
        return found

    def below(self, entry: Entry) -> Place:
        """A folder in it. Raises OSError."""
        self._more()
        future = self._listed.pop(entry.name, None)
        tree = future.result() if future is not None else self._list(entry.name)
        self._more()
        return StorePlace(entry.path, tree)

    def stat(self) -> StoreStat:
        """Of the folder itself."""
        return StoreStat(stat.S_IFDIR, 0, 0.0, 0, self.path, "")

    def _more(self) -> None:
        while self._waiting and len(self._listed) < AHEAD:
            name = self._waiting.popleft()
            self._listed[name] = self._pool.submit(self._list, name)

    def _list(self, name: str) -> dict[str, Any]:
        base = f"{self._base}/{name}"
        tree: dict[str, Any] = {}
        try:
            found = self._files.find(base, detail=True)
        except Exception as error:  # what a store of somebody's raises; to go on would lose runs without a word
            shown = remote.without_secrets(f"{self.path}/{name}")
            raise IntakeError(f"{shown}: {remote.reason(error)}") from None
        for key, info in found.items():
            parts = str(key)[len(base) :].strip("/").split("/")
            if info.get("type") == "directory" or str(key).endswith("/") or not parts[0]:
                continue
            place = tree
            for part in parts[:-1]:
                # a store may have both a file and a folder of one name: here the folder gets another
                below = place.setdefault(part, {})
                place = below if _FILE not in below else place.setdefault(f"{part}/", {})
            place.setdefault(parts[-1], {})[_FILE] = info
        return tree


def open_root(url: str) -> Place | StoreEntry:
    """The folder or the file at `url`. Raises IntakeError, in a line that names it without its secrets."""
    try:
        shown = remote.without_secrets(url)
    except ValueError:  # which is not shown: where its password ends cannot be told
        raise IntakeError("not a URL that can be read; check its host and brackets") from None
    try:
        files, path = remote.file_system(url, use_listings_cache=False)
        if remote.is_web(url):
            return StoreEntry(path.split("?")[0].rstrip("/").rsplit("/", 1)[-1], url, {"size": 0})
        files.invalidate_cache()
        if files.isdir(path):
            return StoreRoot(url, files, path)
        return StoreEntry(path.rsplit("/", 1)[-1], url, files.info(path))
    except IntakeError as error:
        raise IntakeError(f"{shown}: {error}") from None
    except Exception as error:  # whatever a file system of somebody's raises is told in one line
        raise IntakeError(f"{shown}: {remote.reason(error)}") from None


def _entry(base: str, name: str, found: dict[str, Any]) -> StoreEntry:
    info = found.get(_FILE)
    return StoreEntry(name, f"{base}/{name}", info, None if info is not None else found)


def _seconds(value: Any) -> float:
    """A time as a store gives it, in seconds; 0 for one that is not understood."""
    try:
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, str):
            return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        return float(value)
    except (ValueError, OverflowError, TypeError):
        return 0.0
