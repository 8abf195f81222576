"""A small AI Toolkit: logs of training steps as its bar and its banners really come out, in any capture order."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

BANNER = (
    "\n################################################\n"
    "# OOM during training step, skipping batch {}/3 #\n"
    "################################################\n\n"
)
ABORT = "OOM during training step 3 times in a row, aborting training"
RESULT = "\n========================================\nResult:\n - 0 completed jobs\n - 1 failure\n========================================\n"


def config(**changes: Any) -> dict[str, Any]:
    """A process config as the UI writes it; `changes` are dotted paths with ``__`` for the dots."""
    value: dict[str, Any] = {
        "type": "diffusion_trainer",
        "training_folder": "output",
        "device": "cuda",
        "network": {"type": "lora", "linear": 32, "linear_alpha": 32},
        "save": {"dtype": "bf16", "save_every": 250},
        "datasets": [{"folder_path": "/data/mugs", "cache_latents_to_disk": True, "resolution": [512, 768, 1024]}],
        "train": {
            "batch_size": 1,
            "steps": 400,
            "gradient_accumulation": 1,
            "gradient_checkpointing": True,
            "optimizer": "adamw8bit",
            "dtype": "bf16",
        },
        "model": {"name_or_path": "x", "arch": "zimage:turbo", "quantize": True, "quantize_te": True, "low_vram": True},
        "sample": {
            "sample_every": 250,
            "width": 1024,
            "height": 1024,
            "samples": [{"prompt": "a mug"}],
            "sample_steps": 20,
        },
    }
    for path, new in changes.items():
        place = value
        *outer, last = path.split("__")
        for part in outer:
            place = place[0][part] if isinstance(place, list) else place[part]
        (place[0] if isinstance(place, list) else place)[last] = new
    return value


def head(settings: Mapping[str, Any], name: str = "mugs") -> str:
    """The first lines of a job, down to the first training step."""
    return (
        "Running 1 job\n"
        + json.dumps(settings, indent=4)
        + f"\n\n#############################################\n# Running job: {name}\n"
        "#############################################\n\n\nRunning  1 process\nLoading ZImage model\nLoading transformer\n"
        "Loading VAE\nMaking pipe\nPreparing Model\nModel Loaded\n"
    )


def buckets(table: Mapping[str, int], path: str = "/data/mugs") -> str:
    """The bucket table of one dataset at one resolution."""
    rows = "".join(f"{label}: {files} files\n" for label, files in table.items())
    return f"Dataset: {path}\n  -  Found {sum(table.values())} images\nBucket sizes for {path}:\n{rows}{len(table)} buckets made\n"


def bar(name: str, n: int, total: int, elapsed: int, postfix: str) -> str:
    """One draw of the training bar."""
    clock = f"{elapsed // 60:02d}:{elapsed % 60:02d}"
    return f"\r{name}: {100 * n // total:3d}%|{'#' * (10 * n // total):10s}| {n}/{total} [{clock}<10:00,  2.00s/it{postfix}]"


def training(
    total: int,
    skipped: Collection[int],
    *,
    start: int = 0,
    until: int | None = None,
    buffered: bool = False,
    name: str = "mugs",
    postfix: str = "",
) -> str:
    """The steps from `start` up to `until` (or the fourth OOM in a row), with banners in place or held back."""
    out: list[str] = [bar(name, start, total, 0, postfix)]
    held: list[str] = []
    streak = 0
    for step in range(start, total if until is None else until):
        elapsed = 2 * (step - start + 1)
        if step in skipped:
            streak += 1
            if streak > 3:
                tail = f"Error running job: {ABORT}\n{RESULT}Traceback (most recent call last):\n"
                tail += f'  File "/opt/ai-toolkit/run.py", line 120, in main\n    job.run()\nRuntimeError: {ABORT}\n'
                return "".join([*out, *held, tail])
            (held if buffered else out).append(BANNER.format(streak))
        else:
            streak = 0
            postfix = f", lr: 1.0e-04 loss: {0.3 + step / 100000:.5f}"
            out.append(bar(name, step, total, elapsed, postfix))
        out.append(bar(name, step + 1, total, elapsed, postfix))
    return "".join([*out, "\n", *held])


def finished(name: str = "mugs") -> str:
    """The last lines of a run that ended well."""
    return f"\nSaved checkpoint to output/{name}/{name}.safetensors\nSaved optimizer to output/{name}/optimizer.pt\n"
