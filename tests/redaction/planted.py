"""The planted things: `lines.yaml` for logs, `config.yaml` for a job's config."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from postmortem.knowledge import yaml_loader
from tests import simulate

HERE = Path(__file__).parent
CONTEXT = 3
"""Lines of a log that an excerpt shows before its evidence."""


def read(name: str) -> list[dict[str, Any]]:
    """The entries of a file, the signs that keep keys apart taken out."""
    text = (HERE / name).read_text(encoding="utf-8").replace("§", "")
    value, _, duplicates = yaml_loader.load(text)
    assert not duplicates
    return [{**item, "gone": [str(one) for one in item["gone"]]} for item in value]


def log(*lines: str, settings: Mapping[str, Any] | None = None, name: str = "mugs") -> str:
    """A run that died, with these lines just before its last words."""
    shown = "\n".join(lines)
    return f"{simulate.head(settings or simulate.config(), name)}\n{shown}\n{OOM}"


OOM = (
    "Error running job: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.99 GiB of which "
    "128.00 MiB is free. Including non-PyTorch memory, this process has 23.50 GiB memory in use.\n"
)


def job(path: str, value: Any) -> dict[str, Any]:
    """A whole job with `value` at `path` (of the job for config.name and meta, else of its process)."""
    whole: dict[str, Any] = {"job": "extension", "config": {"name": "mugs", "process": [simulate.config()]}}
    node: Any = whole if path.startswith(("config.", "meta.")) else whole["config"]["process"][0]
    keys = re.findall(r"\w+", path)
    for key, after in pairwise(keys):
        if key.isdigit():
            node = node[int(key)]
        elif after.isdigit():
            node = (
                node.setdefault(key, []) if isinstance(node.get(key), list) else node.update({key: [{}]}) or node[key]
            )
        else:
            node = node.setdefault(key, {})
    if keys[-1].isdigit():
        node[:] = [value]
    else:
        node[keys[-1]] = value
    return whole


def text(whole: Mapping[str, Any]) -> str:
    """A job as a file."""
    return json.dumps(whole, indent=2, ensure_ascii=False)
