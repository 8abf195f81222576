"""Find the config keys that `toolkit/config_modules.py` reads, with their defaults where they are plain values."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import msgspec

CONFIG_MODULES = "toolkit/config_modules.py"


class _Unknown:
    """The default is worked out, not written down."""

    def __repr__(self) -> str:
        return "worked out"


UNKNOWN = _Unknown()


class ConfigKey(msgspec.Struct, frozen=True):
    """One `kwargs.get('key', default)` of a config class; `default` is `UNKNOWN` where it is no plain value."""

    owner: str
    key: str
    default: Any
    line: int


def config_keys(tree: ast.Module) -> Iterator[ConfigKey]:
    """Every key that a class of the module takes out of `kwargs`, the first default of each."""
    for owner in tree.body:
        if not isinstance(owner, ast.ClassDef):
            continue
        seen: set[str] = set()
        calls = [node for node in ast.walk(owner) if isinstance(node, ast.Call)]
        for node in sorted(calls, key=lambda call: call.lineno):
            if not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("get", "pop") or not isinstance(node.func.value, ast.Name):
                continue
            if node.func.value.id != "kwargs" or not node.args:
                continue
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value not in seen:
                seen.add(first.value)
                yield ConfigKey(owner.name, first.value, _default(node), node.lineno)


def _default(node: ast.Call) -> Any:
    value = node.args[1] if len(node.args) > 1 else next((k.value for k in node.keywords if k.arg == "default"), None)
    if value is None:
        return None
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return UNKNOWN
