"""What was found: the failure and its evidence, the memory it died of, the forecast, and what helps."""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.text import LogText, Words


class EvidenceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One log line that proves something; `source` is the file in the run folder.

    `pattern` is the entry of the knowledge base that claims the line and `pattern_version` a hash of what it claims,
    null where `text` is derived from a bar or a frame. `start` and `end` are bytes of the log's text, see `Place`.
    """

    line: int
    what: str
    says: str
    text: LogText
    source: LogText
    pattern: str | None = None
    pattern_version: str | None = None
    start: int | None = None
    end: int | None = None


class FactorItem(msgspec.Struct, frozen=True, kw_only=True):
    """A circumstance that contributed."""

    id: str
    text: Words


class Failure(msgspec.Struct, frozen=True, kw_only=True, rename={"class_": "class"}):
    """The verdict. `class` is null where kind or phase leave it open."""

    kind: str
    resource: str | None
    class_: str | None
    phase: str
    step: int | None
    signature: str | None
    confidence: str
    headline: Words
    evidence: list[EvidenceItem]
    factors: list[FactorItem]
    error: LogText | None


class RegressionItem(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A known regression whose symptoms this failure shows; `standing` is `inside` where the log's version is surely
    one of its own, `possible` where it may be."""

    id: str
    program: str
    standing: str
    from_: str | None
    until: str | None
    from_commit: str | None
    until_commit: str | None
    what: str
    do: str
    source: str
    url: str


class OomEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One OOM: skipped or swallowed (`caught`), or fatal. `line` is null where the log does not hold it."""

    line: int | None
    step: int | None
    phase: str
    caught: bool
    signature: str
    bucket: str | None
    start: int | None = None
    end: int | None = None


class SuspectItem(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket that may be the one: its batches an epoch and their share of all."""

    bucket: str
    files: int
    batches: int
    share: float


class SkipsPart(msgspec.Struct, frozen=True, kw_only=True):
    """What the failed training steps say: how many of how many, whose batches probably, what was not learnt.

    `buckets` are the shapes that explain them best, `share` theirs of all batches, `odds` of just these shapes,
    `fits` whether the number fits that share. `files` of these shapes were probably never learnt, `files_share` of all.
    """

    failed: int
    steps: int
    buckets: list[str]
    share: float | None
    odds: float | None
    fits: bool | None
    files: int | None
    files_share: float | None
    says: list[Words]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of the event that the verdict stands on, MiB; null where the log does not say."""

    tried_to_allocate: float | None
    gpu_total: float | None
    free: float | None
    process_in_use: float | None
    pytorch_allocated: float | None
    reserved_unallocated: float | None
    other_processes: float | None
    device: int | None


class LedgerPart(msgspec.Struct, frozen=True, kw_only=True):
    """The card's memory at the failure, MiB: a sum whose remainder is `unexplained`.

    `overdrawn` is what PyTorch holds beyond the capacity, null where it does not: capacity + overdrawn is then the sum.
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


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted size, MiB: between `low` and `high`, most likely `likely`."""

    low: float
    likely: float
    high: float


class ForecastPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the forecast, MiB. `provenance`: measured, derived, counted, assumed, observed."""

    id: str
    low: float
    likely: float
    high: float
    provenance: str


class ForecastItem(msgspec.Struct, frozen=True, kw_only=True):
    """What the phase needs at most, MiB: `peak` is what PyTorch allocates, `need` adds CUDA context and slack.

    `usable` is the card less other processes, null where the card is not known; `anchor` is what this run was seen
    to need beyond what its config explains (a part of its own).
    """

    phase: str
    model: str
    peak: Span
    need: Span
    usable: float | None
    shortage: float | None
    fits: str
    parts: list[ForecastPart]
    anchor: float | None


class MissingItem(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no forecast."""

    id: str
    text: Words


class ChangeItem(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One edit of the config."""

    path: str
    from_: Any
    to: Any


class Guide(msgspec.Struct, frozen=True, kw_only=True):
    """Where the advice stands."""

    section: str | None
    url: str | None
    source: str


class RemedyItem(msgspec.Struct, frozen=True, kw_only=True):
    """One fix, best first."""

    rank: int
    id: str
    title: str
    changes: list[ChangeItem]
    why: Words
    saving: Span | None
    peak: Span | None
    need: Span | None
    fits: str | None
    cost: str
    ui: str
    guide: Guide
    evidence: list[int]


class UselessItem(msgspec.Struct, frozen=True, kw_only=True):
    """A popular fix that cannot touch this failure."""

    id: str
    name: str
    why: Words
    saving: Span | None


class RungItem(msgspec.Struct, frozen=True, kw_only=True):
    """One retry of the ladder: this fix on top of those before it, the peak and need left then (MiB), the verdict."""

    id: str
    title: str
    changes: list[ChangeItem]
    peak: Span
    need: Span
    fits: str


class CaptureItem(msgspec.Struct, frozen=True, kw_only=True):
    """What to capture next time, because this log did not hold it."""

    id: str
    text: str
