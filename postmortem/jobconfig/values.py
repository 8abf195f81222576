"""The settings of one process as AI Toolkit takes them: what is given, what follows another one, else its defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.jobconfig.parse import RawConfig
from postmortem.knowledge.schema import Knowledge, Setting
from postmortem.model import Value
from postmortem.text import LogText

DEFAULT = "default"
"""The source of a value that no config gives."""
LOG = "log"
"""The source of one that the run's own dump gives."""
MAX_DATASETS = 200
MAX_OTHERS = 1000
_CONTAINERS = frozenset({"sample.samples"})
"""Covered as a whole, but their parts are worth telling apart."""
_DATASETS = "datasets"
"""The list whose items have what they leave out by default; in others, only what is given overrides."""
_LONG = 40
_FLAG = re.compile(r"is_[a-z0-9_]{1,40}")
_HUGE = 1e15
"""Beyond this no setting is a number that means anything."""


def values_of(source: str, raw: RawConfig, knowledge: Knowledge) -> dict[str, Value]:
    """The effective value of every known setting by its path, those that `raw` gives as given by `source`."""
    values: dict[str, Value] = {}
    prepared = _prepared(knowledge)
    lists = {head: _items(raw.settings, head) for head in prepared.heads}
    sections = [_below(raw.settings, keys) for keys in prepared.parents]
    for asked in prepared.usual:
        setting, head = asked.setting, asked.head
        given: Iterable[tuple[str, Any]]
        if head is None:  # nearly all of them, and most are not given
            given = ((setting.path, _below(sections[asked.parent], asked.keys[-1:])),)
        else:
            given = ((f"{head}[{index}]{asked.tail}", _below(item, asked.keys)) for index, item in lists[head])
        for path, found in given:
            at = path
            if found is None:
                for alias in setting.aliases:
                    at = _fill(alias, path)
                    found = _lookup(raw.settings, at)
                    if found is not None:
                        break
            if found is not None:
                values[path] = Value(_clean(found, setting), source, raw.lines.get(at))
            elif head in (None, _DATASETS) and not setting.follows:
                values[path] = asked.default
    for setting, follows in prepared.followers:
        for path, explicit_only in _expand(setting.path, raw.settings):
            if path not in values and not explicit_only:
                followed = values.get(_fill(follows, path))
                values[path] = Value(followed.value if followed else setting.default, DEFAULT)
    _read_model(values, source, raw)
    return values


def _read_model(values: dict[str, Value], source: str, raw: RawConfig) -> None:
    """What of the model is read in its own way: an arch with a variant behind a colon, a family by an old flag."""
    arch = values.get("model.arch")
    if arch and isinstance(arch.value, str) and ":" in arch.value:
        values["model.arch"] = Value(arch.value.split(":", 1)[0], arch.source, arch.line)
    model = raw.settings.get("model")
    for key, found in model.items() if isinstance(model, dict) else ():
        if isinstance(key, str) and _FLAG.fullmatch(key) and isinstance(found, bool):
            values.setdefault(f"model.{key}", Value(found, source, raw.lines.get(f"model.{key}")))


def settings_of(settings: Mapping[str, Any], knowledge: Knowledge, name: str = LOG) -> dict[str, Value]:
    """The effective value of every known setting of one process, as given by `settings`."""
    return values_of(name, RawConfig(settings), knowledge)


def others_of(settings: Mapping[str, Any], values: Mapping[str, Value], knowledge: Knowledge) -> dict[str, Any]:
    """The leaves of `settings` under paths that no setting of the knowledge base covers."""
    aliases = _prepared(knowledge).aliases
    found: dict[str, Any] = {}
    stack: list[tuple[str, Any]] = [("", settings)]
    while stack and len(found) < MAX_OTHERS:
        path, value = stack.pop()
        if (path in values or path in aliases) and not (path in _CONTAINERS and isinstance(value, list)):
            continue
        if isinstance(value, Mapping):
            stack.extend((f"{path}.{key}" if path else str(key)[:_LONG], below) for key, below in value.items())
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            stack.extend((f"{path}[{index}]", item) for index, item in enumerate(value[:MAX_DATASETS]))
        elif value is not None:
            text = value if isinstance(value, (bool, int, float)) and abs(value) < _HUGE else LogText(str(value)[:200])
            found[path[:200]] = text
    return found


def place(path: str, settings: Mapping[str, Any], knowledge: Knowledge) -> str:
    """The path under which `settings` give the setting `path`: an older name of it where only that is given."""
    if _lookup(settings, path) is not None:
        return path
    for setting in knowledge.settings:
        if setting.aliases and _fill(setting.path, path) == path:
            for alias in setting.aliases:
                if _lookup(settings, older := _fill(alias, path)) is not None:
                    return older
    return path


