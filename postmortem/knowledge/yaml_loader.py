"""YAML from untrusted hands: PyYAML's safe loader without tags, with limits, and with line numbers.

Used for the knowledge base, for pattern packs and for job configs alike. It refuses what a config never
needs and an attacker would like: tags, aliases that expand, deep nesting, floods of nodes; and it reports
duplicate keys, which YAML forbids and PyYAML accepts in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml

MAX_DEPTH = 40
MAX_NODES = 200_000
MAX_DUPLICATES = 20
MAX_DIGITS = 40
MAX_PATH = 400
"""Characters of a dotted path whose line is told: each value has one of its own."""


class YamlProblem(ValueError):
    """The text is not YAML that we accept; the message says what is wrong and `line` (1-based) where."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


_PLAIN = frozenset(
    f"tag:yaml.org,2002:{name}" for name in (*("str", "int", "float", "bool"), *("null", "timestamp", "merge", "value"))
)
"""What a word or a number may be; a `!!set` or `!!binary` of a config is no setting."""
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HALF = re.compile("[\ud800-\udfff]")
_STANDARD = "tag:yaml.org,2002:"


class _Again(NamedTuple):
    """In place of an alias: the events that it stands for, from the first up to before the last."""

    first: int
    last: int


class _Anchor(msgspec.Struct):
    """What an alias may name; `last` and `values` are known once its end was read."""

    first: int
    before: int
    last: int | None = None
    values: int = 0


def load(text: str) -> tuple[Any, dict[str, int], list[tuple[str, int]]]:
    """Parse `text` into plain values, the 1-based line of every dotted path, and the duplicate keys found.

    Raises YamlProblem for anything that is not plain YAML within the limits.
    """
    loader = None
    half = _HALF.search(text)
    if half is not None:
        raise YamlProblem("half a character (a lone surrogate)", text.count("\n", 0, half.start()) + 1)
    try:
        loader = _Base(text)  # the pure one looks at all characters at once
        reader = _Reader(loader, keep="&" in text)
        return reader.document(), reader.lines, reader.duplicates
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(error.problem or "not YAML", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlProblem):
            raise
        raise YamlProblem(type(error).__name__ + ": not YAML", None) from None
    finally:
        if loader is not None:
            loader.dispose()


def events(text: str) -> Iterator[Any]:
    """The parser's events, whose marks tell where things stand in `text` (which `load` has accepted)."""
    yield from yaml.parse(text, Loader=_Base)


