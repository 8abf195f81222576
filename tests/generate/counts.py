"""How many generated logs a test run looks at: a few in the daily run, thousands with `make laws N=2000`."""

from __future__ import annotations

import os

COUNT = int(os.environ.get("LAWS_N", "150"))
_BATCH = 25
SEEDS = [range(start, min(start + _BATCH, COUNT)) for start in range(0, COUNT, _BATCH)]
"""The seeds, in batches that the workers of a parallel run share out."""


def batch_name(seeds: range) -> str:
    """What a batch is called in the name of a test."""
    return f"{seeds.start}-{seeds.stop - 1}"
