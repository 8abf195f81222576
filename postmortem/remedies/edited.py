"""The config as it would be after some edits, for working out what they save."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigChange, JobConfig, Value

EDIT = "edit"


def edited(config: JobConfig, changes: Iterable[ConfigChange], knowledge: Knowledge) -> JobConfig:
    """`config` with `changes` made; a setting that follows another by default follows it here too."""
    values = dict(config.values)
    followers = _followers(knowledge)
    for change in changes:
        values[change.path] = Value(change.after, EDIT)
        for shape in followers.get(change.path, ()):
            for path in [path for path in values if shape.fullmatch(path)]:
                if values[path].source == "default":
                    values[path] = Value(change.after, "default")
    return msgspec.structs.replace(config, values=values)


@lru_cache(maxsize=2)
def _followers(knowledge: Knowledge) -> dict[str, list[re.Pattern[str]]]:
    """What the paths look like that follow a path by default."""
    found: dict[str, list[re.Pattern[str]]] = {}
    for setting in knowledge.settings:
        if setting.follows:
            shape = re.compile(re.escape(setting.path).replace(r"\[\]", r"\[\d+\]"))
            found.setdefault(setting.follows, []).append(shape)
    return found


def merged(first: Iterable[ConfigChange], second: Iterable[ConfigChange]) -> tuple[ConfigChange, ...]:
    """Two edits, one after the other, as one: from the first value to the last."""
    found = {change.path: change for change in first}
    for change in second:
        earlier = found.get(change.path)
        found[change.path] = ConfigChange(change.path, earlier.before if earlier else change.before, change.after)
    return tuple(found.values())
