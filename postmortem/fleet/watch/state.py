"""When has a run ended? A state machine over what is seen of it from outside, without files, clock or sleep.

Every poll says how the log stands (`see`); `move` says what to find out next, the cheapest first: nothing while the log
grows, its last bytes once it stands still, whether its process lives and what the UI says of the job, and the whole
analysis only when one of these says that the run is over, or when it has been quiet for too long.
"""

from __future__ import annotations

import enum

import msgspec

LIES_AFTER_S = 10.0
"""A log that grows so long after its process was gone is written by another one: the pid is not to be trusted.
The UI appends its own line on how the process ended within two seconds."""
OVER = frozenset({"error", "completed", "stopped"})
"""Words of the UI's database for a job that no longer runs."""


class LogStat(msgspec.Struct, frozen=True):
    """How a log stands: its path, and what tells whether it changed."""

    path: str
    inode: int
    size: int
    mtime_ns: int

    @property
    def mark(self) -> tuple[int, int, int]:
        """Equal if and only if nothing was seen to change; the UI renames logs, so the path does not count."""
        return self.inode, self.size, self.mtime_ns


class Hint(enum.Enum):
    """What the last bytes of a log say."""

    OPEN = "open"
    """Nothing on an end."""
    ERROR = "error"
    """An error without progress after it, which the program may survive."""
    DONE = "done"
    """The bar reached its total; a last preview may still be made."""
    ENDED = "ended"
    """The program or who started it says that it is over."""


class Process(enum.Enum):
    """Whether the run's process lives."""

    UNKNOWN = "unknown"
    ALIVE = "alive"
    GONE = "gone"


class Change(enum.Enum):
    """What became of a log since the last poll."""

    NONE = "none"
    FIRST = "first"
    GREW = "grew"
    REPLACED = "replaced"
    """Another file, or the same one emptied: a new attempt."""
    LOST = "lost"


class Move(enum.Enum):
    """What to find out next."""

    WAIT = "wait"
    TAIL = "tail"
    ASK = "ask"
    JUDGE = "judge"


class Pace(msgspec.Struct, frozen=True):
    """How long to wait, in seconds, all in terms of the interval between two polls.

    `settle_s` without growth make a log still; `doubt_s` more are given to a program that may go on; `done_s` to one
    that is through its steps; `hang_s` to one that lives although its log says that it is over; `quiet_s` (the
    user's) to a log that just stopped where nothing else tells.
    """

    interval_s: float
    quiet_s: float

    @property
    def settle_s(self) -> float:
        """Seconds without growth after which the end of a log is looked at."""
        return 2 * self.interval_s

    @property
    def doubt_s(self) -> float:
        """Seconds for a program that may survive what its log shows."""
        return 10 * self.interval_s

    @property
    def done_s(self) -> float:
        """Seconds after the last step in which a last preview may still fail."""
        return 30 * self.interval_s

    @property
    def hang_s(self) -> float:
        """Seconds for a process to go after its log said so."""
        return 15 * self.interval_s


class Run(msgspec.Struct):
    """What is known of one run.

    `still_since` is when its log last changed (at first sight by the file's own time), `met_at` when it was seen first.
    `settled` is the mark of the log as it was judged: nothing is done until it changes.
    """

    log: LogStat | None = None
    still_since: float = 0.0
    met_at: float = 0.0
    hint: Hint | None = None
    process: Process = Process.UNKNOWN
    job: str | None = None
    asked_at: float | None = None
    gone_since: float | None = None
    pid_lies: bool = False
    job_lies: bool = False
    absent: bool = False
    settled: tuple[int, int, int] | None = None
    retry_at: float | None = None
    replaced: bool = False
    """Whether the log was seen to be replaced since the last judgement."""

    def see(self, log: LogStat | None, now: float, age_s: float = 0.0) -> Change:
        """Take in how the log stands at `now`; `age_s` is how long ago it changed, which counts at first sight only."""
        before = self.log
        if log is None:
            lost = before is not None and not self.absent
            self.absent = True
            return Change.LOST if lost else Change.NONE
        self.absent = False
        self.log = log
        if before is not None and before.mark == log.mark:
            return Change.NONE
        self.hint, self.asked_at, self.retry_at = None, None, None
        self.still_since = now if before is not None else now - max(0.0, age_s)
        if before is None:
            self.met_at = now
            return Change.FIRST
        if before.inode == log.inode and log.size >= before.size:
            if self.gone_since is not None and now - self.gone_since > LIES_AFTER_S:
                self.pid_lies = True
            return Change.GREW
        self.gone_since, self.pid_lies, self.job_lies = None, False, False
        self.process, self.job = Process.UNKNOWN, None
        self.replaced = True
        return Change.REPLACED

    def move(self, now: float, pace: Pace) -> Move:
        """What to find out next."""
        if self.log is None or self.absent:
            return Move.WAIT
        if self.settled == self.log.mark:
            return Move.JUDGE if self.retry_at is not None and now >= self.retry_at else Move.WAIT
        if now - self.still_since < pace.settle_s:
            return Move.WAIT
        if self.hint is None:
            return Move.TAIL
        if self.asked_at is None or now - self.asked_at >= pace.settle_s:
            return Move.ASK
        # a file's time is by another clock than ours, perhaps a server's: it needs a few looks of our own beside it
        known = self.hint is Hint.ENDED or now - self.met_at >= 2 * pace.settle_s
        return Move.JUDGE if known and now - self.still_since >= self.patience_s(pace) else Move.WAIT

    def answer(self, process: Process, job: str | None, now: float) -> None:
        """Take in whether the process lives and what the UI's database says of the job."""
        self.asked_at = now
        self.process, self.job = process, job
        if process is not Process.GONE:
            self.gone_since = None
        elif self.gone_since is None:
            self.gone_since = now

    def patience_s(self, pace: Pace) -> float:
        """How long the log has to stand still until the run counts as over; infinite while its process lives."""
        if self.process is Process.ALIVE:
            return pace.hang_s if self.hint is Hint.ENDED else float("inf")
        if self.hint is Hint.ENDED:
            return pace.settle_s
        job = None if self.job_lies else self.job
        gone = self.process is Process.GONE and not self.pid_lies and job in (None, *OVER)
        if job == "error" or (gone and self.hint is not Hint.OPEN):
            return pace.settle_s
        if gone or job in OVER or self.hint is Hint.ERROR:
            return pace.doubt_s
        return pace.done_s if self.hint is Hint.DONE else pace.quiet_s

    def soon(self, now: float, pace: Pace) -> bool:
        """Whether a decision falls within the time that a doubt takes."""
        if self.log is None or self.absent or self.settled == self.log.mark:
            return False
        if self.hint is None or self.asked_at is None:
            return True
        return self.patience_s(pace) - (now - self.still_since) <= pace.doubt_s

    def settle(self) -> None:
        """The log as it stands is judged."""
        self.settled = self.log.mark if self.log is not None else None
        self.replaced = False

    def doubt(self) -> None:
        """The hint was wrong: the log says nothing on an end."""
        self.hint = Hint.OPEN
