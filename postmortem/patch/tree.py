"""Where each value of a config stands in its text: a light tree with positions, of YAML or of JSON.

Nothing is expanded: an alias stays an alias, since to change what it stands for changes it everywhere. Both builders
expect text that the config parser has accepted, so its limits on depth and size hold here too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

_PROPERTIES = re.compile(r"(?:[&!][^\s]*\s+)+")
_SPACE = re.compile(r"[ \t\r\n]*")
_STRINGS = json.JSONDecoder(strict=False)
_LITERAL = re.compile(r"[^\s,\]}]+")


class Node(msgspec.Struct, eq=False):
    """One value in the text. `start` and `end` are offsets of the value itself, without anchor and tag.

    The `end` of a block collection is not known to the parser and must not be used.
    """

    kind: str
    """scalar, list, map or alias."""
    start: int
    end: int
    flow: bool = False
    style: str = ""
    """Of a scalar: the quote, ``|`` or ``>``; empty for a plain one."""
    text: str = ""
    """Of a scalar: its characters, unquoted."""
    items: list[Node] = msgspec.field(default_factory=list)
    entries: list[tuple[Node, Node]] = msgspec.field(default_factory=list)
    target: Node | None = None
    """Of an alias: what it stands for."""


def of_yaml(text: str) -> Node:
    """The tree of YAML text."""
    from postmortem.knowledge import yaml_loader

    return _Yaml(text, yaml_loader.events(text)).document()


class _Yaml:
    def __init__(self, text: str, events: Iterator[Any]) -> None:
        self._text = text
        self._events = events
        self._anchors: dict[str, Node] = {}

    def document(self) -> Node:
        event = next(self._events)
        while type(event).__name__ in ("StreamStartEvent", "DocumentStartEvent"):
            event = next(self._events)
        return self._node(event)

    def _node(self, event: Any) -> Node:
        start, end = event.start_mark.index, event.end_mark.index
        name = type(event).__name__
        if name == "AliasEvent":
            return Node("alias", start, end, target=self._anchors[event.anchor])
        if name == "ScalarEvent":
            node = Node("scalar", self._value(event, start), end, style=event.style or "", text=event.value)
            node.start = min(node.start, node.end)
            return self._anchored(event, node)
        kind = "map" if name == "MappingStartEvent" else "list"
        node = self._anchored(event, Node(kind, self._value(event, start), end, flow=bool(event.flow_style)))
        while type(event := next(self._events)).__name__ not in ("MappingEndEvent", "SequenceEndEvent"):
            if kind == "list":
                node.items.append(self._node(event))
            else:
                key = self._node(event)
                node.entries.append((key, self._node(next(self._events))))
        node.end = event.end_mark.index
        return node

    def _value(self, event: Any, start: int) -> int:
        """Where the value itself begins, behind its anchor and tag."""
        if not event.anchor and not event.tag:
            return start
        found = _PROPERTIES.match(self._text, start)
        return found.end() if found else start

    def _anchored(self, event: Any, node: Node) -> Node:
        if event.anchor:
            self._anchors[event.anchor] = node
        return node


def of_json(text: str) -> Node:
    """The tree of JSON text."""
    return _json(text, _skip(text, 0))


def _json(text: str, at: int) -> Node:
    if text[at] == '"':
        value, end = _STRINGS.raw_decode(text, at)
        return Node("scalar", at, end, style='"', text=value)
    if text[at] not in "{[":
        found = _LITERAL.match(text, at)
        assert found is not None
        return Node("scalar", at, found.end(), text=found[0])
    node = Node("map" if text[at] == "{" else "list", at, at, flow=True)
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        item = _json(text, at)
        at = _skip(text, item.end)
        if node.kind == "map":
            value_ = _json(text, _skip(text, at + 1))  # past the colon
            node.entries.append((item, value_))
            at = _skip(text, value_.end)
        else:
            node.items.append(item)
        if text[at] == ",":
            at = _skip(text, at + 1)
    node.end = at + 1
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
