"""The words that every room shares: what a scan finds, what a run was, what it died of, what helps.

Frozen values, handed from room to room in one direction. Sizes are MiB as floats (`_mib`), steps are
AI Toolkit's own 0-based ``step_num``, lines are 1-based and count line feeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from postmortem.text import LogText


# --- scan -------------------------------------------------------------------------------------------
class Stamp(msgspec.Struct, frozen=True):
    """A time that a line's prefix carries. `seconds` count from 1970 (`utc`, `local`), from 1 January (`yearless`),
    from midnight (`clock`) or from boot (`uptime`): only stamps of one `kind` can be compared."""

    seconds: float
    kind: str
    text: LogText


class Place(msgspec.Struct, frozen=True):
    """Where something stands: 1-based physical line, byte offset of the segment, and which file; when, if printed."""

    line: int
    offset: int
    source: str = ""
    stamp: Stamp | None = None


class Event(msgspec.Struct, frozen=True):
    """One line (or part of one) that an entry of the knowledge base claims."""

    place: Place
    pattern: str
    role: str
    text: LogText
    groups: Mapping[str, LogText] = msgspec.field(default_factory=dict)
    sizes_mib: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    others_mib: tuple[float, ...] = ()
    event: str | None = None
    kind: str | None = None
    resource: str | None = None
    phase: str | None = None
    caught: bool = False
    reason: str | None = None
    carriers: tuple[str, ...] = ()
    exception: str | None = None
    device: int | None = None
    quoted: bool = False


class BarSpan(msgspec.Struct, frozen=True):
    """Consecutive draws of one progress bar with no other event between them, folded.

    `n` counts as the bar counts. `unproven` holds the half-open ranges of counts that the bar left
    without the sign of a finished step (a redraw at the same count, or a changed postfix). `samples`
    are (n, elapsed seconds, line) at some of the draws, first and last included; `walls` their times by the lines'
    prefixes, empty where not all have one.
    Of the draws at the bar's first
    count, `start_blank` had no postfix, `start_said` had one, `start_proofs` of these a new one.
    """

    place: Place
    last_place: Place
    description: LogText
    total: int
    first_n: int
    last_n: int
    draws: int
    unproven: tuple[tuple[int, int], ...] = ()
    samples: tuple[tuple[int, float, int], ...] = ()
    walls: tuple[Stamp, ...] = ()
    postfix: LogText = LogText("")
    main: bool = False
    event: str | None = None
    phase: str | None = None
    start_proofs: int = 0
    start_blank: int = 0
    start_said: int = 0
    start_n: int = 0
    last_proven: bool = False
    proven_n: int | None = None
    redrawn: bool = False


class Frame(msgspec.Struct, frozen=True):
    """One frame of a Python traceback, with the code line if the log shows it; `number` is the line in the file."""

    place: Place
    path: LogText
    function: str
    code: LogText
    number: int = 0


class Traceback(msgspec.Struct, frozen=True):
    """One Python traceback: its frames, outermost first, and the place of its exception line, if it came.

    `doubled`: each of its lines came twice, as AI Toolkit's own log writer once did.
    """

    place: Place
    frames: tuple[Frame, ...]
    exception: Event | None
    doubled: bool = False


class ConfigDump(msgspec.Struct, frozen=True):
    """The process config as AI Toolkit prints it; `value` is None when the JSON is damaged or cut off.

    `lines` maps dotted paths (``train.batch_size``, ``datasets[0].resolution``) to physical lines.
    """

    place: Place
    last_line: int
    value: Mapping[str, Any] | None
    lines: Mapping[str, int]


Item = Event | BarSpan | Traceback | ConfigDump


class Notice(msgspec.Struct, frozen=True):
    """Something that the reader of a report should know about the input; `values` fill its text."""

    id: str
    line: int | None = None
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


class ScanResult(msgspec.Struct, frozen=True):
    """All that one log says, in file order, with its size."""

    source: str
    items: tuple[Item, ...]
    bytes: int
    lines: int
    trainers: Mapping[str, tuple[int, Place]]
    warnings: tuple[Notice, ...] = ()
    last_text: LogText = LogText("")
    last_stamp: Stamp | None = None
    excerpts: Mapping[int, LogText] = msgspec.field(default_factory=dict)


# --- timeline ---------------------------------------------------------------------------------------
class Bucket(msgspec.Struct, frozen=True):
    """One batch shape of one dataset at one resolution, as the log prints it; sizes in pixels.

    `source` is `log`, or `dataset` where the log lacks its table and the dataset gave it: then `line` is 0.
    """

    dataset: LogText
    width: int
    height: int
    frames: int
    files: int
    block: int
    line: int
    source: str = "log"

    @property
    def label(self) -> str:
        """``1024x768`` or, for video, ``1024x768x81``."""
        return f"{self.width}x{self.height}" + (f"x{self.frames}" if self.frames > 1 else "")

    @property
    def volume(self) -> int:
        """Pixels times frames: what the cost of a batch grows with."""
        return self.width * self.height * max(1, self.frames)


class Oom(msgspec.Struct, frozen=True):
    """One out-of-memory event, skipped (`caught`), swallowed or fatal, with its step where the log allows it."""

    place: Place
    pattern: str
    phase: str
    caught: bool
    step: int | None
    kind: str
    resource: str | None
    counter: int | None = None
    sizes_mib: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    others_mib: tuple[float, ...] = ()
    device: int | None = None
    implied: bool = False
    placed: bool = False
    """Whether its own words or the frames of its traceback say the phase; else what stands before it does."""
    text: LogText = LogText("")


class Stage(msgspec.Struct, frozen=True):
    """From here on the program was in `phase`; `text` is the line that says so.

    `place` of a bar is its last draw; `since` is the time of its first.
    """

    place: Place
    phase: str
    event: str
    text: LogText
    step: int | None = None
    since: Stamp | None = None


class End(msgspec.Struct, frozen=True):
    """How an attempt ended, as far as the log says."""

    outcome: str
    place: Place | None
    event: Event | None = None
    traceback: Traceback | None = None


class StepTimes(msgspec.Struct, frozen=True):
    """Seconds per step before and after a change, worked out from the bar's own clock.

    `lasting`: slow to the end of the log; else from `from_step` to `to_step` only. `lost_s` is what it cost.
    """

    before_s: float
    after_s: float
    from_step: int
    place: Place
    text: LogText = LogText("")
    to_step: int = 0
    lost_s: float = 0.0
    lasting: bool = True

    @property
    def factor(self) -> float:
        """How many times slower."""
        return self.after_s / self.before_s


class Pace(msgspec.Struct, frozen=True):
    """Seconds: from the attempt's first line to its last, in each phase, from the last training bar to the last
    line, and a step by the bar's clock and by the wall clock. None (or empty) where no line carries a time."""

    whole_s: float | None = None
    phases: tuple[tuple[str, float], ...] = ()
    silent_s: float | None = None
    bar_step_s: float | None = None
    wall_step_s: float | None = None


