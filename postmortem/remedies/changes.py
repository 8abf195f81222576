"""A remedy's edits, worked out on the effective config: from which value to which, at which path of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from postmortem.knowledge.schema import Change
from postmortem.model import ConfigChange, JobConfig

_SIDES = (1536, 1280, 1024, 768, 512, 384, 256)
_BITS = re.compile(r"(\d+)")


def work_out(changes: tuple[Change, ...], config: JobConfig) -> tuple[ConfigChange, ...]:
    """The edits that change something in `config`; none where no config is known."""
    found: list[ConfigChange] = []
    for change in changes:
        for path in _paths(change.path, config):
            value = config.values.get(path)
            if change.given_only and (value is None or value.source == "default"):
                continue
            before = value.value if value else None
            after = _after(change, before, config)
            if after is not None and after != before:
                found.append(ConfigChange(path, before, after))
    return tuple(found)


def _paths(pattern: str, config: JobConfig) -> Iterator[str]:
    if "[]" not in pattern:
        if pattern in config.values or config.known:
            yield pattern
        return
    head, tail = pattern.split("[]", 1)
    expression = re.compile(re.escape(head) + r"\[\d+\]" + re.escape(tail))
    yield from (path for path in config.values if expression.fullmatch(path))


def _after(change: Change, before: Any, config: JobConfig) -> Any:
    """The new value, or None when the operation does not apply to the old one."""
    if change.op == "set":
        return change.set if before != change.set and not (before is None and change.set is False) else None
    if change.op == "drop_largest":
        sides = before if isinstance(before, list) else []
        rest = [side for side in sides if side != max(sides)] if len(set(sides)) > 1 else []
        return rest or None
    if change.op == "lower_bits":
        return _lower_bits(before)
    if change.op == "multiply_by_batch_cut":
        batch = config.get("train.batch_size")
        cut = batch // max(1, batch // 2) if isinstance(batch, int) and batch > 1 else None
        return (before if isinstance(before, int) and before > 0 else 1) * cut if cut else None
    if isinstance(before, bool) or not isinstance(before, (int, float)):
        return None
    if change.op == "halve":
        after = max(change.floor, int(before) // 2)
    elif change.op == "double":
        after = int(before) * 2
    elif change.op == "scale_side":
        after = next((side for side in _SIDES if side < before), int(before))
        after = max(after, int(before) // 2 // 64 * 64)
    else:
        # 8n+1 suits LTX (8n+1) and Wan (4n+1) alike
        after = max(1, (int(before) - 1) // 16 * 8 + 1)
    return after if after < before or change.op == "double" else None


def _lower_bits(before: Any) -> str | None:
    text = str(before or "").split("|")[0]
    bits = _BITS.search(text)
    if not bits:
        return None
    return "uint4" if int(bits[1]) > 4 else "uint3"
