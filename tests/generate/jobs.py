"""The process config that a plan runs with, as AI Toolkit dumps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.generate.families import FAMILIES
from tests.generate.truth import Plan


def config(plan: Plan) -> dict[str, Any]:
    """The process config of `plan`; `plan.settings` are dotted paths with ``__`` that override."""
    family = FAMILIES[plan.family]
    frames = {"num_frames": family.frames[0], "fps": 16} if family.frames != (1,) else {}
    dataset: dict[str, Any] = {
        "folder_path": folder(plan),
        "caption_ext": "txt",
        "cache_latents_to_disk": True,
        "resolution": list(plan.resolutions),
    }
    if frames:
        dataset["num_frames"] = family.frames[0]
    if family.arch == "qwen_image_edit_plus":
        dataset["control_path_1"] = f"{plan.root}/datasets/controls"
    model: dict[str, Any] = {"name_or_path": f"/models/{plan.family}", "quantize": True, "quantize_te": True}
    model |= {family.flag: True} if family.flag else {"arch": family.arch}
    prompts = ["a harbour at dawn", "two otters on wet slate"]
    value: dict[str, Any] = {
        "type": "diffusion_trainer" if plan.mode == "ui" else "sd_trainer",
        "training_folder": f"{plan.root}/output",
        "device": "cuda",
        "network": {"type": "lora", "linear": 16, "linear_alpha": 16},
        "save": {"dtype": "bf16", "save_every": plan.every, "max_step_saves_to_keep": 4},
        "datasets": [dataset],
        "train": {
            "batch_size": plan.batch_size,
            "steps": plan.steps,
            "gradient_accumulation": 1,
            "gradient_checkpointing": plan.failure not in ("early", "exp_avg") or plan.seed % 2 == 0,
            "noise_scheduler": "flowmatch",
            "optimizer": "adamw8bit",
            "lr": 0.0001,
            "dtype": "bf16",
            "skip_first_sample": not plan.baseline,
            "cache_text_embeddings": plan.text_cache,
            "disable_sampling": plan.failure == "after_save",
        },
        "model": model,
        "sample": {
            "sampler": "flowmatch",
            "sample_every": plan.every,
            "width": 1024,
            "height": 1024,
            "prompts": prompts,
            "sample_steps": 20,
            **frames,
        },
    }
    if plan.mode == "ui":
        value["sample"]["samples"] = [{"prompt": prompt} for prompt in value["sample"].pop("prompts")]
        value |= {"sqlite_db_path": f"{plan.root}/aitk_db.db"}
    if plan.ui_log:
        value["logging"] = {"log_every": 1, "use_ui_logger": True}
    if plan.timers:
        value["performance_log_every"] = 10
    for path, new in plan.settings.items():
        _set(value, path, new)
    return value


def folder(plan: Plan) -> str:
    """Where the dataset is."""
    given = plan.settings.get("datasets__folder_path")
    return str(given) if given is not None else f"{plan.root}/datasets/set_{plan.seed % 7}"


def _set(value: Mapping[str, Any], path: str, new: Any) -> None:
    place: Any = value
    *outer, last = path.split("__")
    for part in outer:
        place = place[part][0] if isinstance(place[part], list) else place[part]
    place[last] = new