class Attempt(msgspec.Struct, frozen=True):
    """One try of one job: from its start to the next start or the end of the log."""

    index: int
    source: str
    first_line: int
    last_line: int
    job_name: LogText | None
    start_step: int
    total_steps: int | None
    last_bar: int | None
    last_completed_step: int | None
    good_steps: int
    trained: bool
    phase: str
    stages: tuple[Stage, ...]
    ooms: tuple[Oom, ...]
    errors: tuple[Event, ...]
    notes: tuple[Event, ...]
    buckets: tuple[Bucket, ...]
    dump: ConfigDump | None
    end: End
    save_steps: tuple[int, ...]
    sample_steps: tuple[int, ...]
    last_saved_step: int | None
    last_saved: LogText | None
    resumed_from: LogText | None
    job_id: LogText | None
    step_times: StepTimes | None
    slow_stretch: StepTimes | None
    buffered: bool
    bar_counts_completed: bool
    bar_proves_count: bool
    skips_confirmed: bool
    excerpt_bars: bool
    resumed: bool
    has_header: bool
    end_phase: str = "unknown"
    end_step: int | None = None
    end_frame: Frame | None = None
    main_bar_place: Place | None = None
    main_bar_text: LogText = LogText("")
    closing: tuple[Event, ...] = ()
    """What was printed on how the process ended: kills, crashes, exit codes."""
    started: Stamp | None = None
    last_text: LogText = LogText("")
    pace: Pace = Pace()
    other_dumps: tuple[ConfigDump, ...] = ()
    """Configs of other processes of the job that may have been at work as well: nothing in the log names the one."""
    warnings: tuple[Notice, ...] = ()


