"""`loss_log.db`, which AI Toolkit's UI logger leaves in the run folder: a second witness for skipped steps.

A skipped step has a row with a learning rate of 0 and no loss. The first step of a run and the fatal one have no row.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

NAME = "loss_log.db"
MAX_BYTES = 256 * 1024 * 1024
MAX_STEPS = 100_000
MAX_INSTRUCTIONS = 50_000_000
"""Of SQLite's virtual machine, a few seconds of work; a real run needs far less."""
_IS_TABLE = "SELECT count(*) FROM sqlite_master WHERE name = 'metrics' AND type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
_QUERY = """
    SELECT step FROM metrics WHERE key = 'learning_rate' AND value_real = 0.0
    EXCEPT SELECT step FROM metrics WHERE key LIKE 'loss/%'
    ORDER BY step LIMIT ?
"""


def skipped_steps(folder: Path) -> tuple[int, ...] | None:
    """The steps that the database shows as skipped; None when there is none, or it cannot be read.

    A copy is read: after a failure the write-ahead log still belongs to it, and opening the original would lock it.
    """
    parts = [folder / (NAME + suffix) for suffix in ("", "-wal", "-shm")]
    try:
        present = [part for part in parts if part.is_file() and not part.is_symlink()]
        if parts[0] not in present or sum(part.stat().st_size for part in present) > MAX_BYTES:
            return None
        with tempfile.TemporaryDirectory(prefix="postmortem-") as copies:
            for part in present:
                shutil.copyfile(part, Path(copies) / part.name)
            with closing(sqlite3.connect(Path(copies) / NAME)) as database:
                database.set_progress_handler(lambda: 1, MAX_INSTRUCTIONS)
                database.text_factory = lambda raw: raw.decode("utf-8", "replace")
                if database.execute(_IS_TABLE).fetchone() != (1,):
                    return None
                rows = database.execute(_QUERY, (MAX_STEPS,)).fetchall()
        return tuple(row[0] for row in rows if isinstance(row[0], int))
    except (OSError, sqlite3.Error, UnicodeError, ValueError, MemoryError):  # SQLite asks for what a damaged page says
        return None
