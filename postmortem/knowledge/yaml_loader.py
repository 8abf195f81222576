"""YAML from untrusted hands: PyYAML's safe loader without tags, with limits, and with line numbers.

Used for the knowledge base, for pattern packs and for job configs alike. It refuses what a config never
needs and an attacker would like: tags, aliases that expand, deep nesting, floods of nodes; and it reports
duplicate keys, which YAML forbids and PyYAML accepts in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

MAX_DEPTH = 40
MAX_NODES = 200_000
MAX_DUPLICATES = 20
MAX_DIGITS = 40


class YamlProblem(ValueError):
    """The text is not YAML that we accept; the message says what is wrong and `line` (1-based) where."""

    def __init__(self, problem: str, line: int | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


_PLAIN = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "timestamp"))
"""What a word or a number may be; a `!!set` or `!!binary` of a config is no setting."""
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Limits:
    def __init__(self) -> None:
        self.nodes = 0


def load(text: str) -> tuple[Any, dict[str, int], list[tuple[str, int]]]:
    """Parse `text` into plain values, the 1-based line of every dotted path, and the duplicate keys found.

    Raises YamlProblem for anything that is not plain YAML within the limits.
    """
    loader = _Base(text)
    try:
        node = loader.get_single_node()
        lines: dict[str, int] = {}
        duplicates: list[tuple[str, int]] = []
        value = None if node is None else _build(loader, node, "", 0, _Limits(), lines, duplicates)
        return value, lines, duplicates
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlProblem(error.problem or "not YAML", mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, YamlProblem):
            raise
        raise YamlProblem(type(error).__name__ + ": not YAML", None) from None
    finally:
        loader.dispose()


def events(text: str) -> Iterator[Any]:
    """The parser's events, whose marks tell where things stand in `text` (which `load` has accepted)."""
    yield from yaml.parse(text, Loader=_Base)


def _build(
    loader: Any, node: Any, path: str, depth: int, limits: _Limits, lines: dict[str, int], dups: list[tuple[str, int]]
) -> Any:
    line = node.start_mark.line + 1
    limits.nodes += 1
    if depth > MAX_DEPTH:
        raise YamlProblem(f"nested deeper than {MAX_DEPTH} levels", line)
    if limits.nodes > MAX_NODES:
        raise YamlProblem(f"more than {MAX_NODES} values (aliases count each time)", line)
    if path:
        lines.setdefault(path, line)
    if isinstance(node, yaml.ScalarNode):
        if node.tag not in _PLAIN:
            raise YamlProblem("tags are not accepted", line)
        return _scalar(loader, node)
    if isinstance(node, yaml.SequenceNode):
        if node.tag != "tag:yaml.org,2002:seq":
            raise YamlProblem("tags are not accepted", line)
        return [
            _build(loader, item, f"{path}[{index}]", depth + 1, limits, lines, dups)
            for index, item in enumerate(node.value)
        ]
    if node.tag != "tag:yaml.org,2002:map":
        raise YamlProblem("tags are not accepted", line)
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise YamlProblem("a key must be a plain word", key_node.start_mark.line + 1)
        if key_node.tag == "tag:yaml.org,2002:merge":
            merged = _build(loader, value_node, "", depth + 1, limits, {}, dups)
            for mapping in merged if isinstance(merged, list) else [merged]:
                if isinstance(mapping, dict):
                    result = {**mapping, **result}
            continue
        key = str(_scalar(loader, key_node))
        if key in result and len(dups) < MAX_DUPLICATES:
            dups.append((key, key_node.start_mark.line + 1))
        below = f"{path}.{key}" if path else key
        result[key] = _build(loader, value_node, below, depth + 1, limits, lines, dups)
        lines[below] = key_node.start_mark.line + 1
    return result


def _scalar(loader: Any, node: Any) -> Any:
    """The plain value of a scalar; a number of more digits than any setting has stays text."""
    if len(node.value) > MAX_DIGITS and node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
        return node.value
    try:
        return loader.construct_object(node)
    except yaml.YAMLError:
        raise
    except Exception as error:  # PyYAML's constructors raise whatever their parsing stumbles over
        raise YamlProblem(
            f"not a value that YAML can hold ({type(error).__name__})", node.start_mark.line + 1
        ) from None
