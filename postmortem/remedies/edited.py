"""The config as it would be after some edits, for working out what they save."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigChange, JobConfig, Value

EDIT = "edit"


def edited(config: JobConfig, changes: Iterable[ConfigChange], knowledge: Knowledge) -> JobConfig:
    """`config` with `changes` made; a setting that follows another by default follows it here too."""
    values = dict(config.values)
    for change in changes:
        values[change.path] = Value(change.after, EDIT)
        for setting in knowledge.settings:
            if setting.follows != change.path:
                continue
            shape = re.compile(re.escape(setting.path).replace(r"\[\]", r"\[\d+\]"))
            for path in [path for path in values if shape.fullmatch(path)]:
                if values[path].source == "default":
                    values[path] = Value(change.after, "default")
    return msgspec.structs.replace(config, values=values)


def merged(first: Iterable[ConfigChange], second: Iterable[ConfigChange]) -> tuple[ConfigChange, ...]:
    """Two edits, one after the other, as one: from the first value to the last."""
    found = {change.path: change for change in first}
    for change in second:
        earlier = found.get(change.path)
        found[change.path] = ConfigChange(change.path, earlier.before if earlier else change.before, change.after)
    return tuple(found.values())
