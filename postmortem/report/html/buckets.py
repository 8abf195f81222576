"""The batch shapes as a table with bars: files, batches an epoch, their share, and the odds of being the ones."""

from __future__ import annotations

import msgspec

from postmortem.report.document import Report
from postmortem.report.html.geometry import percent
from postmortem.text import LogText

MOST = 60


class Shape(msgspec.Struct, frozen=True):
    """One row; `suspect` where the failed steps point to it, `bar` its share in percent of the largest share."""

    dataset: LogText
    bucket: str
    resolution: int | None
    files: int
    batches: int | None
    share: str | None
    odds: str | None
    suspect: bool
    bar: float


class Shapes(msgspec.Struct, frozen=True):
    """The table, and which of its columns hold anything."""

    rows: list[Shape]
    left_out: int
    datasets: bool
    weighed: bool
    rebuilt: bool


def shapes(report: Report) -> Shapes | None:
    """The table, the suspects first and then the largest; None where no batch shape is known."""
    if not report.buckets:
        return None
    named = {item.bucket for item in report.suspects} | set(report.skips.buckets if report.skips else ())
    largest = max((item.share or 0.0 for item in report.buckets), default=0.0)
    rows = [
        Shape(
            dataset=item.dataset,
            bucket=item.bucket,
            resolution=item.resolution,
            files=item.files,
            batches=item.batches,
            share=None if item.share is None else _in_percent(item.share),
            odds=None if item.odds is None else _in_percent(item.odds),
            suspect=item.bucket in named,
            bar=percent(item.share or 0.0, largest),
        )
        for item in sorted(report.buckets, key=lambda item: (item.bucket not in named, -_volume(item.bucket)))
    ]
    return Shapes(
        rows=rows[:MOST],
        left_out=max(0, len(rows) - MOST),
        datasets=len({row.dataset for row in rows}) > 1,
        weighed=any(row.odds is not None for row in rows),
        rebuilt=any(item.source == "dataset" for item in report.buckets),
    )


def _volume(bucket: str) -> int:
    volume = 1
    for side in bucket.split("x"):
        volume *= int(side) if side.isdecimal() else 1
    return volume


def _in_percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