# --- what lies beside the log -----------------------------------------------------------------------
class Checkpoint(msgspec.Struct, frozen=True):
    """One checkpoint of a run folder, whole or not, as far as its names and headers tell.

    `job` is its name without step and suffix. `step` is null for the final one unless its header says it.
    `state` is `whole`, `torn` (its header and its size disagree), `empty`, or `unchecked`.
    """

    job: LogText
    name: LogText
    step: int | None
    final: bool
    state: str


class FolderWitness(msgspec.Struct, frozen=True):
    """What a run folder holds of the run's results.

    `optimizer` is the state of `optimizer.pt`, None where there is none. `preview_step` and `preview_images`
    are of the last preview by the time stamps in the names. `whole` is False if a folder was too full to list.
    """

    name: LogText
    checkpoints: tuple[Checkpoint, ...] = ()
    optimizer: str | None = None
    preview_step: int | None = None
    preview_images: int = 0
    whole: bool = True


class DatasetSizes(msgspec.Struct, frozen=True):
    """What a dataset's folder says of the sizes of its files.

    `sizes` are (width, height, whether it is a video, how many files), in pixels. `source` is `database` (AI Toolkit's
    own, `.aitk_size.json`) or `headers` (the images'). Of `unread` files nothing is known, of more if not `whole`.
    """

    name: LogText
    sizes: tuple[tuple[int, int, bool, int], ...]
    source: str
    unread: int = 0
    whole: bool = True

    @property
    def files(self) -> int:
        """Files whose size is known."""
        return sum(count for *_, count in self.sizes)


class JobRow(msgspec.Struct, frozen=True):
    """One job in the UI's database. After an error `step` is the last saved one and `info` the exception's message.

    `info` and `config` are as they stand there: for a scan and a parser, never for a sink.
    """

    id: LogText
    name: LogText
    status: str
    step: int | None
    total_steps: int | None
    info: str
    config: str | None


class JobDatabase(msgspec.Struct, frozen=True):
    """The UI's database: its file name, the jobs in it, and whether it is damaged."""

    name: str
    rows: tuple[JobRow, ...] = ()
    damaged: bool = False


class Kept(msgspec.Struct, frozen=True):
    """What of the run is not lost: the step and the checkpoint from which it can go on.

    `source` is `folder` (the file was looked at), `log` (only the log says so), `nothing` (the folder was read, and
    neither it nor the log knows of a checkpoint), or None where nothing can be said. Only the final checkpoint may
    lack a step.
    """

    step: int | None = None
    checkpoint: LogText | None = None
    source: str | None = None


# --- config -----------------------------------------------------------------------------------------
class Value(msgspec.Struct, frozen=True):
    """One effective setting: what it is, which source said so, and the line there (None for a default)."""

    value: Any
    source: str
    line: int | None = None


class JobConfig(msgspec.Struct, frozen=True):
    """The effective settings of the process that ran; empty `values` means that no config is known.

    `others` are the settings given that the knowledge base says nothing of (leaves, by dotted path).
    """

    values: Mapping[str, Value]
    sources: tuple[str, ...]
    warnings: tuple[Notice, ...] = ()
    job_name: LogText | None = None
    others: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @property
    def known(self) -> bool:
        """Whether any config was found, so that defaults apply to what it leaves out."""
        return bool(self.sources)

    def get(self, path: str) -> Any:
        """The effective value at `path`, None when it is unset or no config is known."""
        found = self.values.get(path)
        return found.value if found else None


# --- diagnosis --------------------------------------------------------------------------------------
class Evidence(msgspec.Struct, frozen=True):
    """A claim's proof: the line in the log, what it proves, and its text."""

    line: int
    what: str
    text: LogText
    source: str = ""


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

    `saving` is what it takes off the peak of the phase that failed, `peak` what is left, `fits` the verdict on
    that; None where no figure can be given.
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
    fits: str | None = None


class Rung(msgspec.Struct, frozen=True):
    """One step of the retry ladder: this fix on top of those before it, and the peak that is left then (MiB)."""

    id: str
    changes: tuple[ConfigChange, ...]
    peak: Range
    fits: str


class NotHelping(msgspec.Struct, frozen=True):
    """A popular fix that cannot touch this failure, and why; `saving` in MiB where it is worked out."""

    id: str
    why: str
    saving: Range | None = None
