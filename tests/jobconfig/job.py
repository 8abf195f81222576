"""A job config, and the settings that one gives."""

from __future__ import annotations

from postmortem.jobconfig import ConfigText, effective
from postmortem.knowledge.schema import Knowledge

YAML = """job: extension
config:
  name: mug_v1
  process:
    - type: sd_trainer
      train:
        batch_size: 2
        gradient_accumulation_steps: 4
      datasets:
        - folder_path: /data/a
          resolution: [512, 1024]
          batch_size: 1
        - folder_path: /data/b
      model:
        arch: "zimage:turbo"
        quantize: true
        qtype: "uint3|ostris/x.safetensors"
        auto_memory: true
"""


def config_of(text: str, knowledge: Knowledge, name: str = "config.yaml") -> dict[str, object]:
    """The values by path, as the file `name` of this text gives them."""
    return {path: value.value for path, value in effective(None, [ConfigText(name, text)], knowledge).values.items()}
