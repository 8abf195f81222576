"""Read `patterns/` into a validated `Knowledge`, through a cache of its compiled form.

The compiled form is JSON, keyed by the bytes of every file and by the tool's version: it is as safe to
read as the files themselves, and it saves the 0.2 seconds that YAML costs at every start.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from postmortem import __version__
from postmortem.knowledge import expressions
from postmortem.knowledge.history import History, history_in
from postmortem.knowledge.memory_schema import MemoryEncoder, MemoryModel, MemoryRule, MemoryVae
from postmortem.knowledge.schema import (
    Cause,
    ClassEntry,
    Dating,
    Exclusion,
    Factor,
    Family,
    FirstTry,
    KeptWords,
    Knowledge,
    Pattern,
    PrivateSetting,
    Redaction,
    Regression,
    Remedy,
    Risk,
    Setting,
    Variable,
    Watched,
)

try:
    from _blake2 import blake2b  # hashlib's own; through it, OpenSSL would be loaded at every start
except ImportError:
    from hashlib import blake2b

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
MAX_BYTES = 4_000_000
_ID = re.compile(r"[\w.\[\]-]{1,120}")
_BAR_GROUPS = frozenset({"n", "total", "elapsed", "postfix"})


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """What is kept on disk between runs."""

    knowledge: Knowledge
    codes: dict[str, expressions.Code]


class KnowledgeError(ValueError):
    """The knowledge base cannot be used; the message names file, line and entry."""


def home() -> Path:
    """The folder of the knowledge base: beside the package in a checkout, inside it when installed."""
    installed = Path(__file__).resolve().parent.parent / "_patterns"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "patterns"


def load(pack: Path | None = None, *, cache: bool = True) -> Knowledge:
    """The built-in knowledge, with the entries of the folder `pack` added (an entry of the same id replaces).

    Raises KnowledgeError when a file is not valid.
    """
    folders = [home(), *([pack] if pack else [])]
    files: list[tuple[Path, str, bytes]] = []
    for folder in folders:
        if not folder.is_dir():
            raise KnowledgeError(f"{folder}: not a folder of patterns; give a folder that holds .yaml files")
        entries = sorted(entry for entry in folder.rglob("*.yaml") if entry.is_file())
        if not entries:
            raise KnowledgeError(f"{folder}: no .yaml file in it; give a folder of patterns")
        for path in entries:
            if path.stat().st_size > MAX_BYTES:
                raise KnowledgeError(f"{path}: larger than {MAX_BYTES} bytes; that is no file of patterns")
            files.append((path, path.relative_to(folder).as_posix(), path.read_bytes()))
    digest = blake2b(__version__.encode(), digest_size=12)
    for _, name, content in files:
        digest.update(name.encode() + b"\0" + len(content).to_bytes(8, "big") + content)
    key = digest.hexdigest()
    stored = _cache_file(key) if cache else None
    if stored and stored.is_file():
        try:
            kept = msgspec.json.decode(stored.read_bytes(), type=Stored)
            expressions.adopt(kept.codes)
            return kept.knowledge
        except (OSError, msgspec.MsgspecError):
            pass
    knowledge = _compile(files, key)
    if stored:
        codes = expressions.codes_of(knowledge.patterns)
        expressions.adopt(codes)
        _store(stored, msgspec.json.encode(Stored(knowledge, codes)))
    return knowledge


@lru_cache(maxsize=1)
def history() -> History:
    """The built-in tables of AI Toolkit's history, each read when first needed, once a process."""
    return history_in(home())


