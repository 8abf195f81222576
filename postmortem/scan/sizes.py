"""Sizes as allocators print them, in MiB. The field expressions come with the entry that claimed the line."""

from __future__ import annotations

from typing import Any

_MIB = {
    "bytes": 1 / 1048576,
    "byte": 1 / 1048576,
    "b": 1 / 1048576,
    "kib": 1 / 1024,
    "kb": 1 / 1024,
    "mib": 1.0,
    "mb": 1.0,
    "gib": 1024.0,
    "gb": 1024.0,
    "tib": 1048576.0,
    "tb": 1048576.0,
}
_ABSURD_MIB = 64 * 1048576.0
"""More than any machine has (64 TiB): an unsigned counter that went below zero, as torch prints at times."""


Sizes = tuple[dict[str, "float | None"], tuple[float, ...], "int | None"]
"""Sizes by name, those of other processes, the device."""
NO_SIZES: Sizes = ({}, (), None)


def to_mib(value: str, unit: str) -> float | None:
    """`value` in `unit` as MiB; None when it is no possible size. torch's GB and GiB are both powers of two."""
    factor = _MIB.get(unit.lower())
    if factor is None or len(value) > 24:
        return None
    try:
        size = float(value) * factor
    except ValueError:
        return None
    return size if 0 <= size < _ABSURD_MIB else None


def read_sizes(fields: dict[str, Any], text: str) -> Sizes:
    """All sizes that `fields` find in `text`, the processes named beside this one, and the device number.

    A size that is printed but impossible (an underflowed counter) is kept as None, so that a report can
    say so; one that is not printed is absent.
    """
    sizes: dict[str, float | None] = {}
    others: list[float] = []
    device: int | None = None
    for name, expression in fields.items():
        if name == "other_process":
            for found in expression.finditer(text):
                size = to_mib(found["value"], found["unit"])
                if size is not None and len(others) < 64:
                    others.append(size)
            continue
        found = expression.search(text)
        if not found:
            continue
        if name == "device":
            device = int(found["value"][:4])
            continue
        groups = found.groupdict()
        sizes[name] = to_mib(found["value"], groups.get("unit") or "bytes")
    return sizes, tuple(others), device
