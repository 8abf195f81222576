"""What a run died of, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from postmortem.model.run import Bucket
from postmortem.model.scanned import Notice
from postmortem.text import LogText


class Evidence(msgspec.Struct, frozen=True):
    """A claim's proof: the line in the log, what it proves, and its text.

    `pattern` is the entry that claims the line, None where the text is derived from a bar or a frame. `start` and `end`
    are as in `Place`, None where they are not known.
    """

    line: int
    what: str
    text: LogText
    source: str = ""
    pattern: str | None = None
    start: int | None = None
    end: int | None = None


class Clue(msgspec.Struct, frozen=True):
    """A line that only versions of a certain time print; `id` is its entry, or `code_line` or `wording`."""

    line: int
    id: str


class Dated(msgspec.Struct, frozen=True):
    """Which versions of a program the log can be of: from `from_` until before `until`, None where open.

    For AI Toolkit these are dates (UTC) with the commits of its main branch; for torch releases.
    """

    from_: str | None
    until: str | None
    clues: tuple[Clue, ...]
    from_commit: str | None = None
    until_commit: str | None = None
    span: tuple[int, int] | None = None


class RegressionFound(msgspec.Struct, frozen=True):
    """A known regression whose symptoms hold; `inside` if the log's version is surely one of its own."""

    id: str
    program: str
    inside: bool
    from_: str | None
    until: str | None
    from_commit: str | None
    until_commit: str | None
    source: str
    url: str


class FactorFound(msgspec.Struct, frozen=True):
    """A circumstance that contributed, by its knowledge id."""

    id: str
    values: Mapping[str, Any]


class BucketOdds(msgspec.Struct, frozen=True):
    """One bucket's batches an epoch and its share of all; `odds` that its batches are among those that fail."""

    bucket: Bucket
    batches: int
    share: float
    odds: float | None = None


class Skips(msgspec.Struct, frozen=True):
    """What the failed training steps say of the batch shapes. See diagnosis/odds.py.

    `best` are the shapes that explain them best, `odds` the probability of just these, `fitting` how many sets of
    shapes fit the number, `always` whether every whole epoch fits failing each time; `label` is the one shape that
    can be named for every failure, or None.
    """

    rows: tuple[BucketOdds, ...]
    failures: int
    steps: int
    best: tuple[BucketOdds, ...]
    share: float
    odds: float
    fits: bool
    fitting: int
    always: bool
    label: str | None


class Diagnosis(msgspec.Struct, frozen=True):
    """What the run died of, with confidence and proof. `class_` is None where the contract says null."""

    kind: str
    resource: str | None
    class_: str | None
    phase: str
    step: int | None
    signature: str | None
    confidence: str
    headline: str
    headline_values: Mapping[str, Any]
    evidence: tuple[Evidence, ...]
    factors: tuple[FactorFound, ...]
    memory_mib: Mapping[str, float | None]
    device: int | None
    family: str | None
    arch: str | None
    trainer: str | None
    outcome: str
    facts: Mapping[str, Any]
    warnings: tuple[Notice, ...] = ()
    suspects: tuple[BucketOdds, ...] = ()
    skips: Skips | None = None
    missing: tuple[str, ...] = ()
    dated: Dated | None = None
    torch: Dated | None = None
    regressions: tuple[RegressionFound, ...] = ()


class ConfigChange(msgspec.Struct, frozen=True):
    """One edit of the job config: the dotted path as it stands in the file, from which value to which."""

    path: str
    before: Any
    after: Any


class Range(msgspec.Struct, frozen=True):
    """A size in MiB: lowest, likely, highest."""

    low: float
    likely: float
    high: float


class Suggestion(msgspec.Struct, frozen=True):
    """One fix for this run, with why it stands where it stands.

    `saving` is what it takes off the peak of the phase that failed, `peak` what is left, `need` that with the CUDA
    context and slack, as the forecast's need; `fits` the verdict on that. None where no figure can be given.
    """

    rank: int
    id: str
    changes: tuple[ConfigChange, ...]
    why: str
    guide: str | None
    url: str | None
    source: str
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)
    saving: Range | None = None
    peak: Range | None = None
    need: Range | None = None
    fits: str | None = None


class Rung(msgspec.Struct, frozen=True):
    """One step of the retry ladder: this fix on top of those before it, and the peak and need left then (MiB)."""

    id: str
    changes: tuple[ConfigChange, ...]
    peak: Range
    need: Range
    fits: str


class NotHelping(msgspec.Struct, frozen=True):
    """A popular fix that cannot touch this failure, and why; `saving` in MiB where it is worked out."""

    id: str
    why: str
    saving: Range | None = None
