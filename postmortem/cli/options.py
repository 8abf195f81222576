"""Options that several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import typer

from postmortem.cli import common


def stdout(value: Any) -> Any:
    """`-` as a file to write is what nothing is: standard output."""
    return None if str(value) == "-" else value


CONFIG: Any = typer.Option(None, "--config", help="The job config (YAML or JSON), if the log does not hold it.")
DATABASE: Any = typer.Option(
    None, "--db", metavar="FILE", help="The UI's database (aitk_db.db), if it is not in the toolkit's folder."
)
DATASET: Any = typer.Option(
    None,
    "--dataset",
    metavar="DIR",
    help="A dataset's folder, if the log lacks its bucket table; once for each, in the config's order or by name.",
)
OUTPUT: Any = typer.Option(
    None, "-o", "--output", metavar="FILE", callback=stdout, help="Write there, whole or not at all; - is stdout."
)
LANG: Any = common.LANG
ATTEMPT: Any = typer.Option(None, "--attempt", metavar="N", help="Report on the N-th attempt in the input.")
PATTERNS: Any = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own.")
GPU: Any = typer.Option(
    None, "--gpu", metavar="GIB", min=1, max=4096, help="The card's size, if the log does not tell it."
)
EXPANDED: Any = typer.Option(4096, "--max-expanded", metavar="MIB", min=1, help="Unpack at most so much.")
RATIO: Any = typer.Option(1000, "--max-ratio", min=1, help="Unpack at most so many times an archive's size.")
ENTRIES: Any = typer.Option(10_000, "--max-entries", min=1, help="Look at so many entries of an archive.")


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What the user gave besides the input: what its analysis depends on."""

    config: Path | None = None
    db: Path | None = None
    datasets: tuple[Path, ...] = ()
    attempt: int | None = None
    gpu_gib: float | None = None
    expanded_mib: int = 4096
    ratio: int = 1000
    entries: int = 10_000
