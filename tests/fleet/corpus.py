"""Logs whose cause is known, in every dress: users, paths, eras of AI Toolkit, models, captures, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.generate import Case, Plan, draw, write


@dataclass(frozen=True)
class Cause:
    """A cause by docs/fleet.md: the failure that brings it about, with these settings, in these plans only."""

    failure: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    batch_sizes: tuple[int, ...] = (1, 2, 4)
    modes: tuple[str, ...] = ("ui", "pty", "redirect", "logopt")
    eras: tuple[str, ...] = ("uncaught", "caught", "counts_completed")
    phase: str | None = None


ON, OFF = {"train__gradient_checkpointing": True}, {"train__gradient_checkpointing": False}

CAUSES = {
    "checkpointing off, first steps": Cause("early", OFF),
    "batch too large, first steps": Cause("early", ON, batch_sizes=(2, 4)),
    "does not fit, first steps": Cause("early", ON, batch_sizes=(1,)),
    "checkpointing off, a caught OOM broke the optimiser": Cause("exp_avg", OFF),
    "baseline preview too large": Cause("baseline_sampling", {"sample__width": 1536, "sample__height": 1536}),
    "preview in training": Cause("mid_sampling", ON),
    "after a preview": Cause("after_sample", ON),
    "after a save": Cause("after_save", ON),
    "steady training": Cause("steady_lived", ON, eras=("caught", "counts_completed")),
    "weights in full precision": Cause("model_load", {"model__quantize": False}),
    "weights, quantised": Cause("model_load"),
    "text encoder": Cause("text_encoder_load"),
    "quantising": Cause("quantize"),
    "network and optimiser": Cause("setup"),
    "latents": Cause("cache_latents"),
    "captions": Cause("cache_text_embeddings"),
    "saving": Cause("saving"),
    "page-locked memory": Cause("pinned"),
    "page file": Cause("page_file"),
    "RAM refused while loading": Cause("cpu_alloc"),
    "shared memory": Cause("shm"),
    "worker killed": Cause("worker"),
    "killed while training": Cause("sigkill"),
    "killed while caching": Cause("container", modes=("ui", "pty", "logopt"), phase="cache_latents"),
    "swallowed": Cause("swallowed"),
    "paging": Cause("spill", ON),
    "disk full": Cause("disk_full"),
    "no access": Cause("gated"),
    "dataset missing": Cause("dataset_missing"),
    "an assertion": Cause("assertion"),
    "illegal access": Cause("illegal_access"),
}
SAME = {"checkpointing off, a caught OOM broke the optimiser": "checkpointing off, first steps"}
"""Causes that are one: another end of the same failure."""


def cases(name: str, count: int) -> Iterator[Case]:
    """So many logs with the cause `name`, each of another seed."""
    cause = CAUSES[name]
    found = 0
    for seed in range(10_000):
        if found == count:
            return
        plan = draw(seed, (cause.failure,))
        if not _fits(plan, cause):
            continue
        case = write(replace(plan, settings=cause.settings))
        # a plan may have its failure at another place, or never come to it
        if case.truth.kind != ("none",) and (cause.phase is None or case.truth.phase == (cause.phase,)):
            found += 1
            yield case


def _fits(plan: Plan, cause: Cause) -> bool:
    return plan.batch_size in cause.batch_sizes and plan.mode in cause.modes and plan.era in cause.eras
