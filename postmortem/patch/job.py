"""A job file as plain values: its processes, which of them ran, and a job made again from the dump in a log."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from postmortem.jobconfig.parse import integer
from postmortem.patch.refusal import Refused

Prefix = tuple[str | int, ...]
_BARE = ("train", "model", "datasets", "sample", "network")
NAME = "unnamed"
"""The name of a rebuilt job where the log does not tell it."""


def is_json(text: str) -> bool:
    """Whether config text is JSON, by the rule of the config parser."""
    return text.lstrip("\ufeff \t\r\n").startswith("{")


def load(text: str) -> Any:
    """The plain values of config text (without byte order mark) that the config parser has accepted."""
    if is_json(text):
        return json.loads(text, parse_int=integer)
    from postmortem.knowledge import yaml_loader

    return yaml_loader.load(text)[0]


def processes(job: Any) -> list[tuple[Prefix, Mapping[str, Any]]]:
    """The processes of a job, each with the path to it; a bare process is its own."""
    if not isinstance(job, dict):
        return []
    outer = job.get("config")
    if isinstance(outer, dict):
        listed = outer.get("process")
        found = enumerate(listed) if isinstance(listed, list) else ()
        return [(("config", "process", index), item) for index, item in found if isinstance(item, dict)]
    return [((), job)] if any(isinstance(job.get(key), (dict, list)) for key in _BARE) else []


def choose_process(job: Any, ran: Mapping[str, Any] | None) -> tuple[Prefix, Mapping[str, Any]]:
    """The process of `job` that ran as the dump `ran` says. Raises Refused where that is not certain."""
    found = processes(job)
    if not found:
        raise Refused("no_process")
    if len(found) == 1:
        return found[0]
    if ran is None:
        raise Refused("which_process", count=len(found))
    same = [item for item in found if _identity(item[1]) == _identity(ran)]
    if len(same) > 1:
        likeness = [_equal_leaves(item[1], ran) for item in same]
        same = [item for item, count in zip(same, likeness) if count == max(likeness)]
    if len(same) != 1:
        raise Refused("which_process", count=len(found))
    return same[0]


def _identity(process: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a fix never changes and what tells processes apart."""
    model = process.get("model")
    name = model.get("name_or_path") if isinstance(model, Mapping) else None
    return process.get("type"), name, folders(process)


def folders(process: Mapping[str, Any]) -> tuple[Any, ...]:
    """The folder of each dataset; None where it is not given."""
    listed = process.get("datasets")
    items: Sequence[Any] = listed if isinstance(listed, list) else []
    return tuple(
        str(item.get("folder_path") or item.get("dataset_path")) if isinstance(item, Mapping) else None
        for item in items
    )


def _equal_leaves(one: Any, other: Any) -> int:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return sum(_equal_leaves(value, other[key]) for key, value in one.items() if key in other)
    if isinstance(one, list) and isinstance(other, list):
        return sum(_equal_leaves(*pair) for pair in zip(one, other))
    return int(same(one, other))


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are the same value of the same type (True is not 1, NaN is NaN)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def from_dump(ran: Mapping[str, Any], name: str | None) -> dict[str, Any]:
    """The job that printed the dump `ran`, as far as a log tells it: its name and this one process."""
    return {"job": "extension", "config": {"name": name or NAME, "process": [dict(ran)]}}


def as_yaml(job: Mapping[str, Any]) -> str:
    """A job as YAML text, keys in their order, long lines whole."""
    import yaml

    return yaml.safe_dump(dict(job), sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False)


def as_json(job: Mapping[str, Any]) -> str:
    """A job as AI Toolkit's UI writes it to ``.job_config.json``."""
    text = json.dumps(job, indent=2, ensure_ascii=False, default=str)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as only an escape can write it
        return json.dumps(job, indent=2, default=str)
    return text
