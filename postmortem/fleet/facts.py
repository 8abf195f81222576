"""What the runs of a group have in common that others have not: settings, as counts that anybody can check.

A fact is shown only where chance is a poor explanation of it (Fisher's exact test, one-sided) and where it does tell
the group apart: most of the group has it, and less than a third of the runs that did not fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from math import exp, lgamma
from typing import Any

import msgspec
import pandas as pd

SAME = (
    "gradient_checkpointing",
    "quantization",
    "low_vram",
    "layer_offloading",
    "text_encoder",
    "latents_on_disk",
    "optimizer",
    "ema",
    "sampling",
    "family",
    "trainer",
)
"""Columns of which a group may share a value."""
AT_LEAST = ("batch_size", "max_resolution", "num_frames", "preview_side", "rank")
AT_MOST = ("card_gib",)
"""Columns of which a group may share a side: so much, or more (or less)."""
MIN_RUNS = 3
"""In fewer runs nothing is shared: it may be one user's habit."""
MIN_OTHERS = 10
"""With fewer runs to compare with, nothing can be told apart."""
MIN_SHARE = 0.6
MAX_OTHERS = 1 / 3
MAX_CHANCE = 0.001
"""That so many of the group have it by chance. Small, because many settings are looked at."""
MAX_FACTS = 3


class Fact(msgspec.Struct, frozen=True):
    """A value that a group shares (`relation` ``=``), or a side of it (``>=``, ``<=``): in `runs` of the `of` runs
    whose logs tell, and in `others` of `others_of` that did not fail. `fixed` if the group's first fix changes it."""

    column: str
    relation: str
    value: Any
    runs: int
    of: int
    others: int
    others_of: int
    fixed: bool = False


def facts_of(members: pd.DataFrame, healthy: pd.DataFrame, changed: Collection[str] = ()) -> list[Fact]:
    """The facts of a group against the `healthy` runs, what the first fix changes (`changed`) first, then the
    sharpest."""
    found = [
        (one, chance) for one, chance in _candidates(members, healthy, changed) if chance <= MAX_CHANCE and _sharp(one)
    ]
    found.sort(key=lambda pair: (not pair[0].fixed, pair[1], _order(pair[0].column)))
    return [one for one, _ in found[:MAX_FACTS]]


def _sharp(fact: Fact) -> bool:
    return (
        fact.runs >= MIN_RUNS
        and fact.others_of >= MIN_OTHERS
        and fact.runs >= MIN_SHARE * fact.of
        and fact.others <= MAX_OTHERS * fact.others_of
    )


def _candidates(members: pd.DataFrame, healthy: pd.DataFrame, changed: Collection[str]) -> Iterator[tuple[Fact, float]]:
    for column, relations in (*((one, "=") for one in SAME), *((one, ">=") for one in AT_LEAST), ("card_gib", "<=")):
        mine, theirs = _values(members, column), _values(healthy, column)
        # a setting that few of the logs tell says nothing of the group
        if mine.empty or len(mine) < MIN_SHARE * len(members):
            continue
        best: tuple[Fact, float] | None = None
        for value in sorted(mine.unique(), key=str)[:50]:
            runs, others = _count(mine, relations, value), _count(theirs, relations, value)
            fact = Fact(column, relations, _plain(value), runs, len(mine), others, len(theirs), column in changed)
            chance = _chance(runs, len(mine), others, len(theirs))
            if _sharp(fact) and (best is None or chance < best[1]):
                best = (fact, chance)
        if best is not None:
            yield best


def _values(table: pd.DataFrame, column: str) -> pd.Series[Any]:
    if column == "max_resolution":
        sides = table["resolutions"].dropna().str.rsplit(",", n=1).str[-1]
        numbers: pd.Series[Any] = pd.to_numeric(sides, errors="coerce").dropna().astype("int64")
        return numbers
    found: pd.Series[Any] = table[column].dropna()
    return found


def _count(values: pd.Series[Any], relation: str, value: Any) -> int:
    held = values == value if relation == "=" else values >= value if relation == ">=" else values <= value
    return int(held.sum())


@lru_cache(maxsize=4096)
def _chance(runs: int, of: int, others: int, others_of: int) -> float:
    """The probability that `runs` or more of the group have it, if having it had nothing to do with failing."""
    total, having = of + others_of, runs + others
    whole = _ways(total, of)
    tail = sum(
        exp(_ways(having, hits) + _ways(total - having, of - hits) - whole)
        for hits in range(runs, min(of, having) + 1)
        if of - hits <= total - having
    )
    return min(1.0, tail)


def _ways(of: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)


def _order(column: str) -> int:
    return (*SAME, *AT_LEAST, *AT_MOST).index(column)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
