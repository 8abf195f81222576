"""What changed between two effective configs, edits that belong together counted as one variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from postmortem.knowledge.schema import Knowledge, Variable
from postmortem.model import ConfigChange, JobConfig
from postmortem.pipeline import Analysis
from postmortem.text import LogText

CHECKPOINTING = "train.gradient_checkpointing"
_ELEMENT = re.compile(r"(datasets|sample\.samples)\[\d+\]")
_DATASET = re.compile(r"datasets\[\d+\]")
_INDEX = re.compile(r"\[\d+\]")
_EMPTY: tuple[Any, ...] = (None, "", [], {})


class Change(msgspec.Struct, frozen=True):
    """One variable that changed, with its edits; `id` is an entry's, or the path where no entry takes it."""

    id: str
    named: bool
    bears: bool
    identity: bool
    edits: tuple[ConfigChange, ...]


def between(earlier: Analysis, later: Analysis, failing: Analysis, knowledge: Knowledge) -> tuple[Change, ...]:
    """The variables that differ, those that bear on the failure of `failing` first. Both configs must be known."""
    return between_configs(earlier.config, later.config, lambda variable: _bears(variable, failing), knowledge)


def between_configs(
    earlier: JobConfig, later: JobConfig, bears: Callable[[Variable], bool], knowledge: Knowledge
) -> tuple[Change, ...]:
    """The variables in which two known configs differ, those that bear (as `bears` says) first."""
    edits = dict(_edits(earlier, later))
    groups: dict[str, tuple[Variable | None, list[ConfigChange]]] = {}
    for path, edit in edits.items():
        leader = _leader(path, edits, earlier, later, knowledge)
        variable = _variable(leader, earlier, later, knowledge)
        name = variable.id if variable else _INDEX.sub("[]", leader)
        groups.setdefault(name, (variable, []))[1].append(edit)
    found = [
        Change(
            name,
            variable is not None,
            variable is None or bears(variable),
            variable is not None and variable.identity,
            tuple(sorted(items, key=lambda item: item.path)),
        )
        for name, (variable, items) in groups.items()
    ]
    return tuple(sorted(found, key=lambda change: (not change.bears, change.id)))


def turned_checkpointing(change: Change, on: bool) -> bool:
    """Whether the change is gradient checkpointing turned `on` (or off)."""
    return len(change.edits) == 1 and change.edits[0].path == CHECKPOINTING and change.edits[0].after is on


def _edits(earlier: JobConfig, later: JobConfig) -> Iterator[tuple[str, ConfigChange]]:
    mine, theirs = _flat(earlier), _flat(later)
    elements = [{found[0] for path in side if (found := _ELEMENT.match(path)) is not None} for side in (mine, theirs)]
    one_sided = elements[0] ^ elements[1]
    for element in sorted(one_sided):
        if _DATASET.fullmatch(element):
            path = f"{element}.folder_path"
            yield element, ConfigChange(element, mine.get(path), theirs.get(path))
    for path in sorted(set(mine) | set(theirs)):
        element_of = _ELEMENT.match(path)
        if element_of is not None and element_of[0] in one_sided and _DATASET.match(path):
            continue
        before, after = mine.get(path), theirs.get(path)
        if _comparable(before) != _comparable(after):
            yield path, ConfigChange(path, before, after)


def _flat(config: JobConfig) -> Mapping[str, Any]:
    return {**config.others, **{path: value.value for path, value in config.values.items()}}


def _comparable(value: Any) -> Any:
    if value in _EMPTY and value is not False and value != 0:
        return None
    if isinstance(value, LogText):
        return value.reveal()
    if isinstance(value, int) and not isinstance(value, bool):
        return (float(value),)
    if isinstance(value, float):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, (int, float)) for item in value):
        return tuple(sorted({float(item) for item in value}))
    return value


def _leader(
    path: str, edits: Mapping[str, ConfigChange], earlier: JobConfig, later: JobConfig, knowledge: Knowledge
) -> str:
    """The changed path that this one only follows: it is given on neither side."""
    mine, theirs = earlier.values.get(path), later.values.get(path)
    if mine is None or theirs is None or mine.source != "default" or theirs.source != "default":
        return path
    pattern = _INDEX.sub("[]", path)
    follows = next((item.follows for item in knowledge.settings if item.path == pattern), None)
    return follows if follows is not None and follows in edits else path


def _variable(path: str, earlier: JobConfig, later: JobConfig, knowledge: Knowledge) -> Variable | None:
    pattern = _INDEX.sub("[]", path)
    for variable in knowledge.variables:
        if not any(_takes(item, pattern) for item in variable.paths):
            continue
        if not variable.same_product or _product(variable, earlier) == _product(variable, later) is not None:
            return variable
    return None


def _takes(wanted: str, pattern: str) -> bool:
    return pattern.startswith(wanted[:-1]) if wanted.endswith("*") else pattern == wanted


def _product(variable: Variable, config: JobConfig) -> int | None:
    product = 1
    for path in variable.same_product:
        value = config.get(path)
        if not isinstance(value, int):
            return None
        product *= value
    return product


def _bears(variable: Variable, failing: Analysis) -> bool:
    if not variable.bears:
        return False
    if not variable.bears_on:
        return True
    diagnosis = failing.diagnosis
    places = {diagnosis.kind, diagnosis.phase, diagnosis.class_}
    if diagnosis.phase == "training_step" and any(s.phase == "baseline_sampling" for s in failing.attempt.stages):
        places.add("baseline_before")
    # what has no phase, or is no memory failure, may hang on anything
    return bool(places & {"unknown", "not_memory"}) or bool(places & set(variable.bears_on))
