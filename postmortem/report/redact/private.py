"""Which values of a job's config are private: paths of settings are data (private.yaml); the rest goes by its looks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from postmortem.knowledge.log_schema import PrivateSetting
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis
from postmortem.report.redact.labels import Hidden
from postmortem.report.redact.shapes import KeptLists, compiled
from postmortem.text import LogText

MAX_LEAVES = 20_000
MAX_DEPTH = 40
_LATEST = 8
"""Of what was found, what the next attempt's settings are compared with."""
_PROCESS = re.compile(r"^(?:config\.)?process\[\d+\]\.")
_INDEX = re.compile(r"\[\d+\]")
_NOT_WORD = re.compile(r"[\W_]+")
_LOCAL = re.compile(r"[\\/.~]|[A-Za-z]:[\\/]")
_SPLIT = re.compile(r"[\\/]+")


class Unknown(Exception):
    """What is private cannot be learnt; the message is the code of the fault that hides it."""


def settings_of(analysis: Analysis) -> list[Mapping[str, Any]]:
    """All configs that an analysis knows of, as they were given: of every attempt, and of the files beside the logs.

    Raises Unknown where they could not be read through a fault of ours: a report would pass for redacted.
    """
    fault = analysis.failed("config")
    if fault is not None:
        raise Unknown(fault.code)
    found: list[Mapping[str, Any]] = list(analysis.config.given)

    def add(settings: Mapping[str, Any]) -> None:
        if settings not in found[-_LATEST:]:  # a log of many starts says the same again and again
            found.append(settings)

    for attempt in analysis.attempts:
        for dump in (attempt.dump, *attempt.other_dumps):
            if dump is not None and dump.value is not None:
                add(dump.value)
        if attempt.job_name is not None:
            add({"name": attempt.job_name.reveal()})
    if analysis.config.job_name is not None:
        add({"name": analysis.config.job_name.reveal()})
    return found


def leaves(settings: Any) -> Iterator[tuple[str, str]]:
    """Every text in a config, with its path: no prefix of the job's process, ``[]`` for any index."""
    stack: list[tuple[str, Any, int]] = [("", settings, 0)]
    count = 0
    while stack and count < MAX_LEAVES:
        path, value, depth = stack.pop()
        count += 1
        if isinstance(value, Mapping) and depth < MAX_DEPTH:
            below = [(f"{path}.{key}" if path else str(key), item, depth + 1) for key, item in value.items()]
            stack.extend(reversed(below))
        elif isinstance(value, (list, tuple)) and depth < MAX_DEPTH:
            stack.extend((f"{path}[{index}]", item, depth + 1) for index, item in reversed(list(enumerate(value))))
        elif isinstance(value, LogText):
            yield normal(path), value.reveal()
        elif isinstance(value, str):
            yield normal(path), value
        elif isinstance(value, int) and not isinstance(value, bool):
            yield normal(path), str(value)


def normal(path: str) -> str:
    """A path as private.yaml writes it."""
    return _INDEX.sub("[]", _PROCESS.sub("", path))


class PrivateSettings:
    """Says of a setting whether its value is private, and of a value whether it can be told from common words."""

    def __init__(self, knowledge: Knowledge, kept: KeptLists) -> None:
        self._knowledge = knowledge
        self._kept = kept
        self._seen: dict[str, PrivateSetting | None] = {}
        self._settings = {setting.path for setting in knowledge.settings}

    @cached_property
    def _entries(self) -> list[tuple[Any, PrivateSetting]]:
        found = []
        for entry in self._knowledge.private_settings:
            sources = [re.escape(path).replace(r"\*", r"[^\n]*") for path in entry.paths]
            found.append((compiled("(?i:" + "|".join(f"{source}(?:\\[\\])?" for source in sources) + ")"), entry))
        return found

    @cached_property
    def _vocabulary(self) -> str:
        """What AI Toolkit, torch and we say, as words only."""
        base = self._knowledge
        told = (item for item in base.patterns if item.role != "naming")  # these are the words of users and tools
        said = [text for item in told for text in (*item.anchors, item.regex.replace("\\", " "))]
        said += [item.path for item in base.settings] + [str(item.default) for item in base.settings]
        said += [name for item in base.families for name in (item.id, item.name, *item.arch, *item.flags)]
        said += [item.id for item in base.remedies] + [item.id for item in base.classes]
        return f" {_NOT_WORD.sub(' ', ' | '.join(said).casefold())} "

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(self._vocabulary.split())

    def entry(self, path: str) -> PrivateSetting | None:
        """The entry that a setting's path (in normal form) falls under."""
        if path not in self._seen:
            self._seen[path] = next((entry for matches, entry in self._entries if matches.fullmatch(path)), None)
        return self._seen[path]

    def covered(self, path: str) -> bool:
        """Whether the knowledge base knows this setting."""
        return path in self._settings or path.removesuffix("[]") in self._settings

    def public(self, entry: PrivateSetting, value: str) -> bool:
        """Whether `value` is nothing private in itself: a placeholder, a public base model."""
        if self._kept(entry.keep, value.strip()):
            return True
        parts = [part for part in _SPLIT.split(value.strip()) if part]
        local = entry.kind == "repo" and bool(_LOCAL.match(value.strip()))
        return local and all(self._kept((*entry.keep, "kept.path_parts"), part) for part in parts)

    def common(self, value: str) -> bool:
        """Whether `value` is too short or too usual to be hidden wherever it stands."""
        words = _NOT_WORD.sub(" ", value.casefold()).strip()
        solid = words.replace(" ", "")
        if len(solid) < (3 if solid.isascii() else 2) or solid.isdigit():
            return True
        if self._kept(("kept.common", "kept.accounts"), value.strip()):
            return True
        return all(word in self._words for word in words.split()) and f" {words} " in self._vocabulary

    def values(self, settings: Any) -> Iterator[tuple[str, str, Hidden]]:
        """(kind, value, what it is) of all that is private in a config."""
        for path, raw in leaves(settings):
            value = raw.strip()
            if not value:
                continue
            entry = self.entry(path)
            if entry is not None:
                if not self.public(entry, value):
                    yield entry.kind, value, Hidden(entry.label, value)
            elif not self.covered(path) and isinstance(raw, str):
                kind = looks(value)
                if kind is not None:
                    yield kind, value, Hidden("folder" if kind == "folder" else "text", value)

    def pieces(self, kind: str, value: str) -> Iterator[str]:
        """The values to look for, for one private value: itself, and the name in it by which people know it."""
        parts = [part for part in _SPLIT.split(value.rstrip("\\/")) if part]
        if kind == "folder":
            for part in parts:
                if not self._kept(("kept.path_parts",), part) and not self.common(part):
                    yield part
            return
        if len(parts) > 1 or not self.common(value):
            yield value
        if kind in ("path", "repo") and len(parts) > 1:
            last = parts[-1]
            stem = last.rpartition(".")[0] if "." in last[1:] and len(last.rpartition(".")[2]) < 12 else last
            for name in dict.fromkeys((last, stem)):
                if not self.common(name) and not self._kept(("kept.path_parts", "kept.model_files"), name):
                    yield name


def looks(value: str) -> str | None:
    """What a text under a key that nobody knows may be: a path, prose, or (None) a setting's word."""
    if len(value) > 3 and re.search(r"[\\/]", value) and not re.fullmatch(r"[\w.-]+/[\w.-]+", value):
        return "folder"
    return "prose" if len(value.split()) >= 2 else None
