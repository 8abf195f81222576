"""Cut the targets into shares that a machine takes at once; the cuts depend on the targets alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from postmortem.fleet.find import Target

SHARE_BYTES = 64 << 20
SHARE_RUNS = 512
CUT_IN = 256
"""One name in so many ends a share: a run more or less moves the cuts near it, not all that follow."""


def shares(targets: Iterable[Target]) -> Iterator[list[Target]]:
    """`targets` in their order, in lists of up to `SHARE_BYTES` of logs (or one run) and `SHARE_RUNS` runs."""
    share: list[Target] = []
    size = 0
    for target in targets:
        if share and size + target.bytes > SHARE_BYTES:
            yield share
            share, size = [], 0
        share.append(target)
        size += target.bytes
        if len(share) >= SHARE_RUNS or _cuts(target.name):
            yield share
            share, size = [], 0
    if share:
        yield share


def _cuts(name: str) -> bool:
    return int.from_bytes(blake2b(name.encode("utf-8", "replace"), digest_size=4).digest(), "big") % CUT_IN == 0
