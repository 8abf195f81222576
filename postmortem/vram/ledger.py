"""The card's memory at the moment of failure, as one sum that must add up. All sizes in MiB.

capacity = other processes + non-PyTorch of this process + allocated + reserved but unallocated + free +
unexplained. What the message does not say stays None; the remainder is shown, not hidden.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

# as sold, and the slices that MIG cuts (5, 10, 18, 20, 35, 40, 71)
_CARDS_GIB = (
    4,
    5,
    6,
    8,
    10,
    11,
    12,
    16,
    18,
    20,
    22,
    24,
    32,
    35,
    40,
    48,
    64,
    71,
    80,
    94,
    96,
    128,
    141,
    180,
    192,
    256,
    288,
)

_WHOLE_GIB = tuple(size for size in _CARDS_GIB if size not in (5, 18, 35, 71))


class Ledger(msgspec.Struct, frozen=True):
    """One balance of a card. `unexplained` is what the other lines leave of the capacity; never below zero.

    `overdrawn` is how much PyTorch holds beyond the capacity: the driver has moved it to system memory.
    """

    capacity: float | None
    other_processes: float | None
    non_pytorch: float | None
    allocated: float | None
    reserved_unallocated: float | None
    free: float | None
    unexplained: float | None
    shortage: float | None
    overdrawn: float | None
    source: str | None


def ledger(memory: Mapping[str, float | None]) -> Ledger:
    """Balance the sizes of an allocator message."""
    capacity = memory.get("gpu_total")
    allocated = memory.get("pytorch_allocated")
    reserved = memory.get("reserved_unallocated")
    free = memory.get("free")
    own = memory.get("process_in_use")
    other = memory.get("other_processes")
    tried = memory.get("tried_to_allocate")
    non_pytorch = None
    if own is not None and allocated is not None:
        non_pytorch = max(0.0, own - allocated - (reserved or 0.0))
    unexplained = overdrawn = None
    if capacity is not None and allocated is not None and free is not None:
        rest = capacity - free - allocated - (reserved or 0.0) - (non_pytorch or 0.0) - (other or 0.0)
        if rest < 0 and allocated + (reserved or 0.0) > capacity:
            overdrawn = allocated + (reserved or 0.0) - capacity
        unexplained = max(0.0, rest)
    shortage = tried - free + (overdrawn or 0.0) if tried is not None and free is not None else None
    return Ledger(
        capacity=capacity,
        other_processes=other,
        non_pytorch=non_pytorch,
        allocated=allocated,
        reserved_unallocated=reserved,
        free=free,
        unexplained=unexplained,
        shortage=max(0.0, shortage) if shortage is not None else None,
        overdrawn=overdrawn,
        source="message" if any(value is not None for value in memory.values()) else None,
    )


def card_class_gib(capacity_mib: float) -> int | None:
    """The size that a card is sold by, from the capacity that torch reports (11.99 GiB → 12)."""
    gib = capacity_mib / 1024
    for size in _CARDS_GIB:
        if size * 0.92 <= gib <= size * 1.005:
            return size
    return None


def next_card_gib(need_mib: float) -> int | None:
    """The smallest size that cards are sold by and that holds `need_mib`; None beyond the largest."""
    return next((size for size in _WHOLE_GIB if size * 1024 * 0.97 >= need_mib), None)
