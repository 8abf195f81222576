"""A small tree of runs with all that a batch meets, for tests that compare ways to analyse it."""

from __future__ import annotations

import gzip
from pathlib import Path

from tests.simulate import config, finished, head, training

SPIKE = head(config()) + training(400, {0, 1, 2, 3})
FINE = head(config()) + training(40, []) + finished()


def mixed(root: Path, runs: int = 8) -> Path:
    """Run folders (one with two attempts), a loose log and a copy of it, an archive, broken files, captions."""
    for number in range(runs):
        folder = root / f"run_{number}"
        folder.mkdir(parents=True)
        (folder / "log.txt").write_text((SPIKE if number % 2 else FINE) + f"run {number}\n", newline="")
    (root / "run_0" / "logs").mkdir()
    off = head(config(train__gradient_checkpointing=False)) + training(400, {0, 1, 2, 3})
    (root / "run_0" / "logs" / "0_log.txt").write_text(off, newline="")
    (root / "run_1" / "samples").mkdir()
    (root / "run_1" / "samples" / "a.log").write_text("no run\n")
    (root / "loose.log").write_text(SPIKE, newline="")
    (root / "copy").mkdir()
    (root / "copy" / "again.log").write_text(SPIKE, newline="")
    (root / "old.log.gz").write_bytes(gzip.compress(FINE.encode()))
    (root / "broken.log").write_bytes(b"\x7fELF" + bytes(100))
    (root / "torn.log.gz").write_bytes(gzip.compress(FINE.encode())[:12])
    (root / "cat.png").write_bytes(b"x")
    (root / "cat.txt").write_text("a cat\n")
    return root


NAMES = ["broken.log", "copy/again.log", "loose.log", "old.log.gz", "run_0"]
"""The first names of the tree, in order."""
