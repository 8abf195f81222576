"""What the pictures show, as numbers: bars by failure, model and card, and the steps at which runs died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from postmortem.fleet import words
from postmortem.fleet.row import Row
from postmortem.report.texts import Texts

MAX_BARS = 12
STEPS = (0, 10, 50, 100, 250, 500, 1000, 2000, 5000)
"""Where the bins of the histogram begin; uneven, because most runs die early. Ten good steps prove that a job steps."""


class Bar(msgspec.Struct, frozen=True):
    """One bar: its `part` of `whole`, both out of `most`, and the whole in words."""

    label: str
    part: int
    whole: int
    most: int
    says: str


class Bin(msgspec.Struct, frozen=True):
    """One column of the histogram."""

    label: str
    number: int
    most: int
    says: str


class Steps(msgspec.Struct, frozen=True):
    """The histogram, and how many runs it cannot show."""

    bins: list[Bin]
    others: int


def failed(row: Row) -> bool:
    """Whether something failed in the run."""
    return row.fingerprint is not None and row.kind != "unknown"


def by_failure(rows: Sequence[Row], texts: Texts) -> list[Bar]:
    """How many runs died of what."""
    counts = Counter(words.verdict(row, texts) for row in rows if row.fingerprint is not None)
    most = max(counts.values(), default=0)
    return [
        Bar(label, number, number, most, texts("fleet_page.chart.count", {"count": number}))
        for label, number in _largest(counts)
    ]


def by_card(rows: Sequence[Row], texts: Texts) -> list[Bar]:
    """How many runs failed on cards of each size. A log
    tells the card only where a message came that names its size: of how many runs is not known."""
    known = [row for row in rows if failed(row) and row.card_gib is not None]
    counts = Counter(words.value("card_gib", row.card_gib, texts) for row in known)
    most = max(counts.values(), default=0)
    return [
        Bar(label, number, number, most, texts("fleet_page.chart.count", {"count": number}))
        for label, number in _largest(counts)
    ]


def by_family(rows: Sequence[Row], texts: Texts) -> list[Bar]:
    """How many runs of each model failed, of how many."""
    whole: Counter[str] = Counter()
    part: Counter[str] = Counter()
    for row in rows:
        name = row.family or texts("fleet.unknown")
        whole[name] += 1
        part[name] += failed(row)
    most = max(whole.values(), default=0)
    return [
        Bar(name, part[name], number, most, texts("fleet_page.chart.of", {"failed": part[name], "runs": number}))
        for name, number in _largest(whole)
        if part[name]
    ]


def steps(rows: Sequence[Row], texts: Texts) -> Steps:
    """At which training steps runs died."""
    dead = [row for row in rows if failed(row)]
    known = [
        row.step for row in dead if row.step is not None and row.phase == "training_step" and row.kind != "not_memory"
    ]
    numbers = [0] * len(STEPS)
    for step in known:
        numbers[max(index for index, start in enumerate(STEPS) if start <= max(0, step))] += 1
    last = max((index for index, number in enumerate(numbers) if number), default=-1)
    most = max(numbers, default=0)
    bins = []
    for index, (start, number) in enumerate(zip(STEPS[: last + 1], numbers, strict=False)):
        values = {"from": start, "count": number}
        if index + 1 == len(STEPS):
            says, label = texts("fleet_page.chart.bin_open", values), f"{start}+"
        else:
            end = STEPS[index + 1] - 1
            says, label = texts("fleet_page.chart.bin", {**values, "to": end}), f"{start}–{end}"
        bins.append(Bin(label, number, most, says))
    return Steps(bins, len(dead) - len(known))


def _largest(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_BARS]
