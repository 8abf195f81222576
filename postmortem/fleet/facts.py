"""What the runs of a group have in common that others have not: settings, as counts that anybody can check.

A fact is shown only where chance is a poor explanation of it (Fisher's exact test, one-sided) and where it does tell
the group apart: most of the group has it, and less than a third of the runs that did not fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from math import exp, fsum, lgamma
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
MAX_VALUES = 50
"""Of a column that are looked at: the commonest in the group."""


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


Values = Counter[Any]
"""How often each value of a column comes; what logs do not tell is not in it."""


def healthy_values(healthy: pd.DataFrame) -> dict[str, Values]:
    """What the runs that did not fail have, by column: worked out once for all groups."""
    return {column: _values(healthy, column) for column, _ in _asked()}


def facts_of(members: pd.DataFrame, healthy: Mapping[str, Values], changed: Collection[str] = ()) -> list[Fact]:
    """The facts of a group against the `healthy` runs, what the first fix changes (`changed`) first, then the
    sharpest."""
    if len(members) < MIN_RUNS:
        return []
    found = [
        (one, chance) for one, chance in _candidates(members, healthy, changed) if chance <= MAX_CHANCE and _sharp(one)
    ]
    order = [column for column, _ in _asked()]
    found.sort(key=lambda pair: (not pair[0].fixed, pair[1], order.index(pair[0].column)))
    return [one for one, _ in found[:MAX_FACTS]]


def _asked() -> Iterator[tuple[str, str]]:
    """Every column, and in which relation to a value the group may stand."""
    for columns, relation in ((SAME, "="), (AT_LEAST, ">="), (AT_MOST, "<=")):
        for column in columns:
            yield column, relation


def _sharp(fact: Fact) -> bool:
    return (
        fact.runs >= MIN_RUNS
        and fact.others_of >= MIN_OTHERS
        and fact.runs >= MIN_SHARE * fact.of
        and fact.others <= MAX_OTHERS * fact.others_of
    )


def _candidates(
    members: pd.DataFrame, healthy: Mapping[str, Values], changed: Collection[str]
) -> Iterator[tuple[Fact, float]]:
    for column, relation in _asked():
        mine, theirs = _values(members, column), healthy[column]
        of, others_of = mine.total(), theirs.total()
        # a setting that few of the logs tell says nothing of the group
        if not of or of < MIN_SHARE * len(members):
            continue
        best: tuple[Fact, float] | None = None
        for value in sorted(mine, key=lambda value: (-mine[value], str(value)))[:MAX_VALUES]:
            runs, others = _count(mine, relation, value), _count(theirs, relation, value)
            fact = Fact(column, relation, value, runs, of, others, others_of, column in changed)
            chance = _chance(runs, of, others, others_of)
            if _sharp(fact) and (best is None or chance < best[1]):
                best = (fact, chance)
        if best is not None:
            yield best


def _values(table: pd.DataFrame, column: str) -> Values:
    if column == "max_resolution":
        sides = table["resolutions"].dropna().str.rsplit(",", n=1).str[-1]
        return Counter(int(side) for side in sides.tolist() if side.isdecimal())
    return Counter(table[column].dropna().tolist())


def _count(values: Values, relation: str, value: Any) -> int:
    if relation == "=":
        return values[value]
    return sum(runs for one, runs in values.items() if (one >= value if relation == ">=" else one <= value))


@lru_cache(maxsize=4096)
def _chance(runs: int, of: int, others: int, others_of: int) -> float:
    """The probability that `runs` or more of the group have it, if having it had nothing to do with failing."""
    total, having = of + others_of, runs + others
    whole = _ways(total, of)
    tail = fsum(
        exp(_ways(having, hits) + _ways(total - having, of - hits) - whole)
        for hits in range(runs, min(of, having) + 1)
        if of - hits <= total - having
    )
    return min(1.0, tail)


def _ways(of: int, chosen: int) -> float:
    """The logarithm of the number of ways to choose."""
    return lgamma(of + 1) - lgamma(chosen + 1) - lgamma(of - chosen + 1)
