"""Jobs to forecast, as short as a config can be."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from postmortem.jobconfig import ConfigText, effective
from postmortem.knowledge.load import load
from postmortem.knowledge.schema import Knowledge
from postmortem.model import JobConfig


@pytest.fixture(scope="session")
def base() -> Knowledge:
    return load(cache=False)


def job(base: Knowledge, arch: str, **settings: Any) -> JobConfig:
    """The effective config of a LoRA job: rank 16, bf16, AdamW 8 bit, one 1024 dataset; `section__key=value` changes it."""
    process: dict[str, Any] = {
        "type": "sd_trainer",
        "network": {"type": "lora", "linear": 16},
        "train": {"dtype": "bf16", "optimizer": "adamw8bit", "batch_size": 1, "gradient_checkpointing": True},
        "model": {"arch": arch, "name_or_path": f"someone/{arch}", "quantize": True, "qtype": "qfloat8"},
        "datasets": [{"folder_path": "/d", "resolution": [1024], "cache_latents_to_disk": True}],
        "sample": {"width": 1024, "height": 1024, "guidance_scale": 4},
    }
    for key, value in settings.items():
        section, name = key.split("__")
        target = process[section][0] if section == "datasets" else process[section]
        target[name] = value
    text = yaml.safe_dump({"job": "extension", "config": {"name": "j", "process": [process]}})
    return effective(None, [ConfigText("config.yaml", text)], base)
