"""The report as a typed document: what the JSON holds, and what every renderer prints.

Field names are the contract with scripts and tickets. Sizes are MiB. Text out of a log keeps its own type
until a renderer's encoder makes it harmless for its sink.
"""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.text import LogText, Words, printable

SCHEMA_VERSION = "1.0"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Tool(_Part, frozen=True, kw_only=True):
    """The program that made the report."""

    name: str
    version: str
    patterns: str


class OptionsPart(_Part, frozen=True, kw_only=True):
    """What the user asked for, so that the report can be made again; null where the option was not given.

    `ticket`: made with a log excerpt beside it, and what is private in that is hidden here too.
    """

    attempt: int | None
    gpu_gib: float | None
    redacted: bool
    ticket: bool


class BesidePart(_Part, frozen=True, kw_only=True):
    """What was read besides the log and `config.sources`: without it the same log gives another report."""

    configs: list[LogText]
    database: LogText | None
    loss_log: bool
    folder: bool
    datasets: list[LogText]


class Input(_Part, frozen=True, kw_only=True):
    """What was read. `attempts` counts all in the input; `attempt` is the one reported, from 1."""

    source: LogText
    bytes: int
    lines: int
    encoding: str
    attempts: int
    attempt: int
    options: OptionsPart
    beside: BesidePart


class ClueItem(_Part, frozen=True, kw_only=True):
    """A line that only versions of a certain time print; `id` is the clue's entry, `code_line` or `wording`."""

    line: int
    id: str