def _compile(files: list[tuple[Path, str, bytes]], key: str) -> Knowledge:
    from postmortem.knowledge import yaml_loader

    found: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    texts: dict[str, dict[str, str]] = {}
    for path, name, content in files:
        try:
            value, lines, duplicates = yaml_loader.load(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise KnowledgeError(f"{path}: not UTF-8 at byte {error.start}") from None
        except yaml_loader.YamlProblem as error:
            raise KnowledgeError(f"{path}:{error.line or 1}: {error.problem}") from None
        if duplicates:
            raise KnowledgeError(f"{path}:{duplicates[0][1]}: key {duplicates[0][0]!r} given twice")
        parts = name.split("/")
        if parts[0] == "text":
            if len(parts) < 3:
                raise KnowledgeError(f"{path}:1: texts belong into text/<language>/")
            flatten(value, "", texts.setdefault(parts[1], {}))
        else:
            _read_sections(path, value, lines, found)
    return Knowledge(version=key, texts=texts, **{name: tuple(found[name].values()) for name in SECTIONS})


def _read_sections(path: Path, value: Any, lines: dict[str, int], found: dict[str, dict[str, Any]]) -> None:
    if not isinstance(value, dict):
        raise KnowledgeError(f"{path}:1: expected one of {', '.join(SECTIONS)} at the top")
    for section, entries in value.items():
        if section not in SECTIONS or not isinstance(entries, list):
            raise KnowledgeError(f"{path}:{lines.get(section, 1)}: expected a list under one of {', '.join(SECTIONS)}")
        here: set[str] = set()
        for index, entry in enumerate(entries):
            line = lines.get(f"{section}[{index}]", 1)
            try:
                parsed = msgspec.convert(entry, SECTIONS[section])
            except msgspec.ValidationError as error:
                raise KnowledgeError(f"{path}:{line}: {error}") from None
            ident = getattr(parsed, "id", None) or parsed.path
            if not _ID.fullmatch(ident):
                raise KnowledgeError(f"{path}:{line}: an id may hold letters, digits, dots, dashes and underscores")
            _check_expressions(parsed, f"{path}:{line}: {ident}")
            if ident in here:
                raise KnowledgeError(f"{path}:{line}: {ident} stands twice in this file")
            here.add(ident)
            found[section][ident] = parsed


def _check_expressions(entry: Any, where: str) -> None:
    """Each expression of an entry must compile, so that none fails in the middle of a log."""
    sources = {"regex": entry.regex} if isinstance(entry, Pattern | Redaction) else {}
    if isinstance(entry, Pattern):
        sources.update(entry.fields)
    if isinstance(entry, Exclusion):
        sources.update({f"expression {index + 1}": text for index, text in enumerate((*entry.strings, *entry.unless))})
    if isinstance(entry, KeptWords):
        sources.update({f"word {index + 1}": text for index, text in enumerate(entry.words)})
    if isinstance(entry, Redaction):
        sources.update({name: text for name in ("parts", "tail") if (text := getattr(entry, name))})
    for name, source in sources.items():
        try:
            compiled: Any = re.compile(source)
        except (re.error, OverflowError, RecursionError):
            import regex

            try:
                compiled = regex.compile(source)
            except regex.error as error:
                raise KnowledgeError(f"{where}: {name} is not an expression: {error}") from None
        if name in getattr(entry, "fields", {}) and "value" not in compiled.groupindex:
            raise KnowledgeError(f"{where}: {name} has no group named value")
        if isinstance(entry, Redaction) and name == "regex" and "secret" not in compiled.groupindex:
            raise KnowledgeError(f"{where}: {name} has no group named secret")
        if name == "regex" and _event(entry) == "bar_syntax" and not compiled.groupindex.keys() >= _BAR_GROUPS:
            raise KnowledgeError(f"{where}: a bar needs the groups {', '.join(sorted(_BAR_GROUPS))}")


def _event(entry: Any) -> str | None:
    """The event that an entry sets, if it is one that sets any."""
    return entry.sets.event if isinstance(entry, Pattern) else None


def flatten(value: Any, path: str, into: dict[str, str]) -> None:
    """Write the leaves of nested mappings into `into`, under dotted keys."""
    if isinstance(value, dict):
        for key, below in value.items():
            flatten(below, f"{path}.{key}" if path else str(key), into)
    elif value is not None:
        into[path] = str(value).strip()


def _cache_file(key: str) -> Path | None:
    if os.environ.get("POSTMORTEM_NO_CACHE"):
        return None
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "postmortem" / f"knowledge-{key}-{expressions.engine()}.json"


def _store(target: Path, content: bytes) -> None:
    """Write the cache whole or not at all; a cache that cannot be written is no error."""
    import tempfile

    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".knowledge-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(target)
        for old in target.parent.glob("knowledge-*.json"):
            if old != target and old.stat().st_mtime < target.stat().st_mtime - 7 * 86400:
                old.unlink(missing_ok=True)
    except OSError:
        pass
