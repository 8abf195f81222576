"""What a generated run really was: the plan that it was written from, and the truth that a report must say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ERAS = ("uncaught", "caught", "counts_completed")
"""Before 2025-09-27 the first OOM of a step ends the run; since 2026-08-21 the bar counts completed steps."""

MEMORY_KINDS = frozenset({"gpu_oom", "host_oom", "vram_spill"})


@dataclass(frozen=True)
class Truth:
    """The right answers. Tuples list all that are right; a None in place of a tuple asks nothing."""

    kind: tuple[str, ...]
    outcome: tuple[str, ...]
    class_: tuple[str | None, ...] = (None,)
    phase: tuple[str, ...] | None = None
    resource: tuple[str | None, ...] | None = None
    step: tuple[int | None, ...] | None = None
    oom_steps: tuple[int, ...] | None = None
    """Exactly the steps of all OOM events, in order."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    last_completed: int | None = None
    """The last step that ended well, None if none did."""


@dataclass(frozen=True)
class Plan:
    """What a run is written from; every field is drawn from the seed."""

    seed: int
    family: str
    mode: str
    era: str
    failure: str
    name: str
    root: str
    steps: int
    start: int
    every: int
    resolutions: tuple[int, ...]
    buckets: tuple[tuple[tuple[str, int], ...], ...]
    batch_size: int
    baseline: bool
    text_cache: bool
    timers: bool
    ui_log: bool
    seconds: float
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One generated log with its plan and its truth."""

    plan: Plan
    log: str
    truth: Truth

    @property
    def id(self) -> str:
        """Short enough for a test's name."""
        return f"{self.plan.seed}-{self.plan.failure}-{self.plan.family}-{self.plan.mode}-{self.plan.era}"