class DatedPart(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The versions of AI Toolkit that the log can be of, as dates (UTC) and commits of its main branch:
    from `from` until before `until`, null where the log leaves it open."""

    from_: str | None
    until: str | None
    from_commit: str | None
    until_commit: str | None
    clues: list[ClueItem]


class TorchPart(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The releases of torch that the log can be of: from `from` until before `until`."""

    from_: str | None
    until: str | None
    clues: list[ClueItem]


class RegressionItem(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
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


class Run(_Part, frozen=True, kw_only=True):
    """The run as far as the log tells; steps are AI Toolkit's own 0-based step numbers.

    `safe_step` and `safe_checkpoint` are what a resume can start from. `safe_source` is `folder` (the file was looked
    at), `log` (only the log says so), `nothing` (the folder was read: no checkpoint was saved) or null.
    """

    trainer: str | None
    job_name: LogText | None
    arch: LogText | None
    family: str | None
    start_step: int | None
    last_completed_step: int | None
    total_steps: int | None
    last_saved_step: int | None
    safe_step: int | None
    safe_checkpoint: LogText | None
    safe_source: str | None
    outcome: str
    dated: DatedPart | None
    torch: TorchPart | None


class EvidenceItem(_Part, frozen=True, kw_only=True):
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


class FactorItem(_Part, frozen=True, kw_only=True):
    """A circumstance that contributed."""

    id: str
    text: Words


class Failure(_Part, frozen=True, kw_only=True, rename={"class_": "class"}):
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


class Memory(_Part, frozen=True, kw_only=True):
    """Sizes of the event that the verdict stands on, MiB; null where the log does not say."""

    tried_to_allocate: float | None
    gpu_total: float | None
    free: float | None
    process_in_use: float | None
    pytorch_allocated: float | None
    reserved_unallocated: float | None
    other_processes: float | None
    device: int | None


class OomEvent(_Part, frozen=True, kw_only=True):
    """One OOM: skipped or swallowed (`caught`), or fatal. `line` is null where the log does not hold it."""

    line: int | None
    step: int | None
    phase: str
    caught: bool
    signature: str
    bucket: str | None
    start: int | None = None
    end: int | None = None


class BucketItem(_Part, frozen=True, kw_only=True):
    """One batch shape that the log lists, or that the dataset gives where the log does not (`source`: log or dataset).

    `batches` an epoch and their `share` of all; `odds` that its batches are among those that failed (null where no
    failed step can be weighed against the table).
    """

    dataset: LogText
    bucket: str
    files: int
    resolution: int | None
    batches: int | None = None
    share: float | None = None
    odds: float | None = None
    source: str = "log"


class SettingItem(_Part, frozen=True, kw_only=True):
    """One effective setting: `source` is `log`, a file's name, or `default`.

    `default` stands beside a value that a config gives: what AI Toolkit takes where the config is silent, null where
    that is nothing, or not known.
    """

    value: Any
    source: LogText
    line: int | None
    default: Any = msgspec.UNSET


class ConfigPart(_Part, frozen=True, kw_only=True):
    """The effective settings."""

    sources: list[LogText]
    values: dict[str, SettingItem]


class ChangeItem(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One edit of the config."""

    path: str
    from_: Any
    to: Any


class Span(_Part, frozen=True, kw_only=True):
    """A predicted size, MiB: between `low` and `high`, most likely `likely`."""

    low: float
    likely: float
    high: float


class Guide(_Part, frozen=True, kw_only=True):
    """Where the advice stands."""

    section: str | None
    url: str | None
    source: str


class RemedyItem(_Part, frozen=True, kw_only=True):
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


class UselessItem(_Part, frozen=True, kw_only=True):
    """A popular fix that cannot touch this failure."""

    id: str
    name: str
    why: Words
    saving: Span | None


class RungItem(_Part, frozen=True, kw_only=True):
    """One retry of the ladder: this fix on top of those before it, the peak and need left then (MiB), the verdict."""

    id: str
    title: str
    changes: list[ChangeItem]
    peak: Span
    need: Span
    fits: str


class ForecastPart(_Part, frozen=True, kw_only=True):
    """One part of the forecast, MiB. `provenance`: measured, derived, counted, assumed, observed."""

    id: str
    low: float
    likely: float
    high: float
    provenance: str


class ForecastItem(_Part, frozen=True, kw_only=True):
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


class TimePart(_Part, frozen=True, kw_only=True):
    """A time in front of a line: as printed, and in seconds from the attempt's first such line."""

    elapsed_s: float | None
    printed: LogText


class TimelineItem(_Part, frozen=True, kw_only=True):
    """One thing that happened; `time` as its line carries it; `line` null where the UI's database tells of it."""

    line: int | None
    step: int | None
    phase: str
    event: str
    text: LogText
    time: TimePart | None = None
    pattern: str | None = None
    start: int | None = None
    end: int | None = None


class PhaseTime(_Part, frozen=True, kw_only=True):
    """How long a phase took, seconds."""

    phase: str
    seconds: float


class PacePart(_Part, frozen=True, kw_only=True):
    """Seconds: the whole attempt, from the last training bar to the last line, a step by the bar's clock and by the
    wall clock. All but `bar_step_s` need lines that carry a time."""

    total_s: float | None
    silent_s: float | None
    bar_step_s: float | None
    wall_step_s: float | None
    phases: list[PhaseTime]


class StretchItem(_Part, frozen=True, kw_only=True):
    """Seconds a step by the bar's clock, the mean over the steps from `first_step` to `last_step`."""

    first_step: int
    last_step: int
    step_s: float


class ChangeOfPace(_Part, frozen=True, kw_only=True):
    """Where steps became slow: to the end (`lasting`), or from `from_step` to `to_step` only; `lost_s` is the cost."""

    from_step: int
    to_step: int
    before_s: float
    after_s: float
    lost_s: float
    lasting: bool
    line: int


class StepsPart(_Part, frozen=True, kw_only=True):
    """The training by its steps: how long they took (at most 200 stretches, in order), where that changed, and the
    steps at which previews and checkpoints were made (the last 200 of each)."""

    stretches: list[StretchItem]
    change: ChangeOfPace | None
    previews: list[int]
    saves: list[int]


class LedgerPart(_Part, frozen=True, kw_only=True):
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


class WarningItem(_Part, frozen=True, kw_only=True):
    """Something the reader should know about the input."""

    id: str
    text: Words
    line: int | None


class SuspectItem(_Part, frozen=True, kw_only=True):
    """A bucket that may be the one: its batches an epoch and their share of all."""

    bucket: str
    files: int
    batches: int
    share: float


class SkipsPart(_Part, frozen=True, kw_only=True):
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


class CaptureItem(_Part, frozen=True, kw_only=True):
    """What to capture next time, because this log did not hold it."""

    id: str
    text: str


class MissingItem(_Part, frozen=True, kw_only=True):
    """Why there is no forecast."""

    id: str
    text: Words


class SettingRow(_Part, frozen=True, kw_only=True):
    """A setting that matters for this failure, and AI Toolkit's `default`; `first_fix` if the first fix changes it."""

    path: str
    value: Any
    source: LogText
    line: int | None
    first_fix: bool
    default: Any = None


class RedactedPart(_Part, frozen=True, kw_only=True):
    """The document was redacted: what is private in it are labels such as ``<user-1>``; `says` tells people."""

    says: str


class Report(_Part, frozen=True, kw_only=True):
    """Everything, in the order of the contract. `redacted` is null where nothing was replaced by labels."""

    schema_version: str
    tool: Tool
    input: Input
    run: Run
    failure: Failure
    memory: Memory
    oom_events: list[OomEvent]
    buckets: list[BucketItem]
    config: ConfigPart
    remedies: list[RemedyItem]
    timeline: list[TimelineItem]
    ledger: LedgerPart
    forecast: ForecastItem | None
    forecast_missing: MissingItem | None
    ladder: list[RungItem]
    card_needed_gib: int | None
    warnings: list[WarningItem]
    will_not_help: list[UselessItem]
    suspects: list[SuspectItem]
    suspects_fit: bool | None
    skips: SkipsPart | None
    pace: PacePart
    steps: StepsPart
    settings: list[SettingRow]
    capture: list[CaptureItem]
    regressions: list[RegressionItem]
    lang: str
    redacted: RedactedPart | None = None


def quoted(value: Any) -> Any:
    """A value out of a config as a document holds it: its text keeps the type of log text."""
    if isinstance(value, str):
        return LogText(value)
    if isinstance(value, list):
        return [quoted(item) for item in value]
    if isinstance(value, dict):
        return {printable(str(key))[:200]: quoted(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, LogText)):
        return value
    return LogText(repr(value)[:200])
