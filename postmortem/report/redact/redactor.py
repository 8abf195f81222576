"""The one place that redacts: any document's log text, an excerpt, a text; before a renderer sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from postmortem.knowledge.log_schema import PrivateSetting
from postmortem.knowledge.schema import Knowledge
from postmortem.report.document import RedactedPart
from postmortem.report.excerpt import Excerpt
from postmortem.report.redact.labels import LABEL, Hidden, Labels
from postmortem.report.redact.learnt import Learnt
from postmortem.report.redact.private import PrivateSettings, leaves, looks, normal
from postmortem.report.redact.shapes import KeptLists, Shape, Shapes, Span
from postmortem.report.redact.spans import replaced
from postmortem.report.texts import Texts
from postmortem.text import LogText, Words, printable

_NAMES = re.compile(r":(?![\\/])")
_QUOTED = re.compile(r"""(?<![\w'"])(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*")|(?:(?<=\s)|^)\#""")
"""In a YAML line: what stands in quotes, or the sign that begins a comment."""
T = TypeVar("T", bound=msgspec.Struct)

MAX_CACHED = 50_000
MAX_PASSES = 4
_JOB = frozenset({"job_name"})
_DATASET = frozenset({"dataset"})
_NAMED_FILES = frozenset({"source", "sources", "config", "log"})
"""Fields that hold the name of an input: a path as the user gave it."""
_VALUES = frozenset({"value", "from_", "to"})
"""Fields beside `path` that hold a setting's value."""
_SINGLE = frozenset({"log", "default", "-", "stdin"})


class Redactor:
    """Replaces what is private by labels: the same thing always gets the same label, in all that one instance redacts.

    What it knows as private is how secrets look (redaction.yaml), and what it learnt from the run's own configs.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        kept = KeptLists(knowledge)
        self._knowledge = knowledge
        self._labels = Labels()
        self._shapes = Shapes(knowledge, kept)
        self._private = PrivateSettings(knowledge, kept)
        self._learnt = Learnt()
        self._lines: dict[str, list[Span]] = {}

    # --- what is private -----------------------------------------------------------------------
    def learn(self, document: object = None, settings: Iterable[Mapping[str, Any]] = ()) -> None:
        """Take from a run what is private: the values of its configs (`settings_of`), the names in its document.

        Call it before anything is redacted, once for each run that the documents speak of.
        """
        given = list(settings)
        for one in given:
            for kind, value, thing in self._private.values(one):
                self._take(kind, value, thing)
        texts = [value for one in given for _, value in leaves(one)]
        for name, text in _log_texts(document):
            value = text.reveal().strip()
            if name in _JOB and value:
                self._take("name", value, Hidden("job", value))
            elif name in _DATASET and value:
                self._take("path", value, Hidden("dataset", value))
            else:
                texts.append(value)
        self._spread(texts)

    def _take(self, kind: str, value: str, thing: Hidden) -> None:
        if LABEL.fullmatch(value):
            return
        thing = self._learnt.claim(value, thing) if kind != "folder" else thing
        if kind == "prose" and len(value.split()) > 2:
            self._learnt.add_prose(value, thing, self._private.common)
            return
        for piece in self._private.pieces(kind, value):
            whole = self._learnt.claim(piece, Hidden("folder", piece) if kind == "folder" else thing)
            self._learnt.add(piece, whole)

    def _spread(self, texts: Iterable[str]) -> None:
        """Names of people and machines that show in one place are hidden in every other."""
        for text in texts:
            for line in text.split("\n"):
                for thing in self._shapes.spreading(line):
                    if not self._private.common(thing.original) and not LABEL.search(thing.original):
                        self._learnt.add(thing.original, self._learnt.claim(thing.original, thing))

    def number_as(self, labels: Mapping[str, Hidden | str | None]) -> None:
        """Give `labels` to what another run gave them to: a thing that is hidden here too, a name that only shows
        there, or (None) something that does not show here. Call it after `learn`; names that this run would not hide
        wherever they stand are passed over."""
        for label, stands in labels.items():
            thing = stands if isinstance(stands, Hidden) else None
            kind = label.strip("<>").rpartition("-")[0]
            if isinstance(stands, str) and self._shapes.spreads(kind) and not self._private.common(stands):
                known = self._learnt.claim(stands, Hidden(kind, stands))
                if known.label == kind:
                    self._learnt.add(stands, known)
                    thing = known
            self._labels.take(label, thing)

    def thing(self, label: str) -> Hidden | None:
        """What a label given so far stands for."""
        return self._labels.thing(label)

    # --- redacting -----------------------------------------------------------------------------
    def text(self, raw: str) -> str:
        """`raw`, of any number of lines, with every secret replaced.

        What is found may show what stood beside it, so a text with finds is looked through again.
        """
        for _ in range(MAX_PASSES):
            shown = self._once(raw)
            if shown == raw:
                break
            raw = shown
        return raw

    def _once(self, raw: str) -> str:
        spans = list(self._learnt.spans(raw))
        at = 0
        shapes = self._shapes.within(raw)
        for line in raw.split("\n"):
            spans += [(start + at, end + at, rank, thing) for start, end, rank, thing in self._looks(line, shapes)]
            at += len(line) + 1
        return replaced(raw, spans, self._label)

    def config(self, raw: str) -> str:
        """A job config as a file, redacted, without its comments: what people write there is about anything.

        Learn its values first (`settings_of`).
        """
        if not raw.lstrip("\ufeff \t\r\n").startswith("{"):
            raw = "\n".join(_uncommented(line) for line in raw.split("\n"))
        return self.text(raw)

    def excerpt(self, found: Excerpt) -> Excerpt:
        """An excerpt of the log, redacted; lines inside a block of a private key go as a whole."""
        self._spread([line.text.reveal() for passage in found.passages for line in passage.lines])
        passages = []
        for passage in found.passages:
            inside = False
            lines = []
            for line in passage.lines:
                shown = line.text.reveal()
                begins = "PRIVATE KEY-----" in shown and "-----BEGIN" in shown
                ends = "PRIVATE KEY-----" in shown and "-----END" in shown
                text = self._labels.of(Hidden("key", shown, True)) if inside and not ends else self.text(shown)
                inside = (inside or begins) and not ends
                lines.append(msgspec.structs.replace(line, text=LogText(text)))
            passages.append(msgspec.structs.replace(passage, source=self._file(passage.source), lines=lines))
        return msgspec.structs.replace(found, passages=passages)

    def document(self, document: T) -> T:
        """A report, a comparison or a check, redacted, and marked as such in its own language."""
        parts: dict[str, Any] = {}
        for name in document.__struct_fields__:
            value = getattr(document, name)
            parts[name] = value if name in ("tool", "schema_version", "lang") else self._walk(value, name, None)
        if "redacted" in parts:
            says = Texts(self._knowledge, parts.get("lang", "en"))("redacted.says")
            parts["redacted"] = RedactedPart(says=says)
        return type(document)(**parts)

    def mapping(self) -> dict[str, str]:
        """The local key: what each label given so far stands for."""
        return {label: printable(original) for label, original in self._labels.mapping().items()}

    def _looks(self, line: str, shapes: list[Shape]) -> list[Span]:
        found = self._lines.get(line)
        if found is None:
            found = list(self._shapes.spans(line, shapes))
            if len(self._lines) < MAX_CACHED:
                self._lines[line] = found
        return found

    def _walk(self, value: Any, field: str, path: str | None) -> Any:
        """A copy of any part of a document. Our own words (`str`) hold nothing of the log and stay."""
        if isinstance(value, LogText):
            return self._log_text(value, field)
        if isinstance(value, Words):
            return Words(*(self._log_text(part, "") if isinstance(part, LogText) else part for part in value.parts))
        if isinstance(value, (list, tuple)):
            return type(value)(self._walk(item, field, path) for item in value)
        if isinstance(value, dict):
            return {key: self._walk(item, field, str(key)) for key, item in value.items()}
        if isinstance(value, msgspec.Struct):
            return self._struct(value, path)
        return value

    def _struct(self, value: msgspec.Struct, path: str | None) -> msgspec.Struct:
        own = getattr(value, "path", path)
        where = own.reveal() if isinstance(own, LogText) else own
        parts = {}
        for name in value.__struct_fields__:
            part = getattr(value, name)
            if name in _VALUES and isinstance(where, str):
                parts[name] = self._setting(part, normal(where))
            else:
                parts[name] = self._walk(part, name, None)
        return type(value)(**parts)

    def _setting(self, value: Any, path: str) -> Any:
        """A setting's value: private ones go whole, however short; those that bear on memory stay as they are."""
        if isinstance(value, list):
            return [self._setting(item, path if self._private.entry(path) else f"{path}[]") for item in value]
        if isinstance(value, dict):
            return {self.text(str(key)): self._setting(item, f"{path}.{key}") for key, item in value.items()}
        if not isinstance(value, LogText):
            return value
        shown = value.reveal()
        entry = self._private.entry(path)
        if entry is not None:
            return self._private_value(shown, entry)
        if self._private.covered(path):
            return LogText(self._only_looks(shown))
        if looks(shown) == "prose" and self.text(shown) == shown:
            return LogText(self._labels.of(self._learnt.known(shown) or Hidden("text", shown)))
        return LogText(self.text(shown))

    def _private_value(self, shown: str, entry: PrivateSetting) -> LogText:
        if not shown.strip() or LABEL.fullmatch(shown.strip()) or self._private.public(entry, shown):
            return LogText(shown)
        if entry.kind == "folder":
            return LogText(self.text(shown))
        return LogText(self._labels.of(self._learnt.known(shown) or Hidden(entry.label, shown.strip())))

    def _only_looks(self, shown: str) -> str:
        return replaced(shown, list(self._shapes.spans(shown)), self._labels.of)

    def _label(self, thing: Hidden) -> str:
        return self._labels.of(self._learnt.known(thing.original) or thing)

    def _log_text(self, value: LogText, field: str) -> LogText:
        shown = value.reveal()
        if field in _NAMED_FILES:
            return self._file(value)
        if field in _JOB | _DATASET and shown.strip() and not LABEL.fullmatch(shown.strip()):
            label = "job" if field in _JOB else "dataset"
            return LogText(self._labels.of(self._learnt.known(shown) or Hidden(label, shown.strip())))
        return LogText(self.text(shown))

    def _file(self, value: LogText) -> LogText:
        """The name of an input: its folders and its own name, where they are not those that every run has."""
        shown = value.reveal()
        if shown in _SINGLE or self._shapes.paths is None:
            return value
        # `folder:log` is how a comparison names one log of several; a drive's colon has a slash behind it
        return LogText(":".join(self._cut(part) for part in _NAMES.split(self.text(shown))))

    def _cut(self, shown: str) -> str:
        assert self._shapes.paths is not None
        return replaced(shown, list(self._shapes.paths.cut(shown, 0, len(shown))), self._label)


def redact(document: T, knowledge: Knowledge, settings: Iterable[Mapping[str, Any]] = ()) -> T:
    """`document` without what is private, by what it says itself and the configs in `settings`."""
    redactor = Redactor(knowledge)
    redactor.learn(document, settings)
    return redactor.document(document)


def _log_texts(value: Any, field: str = "") -> Iterator[tuple[str, LogText]]:
    """All log text of a document, with the name of the field that holds it."""
    if isinstance(value, LogText):
        yield field, value
    elif isinstance(value, Words):
        yield from ((field, part) for part in value.parts if isinstance(part, LogText))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _log_texts(item, field)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _log_texts(item, field)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _log_texts(getattr(value, name), name)


def _uncommented(line: str) -> str:
    """A line of YAML without its comment."""
    sign = next((found for found in _QUOTED.finditer(line) if found[0] == "#"), None)
    return line if sign is None else line[: sign.start()].rstrip()
