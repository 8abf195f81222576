"""Attempts as short as a test needs them: nothing happened but what is given."""

from __future__ import annotations

from typing import Any

from postmortem.model import Attempt, Bucket, End, Event, Oom, Place
from postmortem.text import LogText

NOTHING: dict[str, Any] = {
    "index": 1,
    "source": "log",
    "first_line": 1,
    "last_line": 1000,
    "job_name": None,
    "start_step": 0,
    "total_steps": 2000,
    "last_bar": None,
    "last_completed_step": None,
    "good_steps": 0,
    "trained": False,
    "phase": "unknown",
    "stages": (),
    "ooms": (),
    "errors": (),
    "notes": (),
    "buckets": (),
    "dump": None,
    "save_steps": (),
    "sample_steps": (),
    "last_saved_step": None,
    "last_saved": None,
    "resumed_from": None,
    "job_id": None,
    "step_times": None,
    "slow_stretch": None,
    "buffered": False,
    "bar_counts_completed": False,
    "bar_proves_count": False,
    "skips_confirmed": True,
    "excerpt_bars": False,
    "resumed": False,
    "has_header": True,
}


def attempt(outcome: str = "failed", *, event: Event | None = None, traceback: Any = None, **given: Any) -> Attempt:
    """An attempt that ended so."""
    end = End(outcome, event.place if event else None, event, traceback)
    return Attempt(end=end, **{**NOTHING, **given})


def at(line: int, source: str = "log") -> Place:
    """The place of a line, its bytes known."""
    return Place(line, 100 * line, source, None, 100 * line + 50)


def event(role: str, line: int = 900, **given: Any) -> Event:
    """A line that an entry of the knowledge base claims in `role`."""
    return Event(at(line), given.pop("pattern", f"a.{role}"), role, LogText(given.pop("text", role)), **given)


def oom(step: int | None, phase: str = "training_step", *, caught: bool = False, line: int = 500, **given: Any) -> Oom:
    """A GPU OOM at a step."""
    rest = {"pattern": "torch.oom", "kind": "gpu_oom", "resource": "vram", **given}
    return Oom(place=at(line), phase=phase, caught=caught, step=step, **rest)


def bucket(label: str, files: int, *, block: int = 1, line: int = 10) -> Bucket:
    """A row of a bucket table."""
    width, height, frames = (int(part) for part in f"{label}x1".split("x")[:3])
    return Bucket(LogText("/data"), width, height, frames, files, block, line)
