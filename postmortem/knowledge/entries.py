"""Files of `patterns/` → validated entries; what is wrong with one is told with its file, line and id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from postmortem.knowledge import checks, kept, yaml_loader
from postmortem.knowledge.log_schema import KeptWords, Pattern, PrivateSetting, Redaction
from postmortem.knowledge.memory_schema import MemoryEncoder, MemoryModel, MemoryRule, MemoryVae
from postmortem.knowledge.schema import (
    Cause,
    ClassEntry,
    Dating,
    Exclusion,
    Factor,
    Family,
    FirstTry,
    Knowledge,
    Regression,
    Remedy,
    Risk,
    Setting,
    Variable,
    Watched,
)

SECTIONS: dict[str, Any] = {
    "patterns": Pattern,
    "settings": Setting,
    "families": Family,
    "remedies": Remedy,
    "factors": Factor,
    "causes": Cause,
    "classes": ClassEntry,
    "redactions": Redaction,
    "private_settings": PrivateSetting,
    "kept_words": KeptWords,
    "memory_models": MemoryModel,
    "memory_encoders": MemoryEncoder,
    "memory_vaes": MemoryVae,
    "memory_rules": MemoryRule,
    "datings": Dating,
    "regressions": Regression,
    "watched": Watched,
    "exclusions": Exclusion,
    "variables": Variable,
    "risks": Risk,
    "first_tries": FirstTry,
}
_ID = re.compile(r"[\w.\[\]-]{1,120}")


class Invalid(ValueError):
    """A file holds what is no knowledge; the message names file, line and entry."""


def knowledge_in(files: Sequence[kept.File], contents: Sequence[bytes], key: str, own: int = 0) -> Knowledge:
    """The knowledge in `files`, of which the first `own` are the built-in ones; all others are strangers'.

    `key` becomes its version. Raises Invalid.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    texts: dict[str, dict[str, str]] = {}
    for number, (file, content) in enumerate(zip(files, contents)):
        path = file.path
        try:
            value, lines, duplicates = yaml_loader.load(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise Invalid(f"{path}: not UTF-8 at byte {error.start}") from None
        except yaml_loader.YamlProblem as error:
            raise Invalid(f"{path}:{error.line or 1}: {error.problem}") from None
        if duplicates:
            raise Invalid(f"{path}:{duplicates[0][1]}: key {duplicates[0][0]!r} given twice")
        parts = file.name.split("/")
        if parts[0] == "text":
            if len(parts) < 3:
                raise Invalid(f"{path}:1: texts belong into text/<language>/")
            _flatten(value, "", texts.setdefault(parts[1], {}))
        else:
            _read_sections(path, value, lines, found, foreign=number >= own)
    return Knowledge(version=key, texts=texts, **{name: tuple(found[name].values()) for name in SECTIONS})


def _read_sections(
    path: str, value: Any, lines: dict[str, int], found: dict[str, dict[str, Any]], *, foreign: bool
) -> None:
    if not isinstance(value, dict):
        raise Invalid(f"{path}:1: expected one of {', '.join(SECTIONS)} at the top")
    for section, entries in value.items():
        if section not in SECTIONS or not isinstance(entries, list):
            raise Invalid(f"{path}:{lines.get(section, 1)}: expected a list under one of {', '.join(SECTIONS)}")
        here: set[str] = set()
        for index, entry in enumerate(entries):
            line = lines.get(f"{section}[{index}]", 1)
            try:
                parsed = msgspec.convert(entry, SECTIONS[section])
            except msgspec.ValidationError as error:
                raise Invalid(f"{path}:{line}: {error}") from None
            ident = getattr(parsed, "id", None) or parsed.path
            if not _ID.fullmatch(ident):
                raise Invalid(f"{path}:{line}: an id may hold letters, digits, dots, dashes and underscores")
            try:
                checks.usable(parsed)
                if foreign and found[section].get(ident) != parsed:
                    checks.fast(parsed)
            except checks.Unfit as problem:
                raise Invalid(f"{path}:{line}: {ident}: {problem}") from None
            if ident in here:
                raise Invalid(f"{path}:{line}: {ident} stands twice in this file")
            here.add(ident)
            found[section][ident] = parsed


def _flatten(value: Any, path: str, into: dict[str, str]) -> None:
    """Write the leaves of nested mappings into `into`, under dotted keys."""
    if isinstance(value, dict):
        for key, below in value.items():
            _flatten(below, f"{path}.{key}" if path else str(key), into)
    elif value is not None:
        into[path] = str(value).strip()
