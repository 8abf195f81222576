"""Which settings were in force: what the run's own dump says, else the files beside it, else AI Toolkit's defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.jobconfig.parse import MAX_PROCESSES, ConfigProblem, RawConfig, parse, parse_each
from postmortem.knowledge.schema import Knowledge, Setting
from postmortem.model import ConfigDump, JobConfig, Notice, Value
from postmortem.text import LogText

DEFAULT = "default"
LOG = "log"
MAX_DATASETS = 200
MAX_DIFFERENCES = 12
MAX_OTHERS = 1000
_CONTAINERS = frozenset({"sample.samples"})
"""Covered as a whole, but their parts are worth telling apart."""
_DATASETS = "datasets"
"""The list whose items have what they leave out by default; in others, only what is given overrides."""
_LONG = 40
_MISSING = object()
_FLAG = re.compile(r"is_[a-z0-9_]{1,40}")
_HUGE = 1e15
"""Beyond this no setting is a number that means anything."""


class ConfigText(msgspec.Struct, frozen=True):
    """A config file as text, with the short name under which the report cites it."""

    name: str
    text: str


def effective(
    dump: ConfigDump | None, files: Sequence[ConfigText], knowledge: Knowledge, rivals: Sequence[ConfigDump] = ()
) -> JobConfig:
    """The effective settings. `files` come in order of trust; the dump in the log, when there, outranks them.

    `rivals` are the dumps of other processes of the job that may have been the one at work: a setting on which they
    differ is not known (its value is None), and a warning says so. Files that cannot be read become warnings, and so
    do settings on which the sources disagree.
    """
    warnings: list[Notice] = []
    raws: list[tuple[str, RawConfig]] = []
    if dump is not None:
        if dump.value is None:
            warnings.append(Notice("dump_damaged", dump.place.line))
        else:
            raws.append((LOG, RawConfig(dump.value, dump.lines)))
    for file in files:
        try:
            raw = parse(file.text)
        except ConfigProblem as problem:
            warnings.append(
                Notice(
                    "config_damaged",
                    None,
                    {"file": LogText(file.name), "line": problem.line, "problem": LogText(problem.problem)},
                )
            )
            continue
        warnings.extend(_duplicates(raw, file.name))
        raws.append((file.name, raw))
    if not raws:
        return JobConfig({}, (), tuple(warnings))
    source, chosen = raws[0]
    warnings.extend(_left_out(chosen))
    values = _values(source, chosen, knowledge)
    if source == LOG and rivals:
        values, differing = _agreed(values, rivals, knowledge)
        if differing:
            warnings.append(Notice("processes_differ", rivals[0].place.line, {"settings": ", ".join(differing)}))
    for other_name, other in raws[1:]:
        warnings.extend(_differences(values, _values(other_name, other, knowledge), other_name))
    name = next((raw.job_name for _, raw in raws if raw.job_name), None)
    others = _others(chosen.settings, values, knowledge)
    given = tuple(raw.job or raw.settings for _, raw in raws)
    return JobConfig(values, (source,), tuple(warnings), LogText(name) if name else None, others, given)


def each(file: ConfigText, knowledge: Knowledge) -> list[JobConfig]:
    """The effective settings of every process of one job config. Raises ConfigProblem when it is none."""
    return [
        JobConfig(
            values := _values(file.name, raw, knowledge),
            (file.name,),
            tuple(_duplicates(raw, file.name)),
            LogText(raw.job_name) if raw.job_name else None,
            _others(raw.settings, values, knowledge),
            (raw.job or raw.settings,),
        )
        for raw in parse_each(file.text)
    ]


def _left_out(raw: RawConfig) -> Iterator[Notice]:
    """What of a job is more than is looked at."""
    datasets = raw.settings.get("datasets")
    if isinstance(datasets, list) and len(datasets) > MAX_DATASETS:
        yield Notice("datasets_left_out", None, {"count": len(datasets) - MAX_DATASETS, "read": MAX_DATASETS})
    processes, _ = _lookup(raw.job, "config.process")
    if isinstance(processes, list) and len(processes) > MAX_PROCESSES:
        yield Notice("processes_left_out", None, {"count": len(processes) - MAX_PROCESSES, "read": MAX_PROCESSES})


def _duplicates(raw: RawConfig, name: str) -> Iterator[Notice]:
    for key, line in raw.duplicates:
        yield Notice("config_duplicate_key", None, {"file": LogText(name), "line": line, "key": LogText(key)})


def _others(settings: Mapping[str, Any], values: Mapping[str, Value], knowledge: Knowledge) -> dict[str, Any]:
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


def settings_of(settings: Mapping[str, Any], knowledge: Knowledge, name: str = LOG) -> dict[str, Value]:
    """The effective value of every known setting of one process, as given by `settings`."""
    return _values(name, RawConfig(settings), knowledge)


def place(path: str, settings: Mapping[str, Any], knowledge: Knowledge) -> str:
    """The path under which `settings` give the setting `path`: an older name of it where only that is given."""
    found, _ = _lookup(settings, path)
    if found is not _MISSING and found is not None:
        return path
    for setting in knowledge.settings:
        if setting.aliases and _fill(setting.path, path) == path:
            for alias in setting.aliases:
                old, at = _lookup(settings, _fill(alias, path))
                if old is not _MISSING and old is not None:
                    return at
    return path


def differences(ran: Mapping[str, Value], other: Mapping[str, Value], name: str) -> tuple[Notice, ...]:
    """The settings on which what `ran` and the `other` config, called `name`, disagree; the first dozen."""
    return tuple(_differences(ran, other, name))


def _agreed(
    values: Mapping[str, Value], rivals: Sequence[ConfigDump], knowledge: Knowledge
) -> tuple[dict[str, Value], list[str]]:
    """`values` without those that a rival gives otherwise, and the paths of what is explicit there."""
    agreed = dict(values)
    differing: set[str] = set()
    for rival in rivals:
        theirs = _values(LOG, RawConfig(rival.value or {}, rival.lines), knowledge)
        for path in set(agreed) | set(theirs):
            mine, other = values.get(path), theirs.get(path)
            if mine is None or other is None or mine.value != other.value:
                agreed[path] = Value(None, LOG)
                if LOG in (mine.source if mine else None, other.source if other else None):
                    differing.add(path)
    return agreed, sorted(differing)[:MAX_DIFFERENCES]


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
        keys = _parts(tail.removeprefix(".") if listed else head) if tail or not listed else ()
        parent = parents.setdefault(keys[:-1], len(parents))
        usual.append(_Asked(setting, default, keys, parent, head if listed else None, tail))
    return _Prepared(
        usual,
        list(parents),
        frozenset(asked.head for asked in usual if asked.head is not None),
        [(setting, setting.follows) for setting in knowledge.settings if setting.follows],
        frozenset(alias for setting in knowledge.settings for alias in setting.aliases),
    )


def _values(source: str, raw: RawConfig, knowledge: Knowledge) -> dict[str, Value]:
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
            if found is _MISSING or found is None:
                for alias in setting.aliases:
                    found, at = _lookup(raw.settings, _fill(alias, path))
                    if found is not _MISSING and found is not None:
                        break
            if found is not _MISSING and found is not None:
                values[path] = Value(_clean(found, setting), source, raw.lines.get(at))
            elif head in (None, _DATASETS) and not setting.follows:
                values[path] = asked.default
    for setting, follows in prepared.followers:
        for path, explicit_only in _expand(setting.path, raw.settings):
            if path not in values and not explicit_only:
                followed = values.get(_fill(follows, path))
                values[path] = Value(followed.value if followed else setting.default, DEFAULT)
    arch = values.get("model.arch")
    if arch and isinstance(arch.value, str) and ":" in arch.value:
        values["model.arch"] = Value(arch.value.split(":", 1)[0], arch.source, arch.line)
    for key, found in (raw.settings.get("model") or {}).items() if isinstance(raw.settings.get("model"), dict) else ():
        if isinstance(key, str) and _FLAG.fullmatch(key) and isinstance(found, bool):
            values.setdefault(f"model.{key}", Value(found, source, raw.lines.get(f"model.{key}")))
    return values


def _expand(path: str, settings: Mapping[str, Any]) -> Sequence[tuple[str, bool]]:
    """The concrete paths of a setting; per-sample overrides exist only where they are given."""
    if "[]" not in path:
        return ((path, False),)
    head, tail = path.split("[]", 1)
    return [(f"{head}[{index}]{tail}", head != _DATASETS) for index, _ in _items(settings, head)]


def _items(settings: Mapping[str, Any], head: str) -> list[tuple[int, Any]]:
    """The items of the list `head` that hold settings, with their indexes."""
    items, _ = _lookup(settings, head)
    if not isinstance(items, list):
        return []
    return [(index, item) for index, item in enumerate(items[:MAX_DATASETS]) if isinstance(item, dict)]


def _fill(pattern: str, path: str) -> str:
    """`pattern` with its ``[]`` filled by the index that `path` has."""
    if "[]" not in pattern or "[" not in path:
        return pattern
    return pattern.replace("[]", path[path.index("[") : path.index("]") + 1], 1)


@lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str | int, ...]:
    """The keys and indexes of a path; the paths of the knowledge base come again with each run."""
    parts = path.replace("[", ".[").split(".")
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts)


def _lookup(settings: Any, path: str) -> tuple[Any, str]:
    return _below(settings, _parts(path)), path


def _below(value: Any, keys: tuple[str | int, ...]) -> Any:
    for key in keys:
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                return _MISSING
            value = value[key]
        elif isinstance(value, (dict, Mapping)) and key in value:  # nearly always the first, and quickly told
            value = value[key]
        else:
            return _MISSING
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


def _differences(ran: Mapping[str, Value], other: Mapping[str, Value], name: str) -> Iterator[Notice]:
    count = 0
    for path in sorted(set(ran) | set(other)):
        mine = ran.get(path)
        theirs = other.get(path)
        if mine is None or theirs is None or mine.value == theirs.value:
            continue
        if mine.source == DEFAULT and theirs.source == DEFAULT:
            continue
        count += 1
        if count > MAX_DIFFERENCES:
            return
        yield Notice(
            "config_differs", mine.line, {"path": path, "ran": mine.value, "file": LogText(name), "other": theirs.value}
        )
