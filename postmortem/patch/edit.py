"""Surgery on config text: replace a value's characters, take items out of a list, put a missing key under its mapping.

All edits are found on one tree and made at once. Nothing here is trusted: `apply` parses the result and compares.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from postmortem.patch.refusal import Refused
from postmortem.patch.tree import Node

Step = str | int
Path = tuple[Step, ...]
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_REST = re.compile(r"[ \t]*(?:#.*)?")
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")
_NOT_PLAIN = ("true", "false", "yes", "no", "on", "off", "null", "y", "n")
_STEP = 2


class Editor:
    """Collects edits on `text`, whose tree is `root`; `json_text` tells which of the two languages it is."""

    def __init__(self, text: str, root: Node, *, json_text: bool) -> None:
        self._text = text
        self._root = root
        self._json = json_text
        self._breaks = [found.span() for found in _BREAK.finditer(text)]
        self._spans: dict[tuple[int, int], str] = {}
        self._aliases: list[tuple[Node, Node, str]] = []
        self._done: set[tuple[int, str]] = set()
        self._missing: dict[int, tuple[Node, dict[str, Any]]] = {}

    def set(self, path: Path, value: Any) -> None:
        """Give the setting at `path` the plain `value`; mappings on the way that are missing are made."""
        node = self._root
        for at, step in enumerate(path):
            node = node.target or node
            below = self._below(node, step)
            if below is None:
                self._insert(node, path[at:], value)
                return
            node = below
        self._replace(node, value)

    def keep(self, path: Path, kept: Sequence[bool]) -> None:
        """Keep those items of the list at `path` for which `kept` is true."""
        node = self._root
        for step in path:
            below = self._below(node.target or node, step)
            if below is None:
                raise Refused("place", path=_shown(path))
            node = below
        listed = node.target or node
        if listed.kind != "list" or len(listed.items) != len(kept):
            raise Refused("place", path=_shown(path))
        if node.kind == "alias":
            words = [self._text[item.start : item.end] for item, keep in zip(listed.items, kept) if keep]
            self._aliases.append((node, listed, f"[{', '.join(words)}]"))
            return
        self._done.add((id(listed), ""))
        for index, keep in enumerate(kept):
            if not keep:
                self._span(*(self._flow_item if listed.flow else self._block_item)(listed, index, kept), "")

    def text(self) -> str:
        """The text with all edits made."""
        for node, target, word in self._aliases:
            if not {(id(target), word), (id(target), "")} & self._done:
                self._span(node.start, node.end, word)
        for node, values in self._missing.values():
            self._put(node, values)
        out, at = [], 0
        for (start, end), word in sorted(self._spans.items()):
            if start < at:
                raise Refused("overlap")
            out += [self._text[at:start], word]
            at = end
        return "".join([*out, self._text[at:]])

    # --- finding -----------------------------------------------------------------------------------
    def _below(self, node: Node, step: Step) -> Node | None:
        if isinstance(step, int):
            if node.kind != "list" or step >= len(node.items):
                raise Refused("place", path=str(step))
            return node.items[step]
        found = None
        for key, value in node.entries:
            if key.text == step and key.kind == "scalar":
                found = value  # of a key given twice, the last one counts
        return found

    # --- values that are there -----------------------------------------------------------------------
    def _replace(self, node: Node, value: Any) -> None:
        if node.kind == "alias":
            assert node.target is not None
            self._aliases.append((node, node.target, self._word(value, node.target)))
            return
        if node.kind != "scalar" or node.style in ("|", ">"):
            raise Refused("shape")
        word = self._word(value, node)
        self._done.add((id(node), word))
        if node.start == node.end and not self._text[: node.start].endswith((" ", "\t")):
            word = " " + word  # nothing stands behind the colon
        self._span(node.start, node.end, word)

    def _flow_item(self, listed: Node, index: int, kept: Sequence[bool]) -> tuple[int, int]:
        """The span to cut: the item with the comma that belongs to it, or its whole line where comments stand."""
        item = listed.items[index]
        if any(kept[:index]):
            span = listed.items[index - 1].end, item.end
        else:
            span = item.start, listed.items[index + 1].start
        if self._json or "#" not in self._text[span[0] : span[1]]:
            return span
        start, end = self._line(item.start)
        if self._text[start : item.start].strip() or not re.fullmatch(
            r"[ \t]*,?[ \t]*(?:#.*)?", self._text[item.end : end]
        ):
            raise Refused("shape")
        return start, self._after_break(end)

    def _block_item(self, listed: Node, index: int, kept: Sequence[bool]) -> tuple[int, int]:
        item = listed.items[index]
        start, end = self._line(item.start)
        if (
            item.kind != "scalar"
            or not re.fullmatch(r"[ \t]*-[ \t]+", self._text[start : item.start])
            or item.end > end
            or not _REST.fullmatch(self._text, item.end, end)
        ):
            raise Refused("shape")
        return start, self._after_break(end)

    # --- keys that are missing -----------------------------------------------------------------------
    def _insert(self, node: Node, path: Path, value: Any) -> None:
        if not all(isinstance(step, str) for step in path):
            raise Refused("place", path=_shown(path))
        _, values = self._missing.setdefault(id(node), (node, {}))
        *outer, last = path
        for step in outer:
            values = values.setdefault(str(step), {})
        values[str(last)] = value

    def _put(self, node: Node, values: dict[str, Any]) -> None:
        if node.kind == "scalar" and not node.style and node.text in ("", "~", "null", "Null", "NULL"):
            word = self._inline(values)
            gap = node.start == node.end and not self._text[: node.start].endswith((" ", "\t"))
            self._span(node.start, node.end, f"{' ' if gap else ''}{word}")
        elif node.kind != "map":
            raise Refused("shape")
        elif not node.entries:
            if self._text[node.start + 1 : node.end - 1].strip():
                raise Refused("shape")
            self._span(node.start, node.end, self._inline(values))
        elif node.flow:
            self._put_flow(node, values)
        else:
            self._put_block(node, values)

    def _put_flow(self, node: Node, values: dict[str, Any]) -> None:
        key, value = node.entries[-1]
        colon = self._text[key.end : value.start]
        if value.kind == "alias" or not re.fullmatch(r" ?: ?", colon) or key.style != '"':
            colon = ": "
        quote = self._json or key.style == '"'
        words = [f"{_key(name, quote)}{colon}{self._inline(item)}" for name, item in values.items()]
        start, _ = self._line(key.start)
        comma = ", "
        if len(node.entries) > 1:
            between = self._text[node.entries[-2][1].end : key.start]
            comma = between if re.fullmatch(r" ?, ?", between) else comma
        if not self._text[start : key.start].strip(" \t"):
            # each on its own line: before the last one, so that no other line gets or loses a comma
            indent = self._text[start : key.start]
            self._span(key.start, key.start, "".join(f"{word},{self._break(key.start)}{indent}" for word in words))
        else:
            at = value.end
            self._span(at, at, "".join(comma + word for word in words))

    def _put_block(self, node: Node, values: dict[str, Any]) -> None:
        lines = self._block(values, self._step(node))
        sibling = self._single_line(node)
        if sibling is not None:
            key, value = sibling
            start, _ = self._line(key.start)
            indent = self._text[start : key.start]
            indent = indent if not indent.strip(" ") else " " * len(indent)
            _, end = self._line(value.end)
            self._span(end, end, "".join(self._break(end) + indent + line for line in lines))
            return
        first = node.entries[0][0]
        start, _ = self._line(first.start)
        if not re.fullmatch(r" *(?:- +)*", self._text[start : first.start]):
            raise Refused("shape")
        indent = " " * (first.start - start)
        self._span(first.start, first.start, "".join(line + self._break(first.start) + indent for line in lines))

    def _single_line(self, node: Node) -> tuple[Node, Node] | None:
        """The last entry that stands on one line, so that a new line can follow it."""
        for key, value in reversed(node.entries):
            start, end = self._line(key.start)
            whole = value.kind in ("scalar", "alias") or value.flow
            if not whole or value.style in ("|", ">") or not key.end <= value.end <= end:
                continue
            if re.fullmatch(r" *(?:- +)*", self._text[start : key.start]) and _REST.fullmatch(
                self._text, value.end, end
            ):
                return key, value
        return None

    def _step(self, node: Node) -> int:
        """By how much this mapping indents what is below a key."""
        for key, value in node.entries:
            if value.kind == "map" and not value.flow and value.entries:
                inner = value.entries[0][0].start
                step = (inner - self._line(inner)[0]) - (key.start - self._line(key.start)[0])
                if 0 < step < 20:
                    return step
        return _STEP

    # --- words ---------------------------------------------------------------------------------------
    def _block(self, values: dict[str, Any], step: int) -> list[str]:
        lines: list[str] = []
        for key, item in values.items():
            if isinstance(item, dict):
                lines.append(f"{_key(key, False)}:")
                lines += [" " * step + line for line in self._block(item, step)]
            else:
                lines.append(f"{_key(key, False)}: {self._word(item, None)}")
        return lines

    def _inline(self, value: Any) -> str:
        if not isinstance(value, dict):
            return self._word(value, None)
        return "{" + ", ".join(f"{_key(key, self._json)}: {self._inline(item)}" for key, item in value.items()) + "}"

    def _word(self, value: Any, old: Node | None) -> str:
        """`value` as it is written here, in the manner of the `old` one."""
        written = self._text[old.start : old.end] if old is not None else ""
        if isinstance(value, bool):
            word = "true" if value else "false"
            return word if self._json else _as_case_of(written, word)
        if isinstance(value, str):
            if old is not None and old.style == "'" and "'" not in value:
                return f"'{value}'"
            quoted = self._json or (old is not None and old.style == '"')
            if quoted or not _PLAIN.fullmatch(value) or value.lower() in _NOT_PLAIN:
                return json.dumps(value, ensure_ascii=False)
            return value
        return json.dumps(value)

    # --- lines ---------------------------------------------------------------------------------------
    def _line(self, at: int) -> tuple[int, int]:
        """Start and end (before the break) of the line that holds offset `at`."""
        after = bisect_left(self._breaks, (at, 0))
        start = self._breaks[after - 1][1] if after else 0
        return start, self._breaks[after][0] if after < len(self._breaks) else len(self._text)

    def _after_break(self, end: int) -> int:
        found = _BREAK.match(self._text, end)
        return found.end() if found else end

    def _break(self, at: int) -> str:
        """The line break in use around `at`."""
        after = min(bisect_left(self._breaks, (at, 0)), len(self._breaks) - 1)
        found = self._text[slice(*self._breaks[after])] if self._breaks else ""
        return found if found in ("\n", "\r\n", "\r") else "\n"

    def _span(self, start: int, end: int, word: str) -> None:
        if self._spans.setdefault((start, end), word) != word:
            if start != end:
                raise Refused("overlap")
            self._spans[start, end] += word


def _key(name: str, quoted: bool) -> str:
    return json.dumps(name) if quoted or not _PLAIN.fullmatch(name) else name


def _as_case_of(old: str, word: str) -> str:
    if old in ("True", "False"):
        return word.capitalize()
    if old in ("TRUE", "FALSE"):
        return word.upper()
    return word


def _shown(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
