"""A small AI Toolkit checkout, written file by file."""

from __future__ import annotations

from pathlib import Path

CONFIG = """
class TrainConfig:
    def __init__(self, **kwargs):
        self.batch_size = kwargs.get('batch_size', 1)
        self.steps = kwargs.get('steps', 1000)
        self.dtype = kwargs.get("dtype", "fp32")
"""


def write(folder: Path, **files: str) -> Path:
    """A checkout with the files that every one has, and `files` (`a__b` is `a/b.py`) beside them."""
    named = {"run": "print('Running 1 job')\n", "toolkit__config_modules": CONFIG, **files}
    for name, text in named.items():
        path = folder / (name.replace("__", "/") + ("" if "." in name else ".py"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
