"""What a run was: attempts, phases, steps, batch shapes, how it ended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from postmortem.model.scanned import ConfigDump, Event, Frame, Notice, Place, Stamp, Traceback
from postmortem.text import LogText


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
    by_bar: bool = False
    """Only the bar shows it: `place` is the bar's, and `pattern` is the banner's that never came."""


class Stage(msgspec.Struct, frozen=True):
    """From here on the program was in `phase`; `text` is the line that says so.

    `place` of a bar is its last draw; `since` is the time of its first. `pattern` claims the line, if it is no bar.
    """

    place: Place
    phase: str
    event: str
    text: LogText
    step: int | None = None
    since: Stamp | None = None
    pattern: str | None = None


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


class Stretch(msgspec.Struct, frozen=True):
    """How long steps took: seconds a step, the mean from `first_step` to `last_step`, by the bar's own clock."""

    first_step: int
    last_step: int
    step_s: float


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
    stretches: tuple[Stretch, ...] = ()
    """The steps' times over the attempt, in order, at most a few hundred."""
    other_dumps: tuple[ConfigDump, ...] = ()
    """Configs of other processes of the job that may have been at work as well: nothing in the log names the one."""
    warnings: tuple[Notice, ...] = ()
