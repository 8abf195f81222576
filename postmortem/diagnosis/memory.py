"""The sizes of the event that the verdict stands on, brought to the contract's names. MiB throughout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum

from postmortem.model import Event, Notice, Oom

KEYS = (
    "tried_to_allocate",
    "gpu_total",
    "free",
    "process_in_use",
    "pytorch_allocated",
    "reserved_unallocated",
    "other_processes",
)
_ASYNC: dict[str | None, str] = {
    "async_allocated": "pytorch_allocated",
    "async_requested": "tried_to_allocate",
    "async_limit": "gpu_total",
    "async_free": "free",
}
_TABLE_LINES = 12
_OWN_SLACK_MIB = 64.0


def sizes_of(oom: Oom | None, notes: Sequence[Event]) -> tuple[dict[str, float | None], tuple[Notice, ...]]:
    """The `memory` block of the report, and warnings about impossible numbers."""
    memory: dict[str, float | None] = dict.fromkeys(KEYS)
    if oom is None:
        return memory, ()
    found = {**oom.sizes_mib, **_table(oom, notes)}
    for key in KEYS:
        memory[key] = found.get(key)
    allocated = memory["pytorch_allocated"]
    total_reserved = found.get("reserved_total")
    if memory["reserved_unallocated"] is None and total_reserved is not None and allocated is not None:
        memory["reserved_unallocated"] = max(0.0, total_reserved - allocated)
    if "other_allocations" in found:
        memory["other_processes"] = found["other_allocations"]
    own = memory["process_in_use"]
    if own is not None and allocated is not None and own < allocated:
        memory["process_in_use"] = None  # torch prints 0 bytes where the driver does not tell (WSL, MIG)
    _processes(memory, oom.others_mib)
    impossible = sorted(key for key, value in found.items() if value is None)
    warnings = tuple(Notice("impossible_size", oom.place.line, {"name": name}) for name in impossible)
    return memory, warnings


def _table(oom: Oom, notes: Sequence[Event]) -> Mapping[str, float | None]:
    """cudaMallocAsync prints its numbers as a table below the message."""
    found: dict[str, float | None] = {}
    for note in notes:
        name = _ASYNC.get(note.event)
        if name and oom.place.line <= note.place.line <= oom.place.line + _TABLE_LINES:
            found.setdefault(name, note.sizes_mib.get("value"))
    return found


def _processes(memory: dict[str, float | None], others: Iterable[float]) -> None:
    """`Process N has …`: other processes, unless the only one listed is the run itself.

    In a container torch cannot tell its own entry by its pid: the one process that holds at least what
    PyTorch has allocated, and that together with the free memory fills the card, is the run.
    """
    listed = list(others)
    if not listed:
        return
    if memory["process_in_use"] is None:
        held = (memory["pytorch_allocated"] or 0.0) + (memory["reserved_unallocated"] or 0.0)
        candidates = [size for size in listed if size + _OWN_SLACK_MIB >= held > 0]
        if candidates:
            own = min(candidates)
            total, free = memory["gpu_total"], memory["free"]
            fills = total is None or free is None or abs(total - free - fsum(listed)) <= 0.25 * total
            if fills or len(listed) > 1:
                memory["process_in_use"] = own
                listed.remove(own)
    if listed:
        memory["other_processes"] = fsum(listed)
