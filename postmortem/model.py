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
class Place(msgspec.Struct, frozen=True):
    """Where something stands: 1-based physical line, byte offset of the segment, and which file."""

    line: int
    offset: int
    source: str = ""


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
    are (n, elapsed seconds, line) at some of the draws, first and last included.
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
    postfix: LogText = LogText("")
    main: bool = False
    event: str | None = None
    phase: str | None = None
    start_proofs: int = 0
    start_n: int = 0
    last_proven: bool = False
    proven_n: int | None = None
    redrawn: bool = False


class Frame(msgspec.Struct, frozen=True):
    """One frame of a Python traceback, with the code line if the log shows it."""

    place: Place
    path: LogText
    function: str
    code: LogText


class Traceback(msgspec.Struct, frozen=True):
    """One Python traceback: its frames, outermost first, and the place of its exception line, if it came."""

    place: Place
    frames: tuple[Frame, ...]
    exception: Event | None


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
    excerpts: Mapping[int, LogText] = msgspec.field(default_factory=dict)


# --- timeline ---------------------------------------------------------------------------------------
class Bucket(msgspec.Struct, frozen=True):
    """One batch shape of one dataset at one resolution, as the log prints it; sizes in pixels."""

    dataset: LogText
    width: int
    height: int
    frames: int
    files: int
    block: int
    line: int

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
    text: LogText = LogText("")


class Stage(msgspec.Struct, frozen=True):
    """From here on the program was in `phase`; `text` is the line that says so."""

    place: Place
    phase: str
    event: str
    text: LogText
    step: int | None = None


class End(msgspec.Struct, frozen=True):
    """How an attempt ended, as far as the log says."""

    outcome: str
    place: Place | None
    event: Event | None = None
    traceback: Traceback | None = None


class StepTimes(msgspec.Struct, frozen=True):
    """Seconds per step before and after a lasting change, worked out from the bar's own clock."""

    before_s: float
    after_s: float
    from_step: int
    place: Place
    text: LogText = LogText("")


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
    step_times: StepTimes | None
    buffered: bool
    bar_counts_completed: bool
    skips_confirmed: bool
    excerpt_bars: bool
    resumed: bool
    has_header: bool
    end_phase: str = "unknown"
    end_step: int | None = None
    end_frame: Frame | None = None
    main_bar_place: Place | None = None
    main_bar_text: LogText = LogText("")
    warnings: tuple[Notice, ...] = ()


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


class FactorFound(msgspec.Struct, frozen=True):
    """A circumstance that contributed, by its knowledge id."""

    id: str
    values: Mapping[str, Any]


class BucketOdds(msgspec.Struct, frozen=True):
    """How well one bucket's share of the batches fits the observed rate of skips."""

    bucket: Bucket
    batches: int
    share: float


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
    missing: tuple[str, ...] = ()


class ConfigChange(msgspec.Struct, frozen=True):
    """One edit of the job config: the dotted path as it stands in the file, from which value to which."""

    path: str
    before: Any
    after: Any


class Suggestion(msgspec.Struct, frozen=True):
    """One fix for this run, with why it stands where it stands."""

    rank: int
    id: str
    changes: tuple[ConfigChange, ...]
    why: str
    guide: str | None
    url: str | None
    source: str
    facts: Mapping[str, Any] = msgspec.field(default_factory=dict)


class NotHelping(msgspec.Struct, frozen=True):
    """A popular fix that cannot touch this failure, and why."""

    id: str
    why: str
