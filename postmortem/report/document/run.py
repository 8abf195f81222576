"""The run: what was read of it, its versions, settings and buckets, its course in lines, times and steps."""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.text import LogText


class OptionsPart(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for, so that the report can be made again; null where the option was not given.

    `ticket`: made with a log excerpt beside it, and what is private in that is hidden here too.
    """

    attempt: int | None
    gpu_gib: float | None
    redacted: bool
    ticket: bool


class BesidePart(msgspec.Struct, frozen=True, kw_only=True):
    """What was read besides the log and `config.sources`: without it the same log gives another report."""

    configs: list[LogText]
    database: LogText | None
    loss_log: bool
    folder: bool
    datasets: list[LogText]


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """What was read. `attempts` counts all in the input; `attempt` is the one reported, from 1."""

    source: LogText
    bytes: int
    lines: int
    encoding: str
    attempts: int
    attempt: int
    options: OptionsPart
    beside: BesidePart


class ClueItem(msgspec.Struct, frozen=True, kw_only=True):
    """A line that only versions of a certain time print; `id` is the clue's entry, `code_line` or `wording`."""

    line: int
    id: str


class DatedPart(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The versions of AI Toolkit that the log can be of, as dates (UTC) and commits of its main branch:
    from `from` until before `until`, null where the log leaves it open."""

    from_: str | None
    until: str | None
    from_commit: str | None
    until_commit: str | None
    clues: list[ClueItem]


class TorchPart(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """The releases of torch that the log can be of: from `from` until before `until`."""

    from_: str | None
    until: str | None
    clues: list[ClueItem]


class Run(msgspec.Struct, frozen=True, kw_only=True):
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


class SettingItem(msgspec.Struct, frozen=True, kw_only=True):
    """One effective setting: `source` is `log`, a file's name, or `default`.

    `default` stands beside a value that a config gives: what AI Toolkit takes where the config is silent, null where
    that is nothing, or not known.
    """

    value: Any
    source: LogText
    line: int | None
    default: Any = msgspec.UNSET


class ConfigPart(msgspec.Struct, frozen=True, kw_only=True):
    """The effective settings."""

    sources: list[LogText]
    values: dict[str, SettingItem]


class SettingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that matters for this failure, and AI Toolkit's `default`; `first_fix` if the first fix changes it."""

    path: str
    value: Any
    source: LogText
    line: int | None
    first_fix: bool
    default: Any = None


class BucketItem(msgspec.Struct, frozen=True, kw_only=True):
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


class TimePart(msgspec.Struct, frozen=True, kw_only=True):
    """A time in front of a line: as printed, and in seconds from the attempt's first such line."""

    elapsed_s: float | None
    printed: LogText


class TimelineItem(msgspec.Struct, frozen=True, kw_only=True):
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


class PhaseTime(msgspec.Struct, frozen=True, kw_only=True):
    """How long a phase took, seconds."""

    phase: str
    seconds: float


class PacePart(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: the whole attempt, from the last training bar to the last line, a step by the bar's clock and by the
    wall clock. All but `bar_step_s` need lines that carry a time."""

    total_s: float | None
    silent_s: float | None
    bar_step_s: float | None
    wall_step_s: float | None
    phases: list[PhaseTime]


class StretchItem(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds a step by the bar's clock, the mean over the steps from `first_step` to `last_step`."""

    first_step: int
    last_step: int
    step_s: float


class ChangeOfPace(msgspec.Struct, frozen=True, kw_only=True):
    """Where steps became slow: to the end (`lasting`), or from `from_step` to `to_step` only; `lost_s` is the cost."""

    from_step: int
    to_step: int
    before_s: float
    after_s: float
    lost_s: float
    lasting: bool
    line: int


class StepsPart(msgspec.Struct, frozen=True, kw_only=True):
    """The training by its steps: how long they took (at most 200 stretches, in order), where that changed, and the
    steps at which previews and checkpoints were made (the last 200 of each)."""

    stretches: list[StretchItem]
    change: ChangeOfPace | None
    previews: list[int]
    saves: list[int]