class _Asked(msgspec.Struct, frozen=True):
    """One setting with the value that it has by default, and its place: keys below the settings (their last, and the
    number of what stands before it), or below each item of the list `head`, behind whose index a path goes on with
    `tail`."""

    setting: Setting
    default: Value
    keys: tuple[str | int, ...]
    parent: int
    head: str | None = None
    tail: str = ""


class _Prepared(msgspec.Struct, frozen=True):
    """The settings, the keys of the sections that they are in by number, the lists that any is in, those that follow
    another one, and all older names."""

    usual: list[_Asked]
    parents: list[tuple[str | int, ...]]
    heads: frozenset[str]
    followers: list[tuple[Setting, str]]
    aliases: frozenset[str]


@lru_cache(maxsize=2)
def _prepared(knowledge: Knowledge) -> _Prepared:
    usual: list[_Asked] = []
    parents: dict[tuple[str | int, ...], int] = {}
    for setting in knowledge.settings:
        default = Value(setting.default, DEFAULT)
        head, listed, tail = setting.path.partition("[]")
        keys = keys_of(tail.removeprefix(".") if listed else head) if tail or not listed else ()
        parent = parents.setdefault(keys[:-1], len(parents))
        usual.append(_Asked(setting, default, keys, parent, head if listed else None, tail))
    return _Prepared(
        usual,
        list(parents),
        frozenset(asked.head for asked in usual if asked.head is not None),
        [(setting, setting.follows) for setting in knowledge.settings if setting.follows],
        frozenset(alias for setting in knowledge.settings for alias in setting.aliases),
    )


def _expand(path: str, settings: Mapping[str, Any]) -> Sequence[tuple[str, bool]]:
    """The concrete paths of a setting; per-sample overrides exist only where they are given."""
    if "[]" not in path:
        return ((path, False),)
    head, tail = path.split("[]", 1)
    return [(f"{head}[{index}]{tail}", head != _DATASETS) for index, _ in _items(settings, head)]


def _items(settings: Mapping[str, Any], head: str) -> list[tuple[int, Any]]:
    """The items of the list `head` that hold settings, with their indexes."""
    items = _lookup(settings, head)
    if not isinstance(items, list):
        return []
    return [(index, item) for index, item in enumerate(items[:MAX_DATASETS]) if isinstance(item, dict)]


def _fill(pattern: str, path: str) -> str:
    """`pattern` with its ``[]`` filled by the index that `path` has."""
    if "[]" not in pattern or "[" not in path:
        return pattern
    return pattern.replace("[]", path[path.index("[") : path.index("]") + 1], 1)


@lru_cache(maxsize=4096)
def keys_of(path: str) -> tuple[str | int, ...]:
    """The keys and indexes of a path; the paths of the knowledge base come again with each run."""
    parts = path.replace("[", ".[").split(".")
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts)


def _lookup(settings: Any, path: str) -> Any:
    """What stands at `path`; None where nothing or null does."""
    return _below(settings, keys_of(path))


def _below(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                return None
            value = value[key]
        elif isinstance(value, (dict, Mapping)) and key in value:  # nearly always the first, and quickly told
            value = value[key]
        else:
            return None
    return value


def _clean(value: Any, setting: Setting) -> Any:
    """The value as AI Toolkit would take it: numbers in strings are numbers, strings from users are log text."""
    if setting.type in ("int", "float") and isinstance(value, str):
        try:
            number = float(value[:_LONG])
        except ValueError:
            return LogText(value[:200])
        if len(value) >= _LONG or not abs(number) < _HUGE:
            return LogText(value[:200])
        return int(number) if number.is_integer() else number
    if setting.type in ("int", "float") and isinstance(value, (list, dict)):
        return LogText(str(value)[:200])  # no number at all: shown as it stands, and never calculated with
    if setting.type == "int_list":
        items = value if isinstance(value, list) else [value]
        return [
            item for item in items[:64] if isinstance(item, int) and not isinstance(item, bool) and abs(item) < _HUGE
        ]
    if setting.type == "bool" and isinstance(value, str):
        return bool(value)  # it is asked for as it stands, and Python takes any text that is not empty for true
    if isinstance(value, str):
        return value[:200]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not abs(value) < _HUGE:
        text = f"{value:.3g}" if isinstance(value, float) else hex(value)[:_LONG]
        return text if setting.type == "str" else LogText(text)  # text settings are read as text
    if isinstance(value, float) and value.is_integer() and setting.type == "int":
        return int(value)
    if isinstance(value, (bool, int, float)):
        return value
    return value if isinstance(value, list) and len(value) < 64 else bool(value)
