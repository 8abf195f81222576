"""A generator of complete AI Toolkit logs whose truth is known; one seed always gives one log.

`make(seed)` draws a plan (family, capture, era, failure, data) and writes its log the way AI Toolkit, tqdm and
Python's buffers would, together with what a report must say of it.
"""

from __future__ import annotations

from tests.generate.plans import FAILURES, NO_MEMORY, draw
from tests.generate.run import write
from tests.generate.truth import MEMORY_KINDS, Case, Plan, Truth

__all__ = ["FAILURES", "MEMORY_KINDS", "NO_MEMORY", "Case", "Plan", "Truth", "draw", "make", "write"]


def make(seed: int) -> Case:
    """The generated log of `seed`."""
    return write(draw(seed))
