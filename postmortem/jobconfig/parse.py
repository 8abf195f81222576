"""Read one job config, in whichever form it comes, down to the settings of the process that trains."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

MAX_CHARS = 2_000_000
MAX_DEPTH = 60
MAX_PROCESSES = 50
MAX_DIGITS = 40
"""Of a number; a longer one stays text, since to read it takes time that grows with its square."""


class ConfigProblem(ValueError):
    """The text is no job config; the message says what is wrong, `line` (1-based) where if that is known."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class RawConfig(msgspec.Struct, frozen=True):
    """The process settings as given, with the line of each dotted path, the job's name, and the job as a whole."""

    settings: Mapping[str, Any]
    lines: Mapping[str, int] = msgspec.field(default_factory=dict)
    job_name: str | None = None
    duplicates: tuple[tuple[str, int], ...] = ()
    job: Mapping[str, Any] = msgspec.field(default_factory=dict)


def parse(text: str) -> RawConfig:
    """Parse a job config (YAML or JSON, the whole job or only its process): its first process.

    Raises ConfigProblem when it is neither, or holds no process settings.
    """
    return parse_each(text)[0]


def parse_each(text: str) -> list[RawConfig]:
    """The same, all processes of the job in their order; at least one."""
    if len(text) > MAX_CHARS:
        raise ConfigProblem(f"larger than {MAX_CHARS} characters; that is no job config")
    value: Any
    lines: dict[str, int] = {}
    duplicates: tuple[tuple[str, int], ...] = ()
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        value = _json(text.lstrip("\ufeff"))
    else:
        from postmortem.knowledge import yaml_loader

        try:
            value, lines, found = yaml_loader.load(text.lstrip("\ufeff"))
        except yaml_loader.YamlProblem as error:
            raise ConfigProblem(f"not YAML: {error.problem}", error.line) from None
        duplicates = tuple(found)
    if not isinstance(value, dict):
        raise ConfigProblem("not a job config: expected keys such as job, config, process")
    return _processes(value, lines, duplicates)


def _json(text: str) -> Any:
    try:
        value = json.loads(text, parse_int=integer)
    except RecursionError:
        raise ConfigProblem(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise ConfigProblem(
            f"not JSON: {getattr(error, 'msg', 'broken number')}", getattr(error, "lineno", None)
        ) from None
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [below for item in level for below in _children(item)]
        if not level:
            return value
    raise ConfigProblem(f"nested deeper than {MAX_DEPTH} levels")


def integer(digits: str) -> int | str:
    """An integer of a config; one of more digits than any setting has stays text."""
    return int(digits) if len(digits) < MAX_DIGITS else digits


def _children(item: Any) -> Iterable[Any]:
    return item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()


def _processes(
    value: Mapping[str, Any], lines: Mapping[str, int], duplicates: tuple[tuple[str, int], ...]
) -> list[RawConfig]:
    outer = value.get("config")
    if isinstance(outer, dict):
        name = outer.get("name")
        job_name = str(name) if isinstance(name, (str, int, float)) and not isinstance(name, bool) else None
        processes = outer.get("process")
        if not isinstance(processes, list) or not processes or not isinstance(processes[0], dict):
            raise ConfigProblem("config.process holds no process")
        return [
            RawConfig(process, _below(lines, f"config.process[{index}]."), job_name, duplicates, value)
            for index, process in enumerate(processes[:MAX_PROCESSES])
            if isinstance(process, dict)
        ]
    if any(isinstance(value.get(key), (dict, list)) for key in ("train", "model", "datasets", "sample", "network")):
        return [RawConfig(value, lines, None, duplicates, value)]
    raise ConfigProblem("not a job config: neither config.process nor train, model or datasets in it")


def _below(lines: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {path[len(prefix) :]: line for path, line in lines.items() if path.startswith(prefix)}
