"""Rows of earlier runs of `batch`, by the bytes they stand on and the version of tool and patterns.

One SQLite file a version: SQLite makes it safe against a crash and against two runs at once. A cache that cannot be
used is no error; without it everything is analysed again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import msgspec

from postmortem.fleet.find import Target
from postmortem.fleet.row import MAX_PATH, Row, shown_name
from postmortem.fleet.work import Done, shown
from postmortem.intake import is_url

RACY_S = 2.0
"""A file changed so shortly before it was read may change again within the resolution of its time: not remembered."""
KEEP_DAYS = 60
LAYOUT = 3
CHECK_BYTES = 8
"""A digest in front of each row: a disk that flips a bit must not change a verdict."""
_TABLES = """
CREATE TABLE IF NOT EXISTS rows (key TEXT PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (path TEXT PRIMARY KEY, signature TEXT NOT NULL, key TEXT NOT NULL) WITHOUT ROWID;
"""


class Cache:
    """The rows known for one version of the tool and its patterns."""

    def __init__(self, version: str, folder: Path | None) -> None:
        self._base: sqlite3.Connection | None = None
        self._decode = msgspec.json.Decoder(Row)
        self._path = folder / f"fleet-{LAYOUT}-{version}.db" if folder is not None else None
        if self._path is not None:
            self._open(self._path)

    def _open(self, path: Path) -> None:
        for attempt in (1, 2):
            base = None
            try:
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                base = sqlite3.connect(path, timeout=10, isolation_level=None)
                base.execute("PRAGMA journal_mode=WAL")
                base.execute("PRAGMA synchronous=NORMAL")
                base.executescript(_TABLES)
                self._base, base = base, None
                self._forget_old(path)
                return
            except sqlite3.OperationalError:
                # in use, not to be written, no room: sound it may be, and another batch's
                return
            except sqlite3.DatabaseError:
                if base is not None:  # Windows removes no open file
                    base.close()
                if attempt == 1:
                    self._discard(path)
            except OSError:
                return
            finally:
                if base is not None:
                    base.close()

    @staticmethod
    def _discard(path: Path) -> None:
        """Remove what is damaged, or no database: it holds nothing that cannot be had again."""
        for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            with contextlib.suppress(OSError):
                name.unlink(missing_ok=True)

    def _give_up(self, error: sqlite3.Error) -> None:
        """Go on without; the next start makes a damaged one anew."""
        self.close()
        if self._path is not None and not isinstance(error, sqlite3.OperationalError):
            self._discard(self._path)

    @staticmethod
    def _forget_old(path: Path) -> None:
        """Remove the caches of versions that nobody has used for long."""
        limit = time.time() - KEEP_DAYS * 86400
        for other in path.parent.glob("fleet-*.db"):
            with contextlib.suppress(OSError):
                if other != path and other.stat().st_mtime < limit:
                    other.unlink(missing_ok=True)

    def get(self, target: Target) -> tuple[str, Row] | None:
        """The key and the row of a target whose files have not changed since."""
        if self._base is None or not target.signature:
            return None
        try:
            found = self._base.execute(
                "SELECT rows.key, row FROM seen JOIN rows ON rows.key = seen.key WHERE path = ? AND signature = ?",
                (_place(target), _stored(target.signature)),
            ).fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        if found is None or not all(isinstance(one, kind) for one, kind in zip(found, (str, bytes), strict=True)):
            return None
        check, content = found[1][:CHECK_BYTES], found[1][CHECK_BYTES:]
        if check != _check(found[0], content):
            return None
        try:
            row = self._decode.decode(content)
        except msgspec.MsgspecError:
            return None
        name, path = shown_name(target.name), shown_name(shown(target.path), MAX_PATH)
        return found[0], msgspec.structs.replace(row, run=name, path=path)

    def put(self, done: list[Done], now: float) -> None:
        """Remember what was analysed at `now` (seconds): all of it or nothing."""
        kept = [one for one in done if one.key is not None]
        if self._base is None or not kept:
            return
        rows = [(one.key, _check(one.key or "", row) + row) for one in kept for row in [msgspec.json.encode(one.row)]]
        seen = [
            (_place(one.target), _stored(one.target.signature), one.key)
            for one in kept
            if one.target.signature and now - one.target.mtime > RACY_S
        ]
        try:
            with self._transaction(self._base) as base:
                base.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", rows)
                base.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", seen)
        except sqlite3.Error as error:
            self._give_up(error)

    @staticmethod
    @contextlib.contextmanager
    def _transaction(base: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        base.execute("BEGIN IMMEDIATE")
        try:
            yield base
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # a full disk may have ended it already
                base.execute("ROLLBACK")
            raise
        base.execute("COMMIT")

    def close(self) -> None:
        """Give the file back."""
        if self._base is not None:
            with contextlib.suppress(sqlite3.Error):
                self._base.close()
            self._base = None


def _place(target: Target) -> str:
    """Where a target is, whatever folder the command runs in; links are not followed."""
    return _stored(target.path if is_url(target.path) else os.path.abspath(target.path))  # noqa: PTH100


def _stored(text: str) -> str:
    """Text with file names in it, which are bytes of any kind, as text that SQLite takes."""
    return os.fsencode(text).decode("latin-1")


def _check(key: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=CHECK_BYTES, key=key.encode()[:64]).digest()
