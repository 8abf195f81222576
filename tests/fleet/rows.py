"""Rows made by hand: a fleet whose counts are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from postmortem.fleet.groups import Group, Rank, groups_of
from postmortem.fleet.row import Row
from postmortem.fleet.table import frame
from postmortem.knowledge.schema import Knowledge

HOSTILE = "\x1b[31mred\x07\x9b2J<script>alert(1)</script>[bold]x[/bold]\u202eevil\u200b\r\n=1+1"


def fine(number: int, **more: Any) -> Row:
    """A run that did not fail."""
    given: dict[str, Any] = {"outcome": "completed", "kind": "none", "gradient_checkpointing": True, "batch_size": 1}
    named = {"run": f"fine_{number}", "path": f"/runs/fine_{number}", "status": "analysed"}
    return Row(**{**named, **given, **more})


def dead(number: int, **more: Any) -> Row:
    """A run that died in its first steps with checkpointing off."""
    given: dict[str, Any] = {
        "outcome": "failed",
        "kind": "gpu_oom",
        "resource": "vram",
        "class_": "early_step",
        "phase": "training_step",
        "step": 3,
        "family": "Z-Image",
        "gradient_checkpointing": False,
        "batch_size": 1,
        "first_fix": "enable_gradient_checkpointing",
        "cause": "checkpointing_off",
        "fingerprint": "a" * 16,
        "hours": 0.5,
        "hours_lost": 0.5,
    }
    named = {"run": f"dead_{number}", "path": f"/runs/dead_{number}", "status": "analysed"}
    return Row(**{**named, **given, **more})


def grouped(rows: Sequence[Row], knowledge: Knowledge, by: Rank = "runs") -> list[Group]:
    """The groups of `rows`."""
    table = frame(rows)
    return groups_of(table, rows, knowledge, table, by)
