"""Read `patterns/` into a validated `Knowledge`, through what is kept of it between runs (see kept.py)."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from postmortem import __version__
from postmortem.bounded import TooMuch
from postmortem.knowledge import kept
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
from postmortem.text import seen

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
MAX_FILES = 500
MAX_TOTAL = 16_000_000
"""Files of one folder of patterns, and their bytes; the built-in ones take a tenth of either."""
MAX_EXPRESSION = 20_000
_ID = re.compile(r"[\w.\[\]-]{1,120}")
_DIGITS = "0123456789\u0663"  # and one for those of other scripts, which `\\d` takes too
_CLOCK = _DIGITS + ":"
_FRAME = {"path": None, "line": (_DIGITS, 9), "function": None}
_GROUPS: dict[str, dict[str, tuple[str, int] | None]] = {
    "bar_syntax": {
        "n": (_DIGITS, 18),
        "total": (_DIGITS, 18),
        "elapsed": (_CLOCK, 24),
        "postfix": None,
        "remaining": None,
        "rate": None,
    },
    "frame": _FRAME,
    "frame_boxed": _FRAME,
    "frame_unnumbered": {"path": None, "function": None},
    "code_boxed": {"code": None},
}
"""By event the groups that an expression must always fill; of some, what may be in them, and how much at most."""
_BY_ID = {"syntax.frame_boxed": "frame_boxed", "syntax.code_boxed": "code_boxed"}
_FIELD_GROUPS: dict[str, dict[str, tuple[str, int] | None]] = {
    "other_process": {"value": None, "unit": None},
    "device": {"value": (_DIGITS, 1 << 20)},
}


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
    began = time.time()
    files = _listed(home())
    own = len(files)
    if pack is not None:
        files += _listed(pack)
    place = kept.home() if cache else None
    stamp = kept.Stamp(place, folders, files, began)
    known = stamp.key()
    if known is not None and (found := kept.read(place, known)) is not None:
        return found
    contents = [Path(file.path).read_bytes() for file in files]
    key = _key(files, contents)
    found = kept.read(place, key)
    if found is None:
        found = _compile(files, contents, key, own)
        kept.write(place, key, found)
    stamp.write(key)
    return found


def _listed(folder: Path) -> list[kept.File]:
    if not folder.is_dir():
        raise KnowledgeError(f"{folder}: not a folder of patterns; give a folder that holds .yaml files")
    try:
        files = kept.listed(folder, ".yaml")
    except TooMuch as error:
        raise KnowledgeError(f"{folder}: {error}; give a folder of patterns") from None
    if not files:
        raise KnowledgeError(f"{folder}: no .yaml file in it; give a folder of patterns")
    for file in files:
        if file.bytes > MAX_BYTES:
            raise KnowledgeError(f"{file.path}: larger than {MAX_BYTES} bytes; that is no file of patterns")
    if len(files) > MAX_FILES or sum(file.bytes for file in files) > MAX_TOTAL:
        raise KnowledgeError(f"{folder}: more than {MAX_FILES} files or {MAX_TOTAL} bytes; give a folder of patterns")
    return files


def _key(files: Sequence[kept.File], contents: Sequence[bytes]) -> str:
    """A digest of the tool's version and all that the files say: the version of the knowledge."""
    digest = blake2b(__version__.encode(), digest_size=12)
    for file, content in zip(files, contents):
        digest.update(os.fsencode(file.name) + b"\0" + len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def history() -> History:
    """The built-in tables of AI Toolkit's history, each read when first needed, once a process."""
    return history_in(home())


def _compile(files: Sequence[kept.File], contents: Sequence[bytes], key: str, own: int = 0) -> Knowledge:
    """The knowledge in `files`, of which the first `own` are the built-in ones; all others are strangers'."""
    from postmortem.knowledge import yaml_loader

    found: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    texts: dict[str, dict[str, str]] = {}
    for number, (file, content) in enumerate(zip(files, contents)):
        path = file.path
        try:
            value, lines, duplicates = yaml_loader.load(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise KnowledgeError(f"{path}: not UTF-8 at byte {error.start}") from None
        except yaml_loader.YamlProblem as error:
            raise KnowledgeError(f"{path}:{error.line or 1}: {error.problem}") from None
        if duplicates:
            raise KnowledgeError(f"{path}:{duplicates[0][1]}: key {duplicates[0][0]!r} given twice")
        parts = file.name.split("/")
        if parts[0] == "text":
            if len(parts) < 3:
                raise KnowledgeError(f"{path}:1: texts belong into text/<language>/")
            flatten(value, "", texts.setdefault(parts[1], {}))
        else:
            _read_sections(path, value, lines, found, foreign=number >= own)
    return Knowledge(version=key, texts=texts, **{name: tuple(found[name].values()) for name in SECTIONS})


def _read_sections(
    path: str, value: Any, lines: dict[str, int], found: dict[str, dict[str, Any]], *, foreign: bool
) -> None:
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
            if foreign and found[section].get(ident) != parsed:
                _check_safety(parsed, f"{path}:{line}: {ident}")
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
    # these become parts of others
    part = isinstance(entry, KeptWords) or (isinstance(entry, Pattern) and entry.role in ("prefix", "bar"))
    anchors = {"anchors": "".join(entry.anchors)} if isinstance(entry, Pattern) else {}
    for name, source in (*sources.items(), *anchors.items()):
        if seen(source) != source:
            raise KnowledgeError(f"{where}: {name}: a character that shows nothing; lines are searched without those")
    if isinstance(entry, Pattern) and "" in entry.anchors:
        raise KnowledgeError(f"{where}: anchors: an empty one is in every line; leave it out")
    for name, source in sources.items():
        try:
            compiled: Any = _compiled(source, part=part)
        except ValueError as error:
            raise KnowledgeError(f"{where}: {name} is not an expression: {error}") from None
        if name in getattr(entry, "fields", {}) and "value" not in compiled.groupindex:
            raise KnowledgeError(f"{where}: {name} has no group named value")
        if isinstance(entry, Redaction) and name == "regex" and "secret" not in compiled.groupindex:
            raise KnowledgeError(f"{where}: {name} has no group named secret")
        if name == "regex":
            _check_groups(source, _GROUPS.get(_BY_ID.get(entry.id) or _event(entry) or "", {}), f"{where}: {name}")
        elif name in getattr(entry, "fields", {}):
            _check_groups(source, _FIELD_GROUPS.get(name, {"value": None}), f"{where}: {name}")


def _compiled(source: str, *, part: bool) -> Any:
    """The expression, which must compile as a `part` of another one too, if it becomes one. Raises ValueError."""
    if len(source) > MAX_EXPRESSION:
        raise ValueError(f"longer than {MAX_EXPRESSION} characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FutureWarning)
        # flags in the middle, for which Python 3.10 only warns, and later ones refuse
        warnings.simplefilter("error", DeprecationWarning)
        try:
            made = re.compile(source)
        except FutureWarning as warning:
            raise ValueError(f"{str(warning).lower()}; write \\[ for the character") from None
        except (re.error, DeprecationWarning, OverflowError, RecursionError):
            return _by_regex(source, part=part)
        try:
            re.compile(f"(?:{source})" if part else "")
        except (re.error, DeprecationWarning) as error:
            raise ValueError(str(error)) from None
        return made


def _by_regex(source: str, *, part: bool) -> Any:
    import regex

    try:
        regex.compile(f"(?:{source})" if part else "")
        return regex.compile(source)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _check_groups(source: str, needed: Mapping[str, tuple[str, int] | None], where: str) -> None:
    """What the scan reads out of a match must be in each match, and a number must be one."""
    if not needed:
        return
    from postmortem.knowledge import safety

    for name, may in needed.items():
        allowed, widest = may if may is not None else ("", 0)
        try:
            found = safety.group(source, name, allowed)
        except safety.Unjudged as error:
            raise KnowledgeError(f"{where} cannot be read ({error}); use the syntax of Python's own re") from None
        if found is None or not found.always:
            raise KnowledgeError(f"{where} needs the groups {', '.join(needed)}, each filled in every match")
        if may is not None and (not found.only or found.widest > widest):
            raise KnowledgeError(f"{where}: group {name} may hold digits only, and no more than {widest}")


def _check_safety(entry: Any, where: str) -> None:
    """A stranger's expression must be fast on every line, wherever it is put."""
    from postmortem.knowledge import safety

    if isinstance(entry, Pattern):
        uses, longest = [*safety.uses(entry)], safety.longest(entry)
    elif isinstance(entry, Redaction):
        uses = [(name, text, True) for name in ("regex", "parts", "tail") if (text := getattr(entry, name))]
        longest = safety.LONGEST_SHOWN
    elif isinstance(entry, KeptWords):
        uses = [(f"word {index + 1}", text, False) for index, text in enumerate(entry.words)]
        longest = safety.LONGEST_SHOWN
    else:
        return
    for name, source, anywhere in uses:
        told = safety.problem(source, anywhere=anywhere, longest=longest)
        if told is not None:
            raise KnowledgeError(f"{where}: {name} {told}")


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
