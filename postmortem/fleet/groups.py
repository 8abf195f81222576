"""The same failure over many runs as one group: how many, how long, what they share, what helped; and the fixes over
all groups, by what they would save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, Literal

import msgspec
import pandas as pd

from postmortem.fleet.facts import Fact, Values, facts_of, healthy_values
from postmortem.fleet.fingerprint import other_trainer
from postmortem.fleet.row import Row
from postmortem.knowledge.schema import Knowledge

Rank = Literal["runs", "hours"]

COLUMNS = {
    "train.gradient_checkpointing": "gradient_checkpointing",
    "train.batch_size": "batch_size",
    "datasets[].batch_size": "batch_size",
    "datasets[].resolution": "max_resolution",
    "datasets[].num_frames": "num_frames",
    "datasets[].cache_latents_to_disk": "latents_on_disk",
    "model.quantize": "quantization",
    "model.qtype": "quantization",
    "model.low_vram": "low_vram",
    "model.layer_offloading": "layer_offloading",
    "train.cache_text_embeddings": "text_encoder",
    "train.unload_text_encoder": "text_encoder",
    "train.optimizer": "optimizer",
    "network.linear": "rank",
    "train.ema_config.use_ema": "ema",
    "train.disable_sampling": "sampling",
    "sample.width": "preview_side",
    "sample.height": "preview_side",
}
"""The column that tells a setting."""


class Group(msgspec.Struct, frozen=True, rename={"class_": "class"}):
    """One failure: `runs` with it, GPU `hours` lost (of the `timed` runs whose logs tell the time, None if none does),
    what they share against the runs that did not fail, the fix that ranks first most often (in `fix_runs`), and of the
    retries that had it how many got past the failure. `trainer` where it is another one than AI Toolkit. `families`,
    most runs first; `example` is the run to look at."""

    fingerprint: str
    kind: str
    trainer: str | None
    class_: str | None
    phase: str | None
    resource: str | None
    cause: str | None
    exception: str | None
    place: str | None
    runs: int
    hours: float | None
    timed: int
    families: list[str]
    facts: list[Fact]
    fix: str | None
    fix_runs: int
    tried: int
    helped: int
    example: str
    example_path: str


class FixTotal(msgspec.Struct, frozen=True):
    """A fix over all groups: it ranks first in `runs` runs of `groups` groups, which lost `hours` GPU hours (of the
    `timed` runs whose logs tell the time)."""

    fix: str
    runs: int
    hours: float | None
    timed: int
    groups: int
    tried: int
    helped: int


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that groups and totals count: analysed, and each content once."""
    kept: pd.DataFrame = table[(table["status"] == "analysed") & table["duplicate_of"].isna()]
    return kept


def groups_of(
    shown: pd.DataFrame, rows: Sequence[Row], knowledge: Knowledge, every: pd.DataFrame | None = None, by: Rank = "runs"
) -> list[Group]:
    """The groups among the rows of `shown` (`rows` are the same), the heaviest first. They are compared with those runs
    of `every` that did not fail."""
    members = counted(shown)
    compared = counted(every if every is not None else shown)
    healthy = healthy_values(compared[compared["kind"] == "none"])
    retries, changed = _retries(rows), _changed(knowledge)
    found = [
        _group(str(name), one, healthy, retries, changed)
        for name, one in members[members["fingerprint"].notna()].groupby("fingerprint", sort=True)
    ]
    return sorted(found, key=lambda group: (*_weight(group, by), group.fingerprint))


def fixes_of(shown: pd.DataFrame, rows: Sequence[Row], by: Rank = "runs") -> list[FixTotal]:
    """Every fix that ranks first in some run, by the runs that it addresses, or by the hours that these lost."""
    failed = counted(shown)
    failed = failed[failed["fingerprint"].notna() & failed["first_fix"].notna()]
    helped: dict[str, tuple[int, int]] = {}
    for (_, fix), (tried, passed) in _retries(rows).items():
        before = helped.get(fix, (0, 0))
        helped[fix] = (before[0] + tried, before[1] + passed)
    found = [
        FixTotal(
            fix=str(name),
            runs=len(one),
            hours=_hours(one),
            timed=int(one["hours_lost"].notna().sum()),
            groups=int(one["fingerprint"].nunique()),
            tried=helped.get(str(name), (0, 0))[0],
            helped=helped.get(str(name), (0, 0))[1],
        )
        for name, one in failed.groupby("first_fix", sort=True)
    ]
    return sorted(found, key=lambda fix: (*_weight(fix, by), fix.fix))


def _group(
    name: str,
    members: pd.DataFrame,
    healthy: Mapping[str, Values],
    retries: dict[tuple[str, str], tuple[int, int]],
    changed: dict[str, frozenset[str]],
) -> Group:
    first = members.iloc[0]
    fixes = members["first_fix"].dropna().value_counts()
    fix = _most_common(fixes)
    tried, helped = retries.get((name, fix or ""), (0, 0))
    families = members["family"].dropna().value_counts()
    return Group(
        fingerprint=name,
        kind=str(first["kind"]),
        trainer=other_trainer(_plain(first["trainer"])),
        class_=_most_common(members["class"].dropna().value_counts()),
        phase=_most_common(members["phase"].dropna().value_counts()),
        resource=_plain(first["resource"]),
        cause=_plain(first["cause"]),
        exception=_plain(first["exception"]),
        place=_plain(first["place"]),
        runs=len(members),
        hours=_hours(members),
        timed=int(members["hours_lost"].notna().sum()),
        families=[str(one) for one in sorted(families.index, key=lambda one: (-int(families[one]), str(one)))],
        facts=facts_of(members, healthy, changed.get(fix or "", frozenset())),
        fix=fix,
        fix_runs=int(fixes[fix]) if fix is not None else 0,
        tried=tried,
        helped=helped,
        example=str(first["run"]),
        example_path=str(first["path"]),
    )


def _weight(one: Group | FixTotal, by: Rank) -> tuple[float, float]:
    runs, hours = -one.runs, -(one.hours or 0.0)
    return (hours, runs) if by == "hours" else (runs, hours)


def _hours(members: pd.DataFrame) -> float | None:
    hours = members["hours_lost"].dropna()
    return round(fsum(hours), 4) if len(hours) else None


def _changed(knowledge: Knowledge) -> dict[str, frozenset[str]]:
    """By fix: the columns that its changes touch."""
    return {
        remedy.id: frozenset(COLUMNS[change.path] for change in remedy.changes if change.path in COLUMNS)
        for remedy in knowledge.remedies
    }


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
