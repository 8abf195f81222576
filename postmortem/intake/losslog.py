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
_QUERY = """
    SELECT step FROM metrics AS rate
    WHERE key = 'learning_rate' AND value_real = 0.0
      AND NOT EXISTS (SELECT 1 FROM metrics WHERE step = rate.step AND key LIKE 'loss/%')
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
                rows = database.execute(_QUERY, (MAX_STEPS,)).fetchall()
        return tuple(row[0] for row in rows if isinstance(row[0], int))
    except (OSError, sqlite3.Error):
        return None
