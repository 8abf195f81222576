"""`aitk_db.db`, in which AI Toolkit's UI keeps its jobs: a second witness for how a run ended and with which config.

It lies in the toolkit's folder, and runs by default in `output/JOB` below that. It may be in use, or come from a
stranger: it is read without a lock, within limits, and damage makes it no witness.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from postmortem.faults import PASSING, noted
from postmortem.intake import opening
from postmortem.intake.errors import IntakeError
from postmortem.model import JobDatabase, JobRow
from postmortem.text import LogText, named, printable

if TYPE_CHECKING:
    import sqlite3  # most folders have no database: it is loaded for one that has

NAME = "aitk_db.db"
LEVELS = 3
"""Folders above the run's that may be the toolkit's: TRAINING_FOLDER/JOB, with one more in between."""
MAX_BYTES = 256 * 1024 * 1024
MAX_ROWS = 2_000
MAX_NAME = 1_000
MAX_INFO = 20_000
MAX_CONFIG = 2_000_000
MAX_TEXT = 64 * 1024 * 1024
"""Characters of all jobs together."""
MAX_INSTRUCTIONS = 50_000_000
"""Of SQLite's virtual machine, a few seconds of work; a real database needs far less."""
_MAGIC = b"SQLite format 3\0"
_IS_TABLE = "SELECT count(*) FROM sqlite_master WHERE name = 'Job' AND type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
_COLUMNS = {"id": MAX_NAME, "name": MAX_NAME, "status": 40, "info": MAX_INFO, "job_config": MAX_CONFIG + 1}
_NUMBERS = ("step", "total_steps")


def find(folder: Path, *, climb: bool = True) -> Path | None:
    """The database of the toolkit that `folder`, a run folder, belongs to; None when there is none."""
    place = os.path.abspath(folder)  # noqa: PTH100  (as the user sees it: `output` may be a link to a volume)
    for _ in range(1 + LEVELS if climb else 1):
        candidate = os.path.join(place, NAME)  # noqa: PTH118  (of many runs each looks: a tenth of what Path takes)
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(candidate).st_mode):
                return Path(candidate)
        above = os.path.dirname(place)  # noqa: PTH120
        if above == place:
            return None
        place = above
    return None


def read(path: Path, *, configs: bool = True) -> JobDatabase:
    """The jobs in the database (without their configs if not asked for); empty and damaged if it cannot be read."""
    import sqlite3

    name = printable(path.name)[:100]
    try:
        with _opened(path) as database:
            left_out: list[bool] = []
            rows = tuple(_rows(database, left_out, configs=configs))
            return JobDatabase(name, rows, whole=not left_out)
    except (OSError, sqlite3.Error, UnicodeError, ValueError, MemoryError):  # SQLite asks for what a damaged page says
        return JobDatabase(name, damaged=True)
    except PASSING:
        raise
    except Exception as error:  # a fault of ours: the log can still be read without it
        noted(error, "database")
        return JobDatabase(name, damaged=True)


def read_named(path: Path) -> JobDatabase:
    """The database that the user named. Raises IntakeError where it is none."""
    shown = named(str(path))
    try:
        if not path.is_file():
            raise IntakeError(f"{shown}: not a file; give the UI's {NAME}")
        with opening.opened(path) as file:
            head = opening.some(file, len(_MAGIC))
    except OSError as error:
        raise IntakeError(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None
    found = read(path) if head == _MAGIC else None
    if found is None or found.damaged:
        raise IntakeError(f"{shown}: not a database of AI Toolkit's jobs, or a damaged one; give the UI's {NAME}")
    return found


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The database without a lock; with its write-ahead log, where there is one, a copy of both."""
    import shutil
    import sqlite3
    import tempfile

    log = path.with_name(path.name + "-wal")
    parts = [path, *([log] if log.is_file() and not log.is_symlink() and log.stat().st_size else [])]
    if sum(part.stat().st_size for part in parts) > MAX_BYTES:
        raise ValueError("too large")
    if len(parts) == 1:
        with closing(sqlite3.connect(_uri(path.absolute()), uri=True)) as database:
            yield _limited(database)
        return
    with tempfile.TemporaryDirectory(prefix="postmortem-") as copies:
        for part in parts:
            shutil.copyfile(part, Path(copies) / part.name)
        with closing(sqlite3.connect(Path(copies) / path.name)) as database:
            yield _limited(database)


def _uri(path: PurePath) -> str:
    """The file for SQLite, as nobody else changes it. Not `as_uri`: of a Windows share that names a host, which SQLite
    refuses."""
    from urllib.parse import quote_from_bytes

    place = quote_from_bytes(os.fsencode(path.as_posix()), safe="/:")
    return f"file://{'' if place.startswith('/') else '/'}{place}?mode=ro&immutable=1"


def _limited(database: sqlite3.Connection) -> sqlite3.Connection:
    database.set_progress_handler(lambda: 1, MAX_INSTRUCTIONS)
    database.text_factory = lambda raw: raw.decode("utf-8", "replace")
    database.execute("PRAGMA trusted_schema = OFF")
    return database


def _rows(database: sqlite3.Connection, left_out: list[bool], *, configs: bool) -> Iterator[JobRow]:
    """The jobs, the newest first (AI Toolkit adds columns now and then, and never takes one away).

    `left_out` gets an entry where there are more of them than are read.
    """
    if database.execute(_IS_TABLE).fetchone() != (1,):
        raise ValueError("no jobs in it")
    present = {row[1] for row in database.execute("PRAGMA table_info(Job)").fetchall()}
    if not {"id", "name"} <= present:
        raise ValueError("no jobs in it")
    if not configs:
        present.discard("job_config")
    wanted = [f"substr({name}, 1, {limit})" if name in present else "NULL" for name, limit in _COLUMNS.items()]
    wanted += [name if name in present else "NULL" for name in _NUMBERS]
    total = 0
    query = f"SELECT {', '.join(wanted)} FROM Job ORDER BY rowid DESC LIMIT {MAX_ROWS + 1}"  # noqa: S608  (our own names)
    for count, row in enumerate(database.execute(query)):
        texts = [value if isinstance(value, str) else "" for value in row[:5]]
        total += sum(map(len, texts))
        if total > MAX_TEXT or count == MAX_ROWS:
            left_out.append(True)
            return
        yield JobRow(
            id=LogText(texts[0]),
            name=LogText(texts[1]),
            status=printable(texts[2]),
            step=_count(row[5]),
            total_steps=_count(row[6]),
            info=texts[3],
            config=texts[4] if texts[4] and len(texts[4]) <= MAX_CONFIG else None,
        )


def _count(value: Any) -> int | None:
    """AI Toolkit writes some numbers as text; a column of a number's type makes them numbers again, others do not."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 13:
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 10**12 else None
