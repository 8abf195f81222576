"""The same failure over many runs as one group: how many, how long, what they share, what helped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pandas as pd

from postmortem.fleet.row import Row

FACTS = (
    "family",
    "card_gib",
    "gradient_checkpointing",
    "quantization",
    "low_vram",
    "layer_offloading",
    "text_encoder",
    "latents_on_disk",
    "batch_size",
    "resolutions",
    "num_frames",
    "optimizer",
    "rank",
    "ema",
    "sampling",
)
"""Columns whose values a group may share."""
MIN_SHARE = 0.6
"""Of a group's runs must have a value for it to be a fact of the group."""
MIN_LIFT = 1.25
"""So many times more often than among the runs that did not fail."""
MAX_FACTS = 3


class Fact(msgspec.Struct, frozen=True):
    """A value that a group shares: in so many of its runs, and in so many of those that did not fail."""

    column: str
    value: Any
    runs: int
    of: int
    others: int
    others_of: int


class Group(msgspec.Struct, frozen=True):
    """One failure: `runs` with it, `hours` that they took (None where no log tells), the fix that ranks first most
    often, and of the retries that had it how many got past the failure."""

    fingerprint: str
    kind: str
    class_: str | None
    phase: str | None
    resource: str | None
    signature: str | None
    runs: int
    hours: float | None
    families: list[str]
    facts: list[Fact]
    fix: str | None
    tried: int
    helped: int
    example: str


def groups_of(table: pd.DataFrame, rows: Sequence[Row]) -> list[Group]:
    """The groups among the analysed rows, most runs first, then most hours; duplicates count once."""
    counted = table[(table["status"] == "analysed") & table["duplicate_of"].isna()]
    healthy = counted[counted["kind"] == "none"]
    retries = _retries(rows)
    found: list[Group] = []
    for fingerprint, members in counted[counted["fingerprint"].notna()].groupby("fingerprint", sort=True):
        first = members.iloc[0]
        fixes = members["first_fix"].dropna().value_counts()
        fix = _most_common(fixes)
        hours = members["hours"].sum(min_count=1)
        tried, helped = retries.get((str(fingerprint), fix or ""), (0, 0))
        found.append(
            Group(
                fingerprint=str(fingerprint),
                kind=str(first["kind"]),
                class_=_plain(first["class"]),
                phase=_plain(first["phase"]),
                resource=_plain(first["resource"]),
                signature=_plain(_most_common(members["signature"].dropna().value_counts())),
                runs=len(members),
                hours=None if pd.isna(hours) else round(float(hours), 2),
                families=[str(name) for name in members["family"].dropna().value_counts(sort=True).index[:4]],
                facts=facts_of(members, healthy),
                fix=fix,
                tried=tried,
                helped=helped,
                example=str(first["path"]),
            )
        )
    return sorted(found, key=lambda group: (-group.runs, -(group.hours or 0), group.fingerprint))


def facts_of(members: pd.DataFrame, healthy: pd.DataFrame) -> list[Fact]:
    """The values that set the group apart from the runs that did not fail, the sharpest first."""
    found: list[tuple[float, Fact]] = []
    for column in FACTS:
        known = members[column].dropna()
        if known.empty or len(known) < MIN_SHARE * len(members):
            continue
        counts = known.value_counts()
        value = _most_common(counts)
        runs = int(counts[value])
        others = healthy[column].dropna()
        other_runs = int((others == value).sum())
        share = runs / len(known)
        # one more of each, so that a handful of healthy runs proves little
        lift = share / ((other_runs + 1) / (len(others) + 2))
        if share >= MIN_SHARE and lift >= MIN_LIFT and len(others):
            fact = Fact(column, _plain(value), runs, len(known), other_runs, len(others))
            found.append((lift, fact))
    found.sort(key=lambda pair: (-pair[0], FACTS.index(pair[1].column)))
    return [fact for _, fact in found[:MAX_FACTS]]


def _retries(rows: Sequence[Row]) -> dict[tuple[str, str], tuple[int, int]]:
    """By fingerprint and fix: how many retries had the fix, and how many of those got past the failure."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    for row in rows:
        for retry in row.retries if row.duplicate_of is None else ():
            if retry.applied:
                tried, helped = counts.get((retry.fingerprint, retry.fix), (0, 0))
                counts[retry.fingerprint, retry.fix] = (tried + 1, helped + retry.passed)
    return counts


def _most_common(counts: pd.Series[Any]) -> Any:
    """The value with the highest count; of equals the first by name, whatever order the rows came in."""
    if counts.empty:
        return None
    return min(counts[counts == counts.max()].index, key=str)


def _plain(value: Any) -> Any:
    """A value of pandas as one of Python's."""
    if value is None or value is pd.NA:
        return None
    return value.item() if hasattr(value, "item") else value
