"""Draws a run's plan from a seed: family, capture, era, failure, data, and the moments of previews and saves."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.generate.families import FAMILIES, Family
from tests.generate.terminal import MODES
from tests.generate.truth import ERAS, Plan

NO_MEMORY = (
    *("ok", "ok", "nan", "stopped_ui", "ctrl_c", "silent"),
    *("dataset_missing", "disk_full", "gated", "assertion", "illegal_access"),
)
STARTUP = ("model_load", "quantize", "text_encoder_load", "setup")
CACHING = ("cache_latents", "cache_text_embeddings")
STEPS = (
    "early",
    "spike",
    "spike",
    "spike_cut",
    "after_sample",
    "after_save",
    "steady",
    "steady_lived",
    "cublas",
    "bare",
    "exp_avg",
)
HOST = ("pinned", "cpu_alloc", "page_file", "memory_error", "shm", "worker", "kernel", "container", "sigkill")
OTHERS = ("baseline_sampling", "mid_sampling", "saving", "spill", "swallowed")
FAILURES = (*NO_MEMORY, *STARTUP, *CACHING, *STEPS, *HOST, *OTHERS)

_NAMES = ("mugs_v2", "sks_dog", "portrait-v1", "char b", "lace.collars", "Ölbilder", "도자기_01", "my_first_lora_v3")
_WINDOWS_ROOTS = ("C:/ai-toolkit", "D:/AI/ai-toolkit")
"""Only there does the driver page memory out without an error."""
_ROOTS = ("/home/user/ai-toolkit", "/workspace/ai-toolkit", "/app/ai-toolkit")
_RATIOS = ((1, 1), (3, 2), (2, 3), (4, 3), (3, 4), (16, 9), (9, 16))


def draw(seed: int, failures: Sequence[str] = FAILURES) -> Plan:
    """The plan of `seed`; one seed always gives one plan. Failures take turns, all else is drawn."""
    random = Random(seed)
    failure = failures[seed % len(failures)]
    name = random.choice(sorted(FAMILIES))
    family = FAMILIES[name]
    if family.arch == "sdxl" and failure in ("quantize", "text_encoder_load", "pinned", "swallowed"):
        name, family = "flux", FAMILIES["flux"]  # loads without lines of its own, in one piece
    era = random.choice(ERAS[1:] if failure in ("exp_avg", "spike_cut") else ERAS)
    mode = random.choice(MODES)
    start = 0
    every = random.choice((12, 14, 16, 20))
    if random.random() < 0.25 and failure != "exp_avg":
        start = every * random.randint(1, 3)
    one_shape = failure == "steady_lived" or (failure == "steady" and random.random() < 0.5)
    resolutions = tuple(
        sorted(random.sample(family.resolutions, 1 if one_shape else random.randint(1, len(family.resolutions))))
    )
    frames = random.choice(family.frames)
    buckets = tuple(_table(random, family, side, frames, one_shape) for side in resolutions)
    while failure in ("spike", "spike_cut") and _share_of_largest(buckets) > 0.5:
        buckets = tuple(_table(random, family, side, frames, False, least=3) for side in resolutions)
    return Plan(
        seed=seed,
        family=name,
        mode=mode,
        era=era,
        failure=failure,
        name=random.choice(_NAMES),
        root=random.choice(_ROOTS if failure != "spill" else _WINDOWS_ROOTS),
        steps=start + random.randint(2 * every + 8, 3 * every + 30),
        start=start,
        every=every,
        resolutions=resolutions,
        buckets=buckets,
        batch_size=random.choice((1, 1, 1, 2, 4)),
        baseline=failure == "baseline_sampling" or random.random() < 0.6,
        text_cache=failure == "cache_text_embeddings" or random.random() < 0.3,
        timers=random.random() < 0.3,
        ui_log=mode == "ui" and era == "caught" and random.random() < 0.6,
        seconds=random.choice((0.7, 1.4, 2.3, 4.1)),
    )


def _table(
    random: Random, family: Family, side: int, frames: int, one_shape: bool, *, least: int = 1
) -> tuple[tuple[str, int], ...]:
    """One bucket table: shapes of at most side² pixels on the family's grid, with their files."""
    ratios = [_RATIOS[0]] if one_shape else random.sample(_RATIOS, random.randint(least, 5))
    table: dict[str, int] = {}
    for wide, high in ratios:
        scale = side / (wide * high) ** 0.5
        width, height = (max(1, int(part * scale) // family.divisor) * family.divisor for part in (wide, high))
        label = f"{width}x{height}" + (f"x{frames}f" if frames > 1 else "")
        table[label] = random.randint(2, 9)
    return tuple(table.items())


def largest(buckets: Sequence[Sequence[tuple[str, int]]]) -> frozenset[str]:
    """The buckets of the greatest volume."""
    labels = [label for table in buckets for label, _ in table]
    most = max(map(volume, labels))
    return frozenset(label for label in labels if volume(label) == most)


def _share_of_largest(buckets: Sequence[Sequence[tuple[str, int]]]) -> float:
    great = largest(buckets)
    files = sum(count for table in buckets for _, count in table)
    return sum(count for table in buckets for label, count in table if label in great) / files


def batches(plan: Plan) -> list[str]:
    """One epoch: the bucket of each batch, in the order of the tables."""
    return [label for table in plan.buckets for label, files in table for _ in range(-(-files // plan.batch_size))]


def volume(label: str) -> int:
    """Pixels times frames of a bucket."""
    total = 1
    for part in label.rstrip("f").split("x"):
        total *= int(part)
    return total


def marks(plan: Plan) -> list[int]:
    """The steps at which the run saves and previews: never its first one."""
    return [step for step in range(plan.start + 1, plan.steps) if step % plan.every == 0]