class _Reader:
    """Builds values from the parser's events as they come, so that nothing is held before it is counted."""

    def __init__(self, loader: Any, *, keep: bool) -> None:
        self._loader = loader
        self._keep = keep
        self._seen: list[Any] = []
        self._replayed: list[tuple[int, int]] = []
        self._anchors: dict[str, _Anchor] = {}
        self._values = 0
        self.lines: dict[str, int] = {}
        self.duplicates: list[tuple[str, int]] = []

    def document(self) -> Any:
        """The one document in the text, None where it is empty."""
        self._next()  # the stream's start
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            return None
        value = self._build(self._next(), "", 0)
        self._next()  # the document's end
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise YamlProblem("more than one document", after.start_mark.line + 1)
        return value

    def _next(self) -> Any:
        """The next event; what an alias names comes again in its place."""
        while self._replayed:
            at, end = self._replayed.pop()
            if at < end:
                self._replayed.append((at + 1, end))
                event = self._seen[at]
                if not isinstance(event, _Again):
                    return event
                self._replayed.append(event)
        event = self._loader.get_event()
        if isinstance(event, yaml.AliasEvent):
            again = self._named(event)
            self._seen.append(again)
            self._replayed.append(again)
            return self._next()
        if self._keep:
            self._seen.append(event)
        return event

    def _named(self, alias: Any) -> _Again:
        """What `alias` stands for, if there is room for it. Raises YamlProblem."""
        line = alias.start_mark.line + 1
        anchor = self._anchors.get(alias.anchor)
        if anchor is None:
            raise YamlProblem("an alias of what was not named before", line)
        if anchor.last is None:
            raise YamlProblem("an alias within what it names", line)
        if self._values + anchor.values > MAX_NODES:
            raise YamlProblem(f"more than {MAX_NODES} values (aliases count each time)", line)
        return _Again(anchor.first, anchor.last)

    def _build(self, event: Any, path: str | None, depth: int) -> Any:
        """The value that starts with `event`; `path` is None where lines are not told."""
        line = event.start_mark.line + 1
        self._values += 1
        if depth > MAX_DEPTH:
            raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", line)
        if self._values > MAX_NODES:
            raise YamlProblem(f"more than {MAX_NODES} values (aliases count each time)", line)
        if path:
            self.lines.setdefault(path, line)
        anchor = None
        if event.anchor is not None and not self._replayed:
            anchor = self._anchor(event, _Anchor(len(self._seen) - 1, self._values - 1))
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, self._tag(event))
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(event, path, depth)
        else:
            value = self._mapping(event, path, depth)
        if anchor is not None:
            anchor.last, anchor.values = len(self._seen), self._values - anchor.before
        return value

    def _anchor(self, event: Any, anchor: _Anchor) -> _Anchor:
        if event.anchor in self._anchors:
            raise YamlProblem("a name for aliases given twice", event.start_mark.line + 1)
        self._anchors[event.anchor] = anchor
        return anchor

    def _sequence(self, event: Any, path: str | None, depth: int) -> list[Any]:
        if event.tag not in (None, "!", f"{_STANDARD}seq"):
            raise YamlProblem("tags are not accepted", event.start_mark.line + 1)
        found: list[Any] = []
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            found.append(self._build(item, self._below(path, f"[{len(found)}]"), depth + 1))
        return found

    def _mapping(self, event: Any, path: str | None, depth: int) -> dict[str, Any]:
        if event.tag not in (None, "!", f"{_STANDARD}map"):
            raise YamlProblem("tags are not accepted", event.start_mark.line + 1)
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(key_event := self._next(), yaml.MappingEndEvent):
            line = key_event.start_mark.line + 1
            if not isinstance(key_event, yaml.ScalarEvent):
                raise YamlProblem("a key must be a plain word", line)
            tag = self._tag(key_event)
            if tag == f"{_STANDARD}merge":
                self._merge(self._build(self._next(), None, depth + 1), merged, line)
                continue
            key = str(self._key(key_event, tag))
            if key in found and len(self.duplicates) < MAX_DUPLICATES:
                self.duplicates.append((key, line))
            below = self._below(path, f".{key}" if path else key)
            found[key] = self._build(self._next(), below, depth + 1)
            if below:
                self.lines[below] = line
        return {**merged, **found} if merged else found

    def _merge(self, given: Any, merged: dict[str, Any], line: int) -> None:
        """Put what a `<<` names into `merged`, where the first one wins; each key counts as a value of its own."""
        for mapping in given if isinstance(given, list) else [given]:
            if isinstance(mapping, dict):
                self._values += len(mapping)
                if self._values > MAX_NODES:
                    raise YamlProblem(f"more than {MAX_NODES} values (merged ones count each time)", line)
                for key, value in mapping.items():
                    merged.setdefault(key, value)

    def _key(self, event: Any, tag: str) -> Any:
        if event.anchor is not None and not self._replayed:
            self._anchor(event, _Anchor(len(self._seen) - 1, self._values, len(self._seen), 1))
        return self._scalar(event, tag)

    @staticmethod
    def _below(path: str | None, step: str) -> str | None:
        """The path one step down; one that is longer than any setting's is not kept, for each value has its own."""
        return None if path is None or len(path) + len(step) > MAX_PATH else path + step

    def _tag(self, event: Any) -> str:
        if event.tag is None or event.tag == "!":
            return str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)

    def _scalar(self, event: Any, tag: str) -> Any:
        """The plain value of a scalar; a number of more digits than any setting has stays text."""
        if tag == f"{_STANDARD}str":
            return event.value
        line = event.start_mark.line + 1
        if tag not in _PLAIN:
            raise YamlProblem("tags are not accepted", line)
        if len(event.value) > MAX_DIGITS and tag in (f"{_STANDARD}int", f"{_STANDARD}float"):
            return event.value
        node = yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark, event.style)
        try:
            return self._loader.construct_object(node)
        except yaml.YAMLError:
            raise
        except Exception as error:  # PyYAML's constructors raise whatever their parsing stumbles over
            raise YamlProblem(f"not a value that YAML can hold ({type(error).__name__})", line) from None
        finally:
            self._loader.constructed_objects.clear()
