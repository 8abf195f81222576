"""Keeps the reports beside a run true: written when it failed, noted when more came, taken away when it did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from postmortem.faults import noted
from postmortem.fleet.watch import judge as judging
from postmortem.fleet.watch import look
from postmortem.fleet.watch.entry import Entry
from postmortem.fleet.watch.events import Event, event_of, for_hook
from postmortem.fleet.watch.files import NotWritten
from postmortem.fleet.watch.hook import Hooks
from postmortem.fleet.watch.judge import Judged
from postmortem.fleet.watch.memory import Memory
from postmortem.fleet.watch.stamp import Stamp
from postmortem.fleet.watch.state import OVER, Hint, LogStat, Process
from postmortem.intake import IntakeError
from postmortem.pipeline import NothingRecognised
from postmortem.report.document import Report
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon

FIRST_RETRY_S, LAST_RETRY_S = 60.0, 3600.0
GROWN = 3
"""Polls in which a log grew after its report: the UI adds a line when a process ended, but not for so long."""


class Rendered(msgspec.Struct, frozen=True):
    """A report as it is shown (redacted or not), and its text for each suffix."""

    report: Report
    files: dict[str, str]


Render = Callable[[Judged], Rendered]


class Keeper:
    """Judges runs and keeps their reports."""

    def __init__(
        self,
        lexicon: Lexicon,
        texts: Texts,
        jobs: look.Jobs,
        memory: Memory,
        hooks: Hooks,
        emit: Callable[[Event], None],
        tell: Callable[[str, str, str], None],
        render: Render,
    ) -> None:
        self._lexicon = lexicon
        self._texts = texts
        self._jobs = jobs
        self._memory = memory
        self._hooks = hooks
        self._emit = emit
        self._tell = tell
        self._render = render

    def trouble(self, entry: Entry, what: str, why: str) -> None:
        """Tell a fault of a run, once."""
        if entry.trouble != (what, why):
            entry.trouble = (what, why)
            self._tell(what, str(entry.path), why)

    def meet(self, entry: Entry) -> None:
        """A run seen for the first time may have a report of ours on an attempt that is over."""
        stamp = entry.reports.meet()
        log = entry.run.log
        if stamp is not None and log is not None and not stamp.note and not judging.continues(Path(log.path), stamp):
            self._note(entry, stamp, "newer")

    def grew(self, entry: Entry) -> None:
        """A log that a report is on goes on."""
        entry.grown += 1
        if entry.grown == GROWN:
            stamp = entry.reports.stamp()
            if stamp is not None and not stamp.note:
                self._note(entry, stamp, "grown")

    def replaced(self, entry: Entry, before: LogStat, *, unsettled: bool) -> None:
        """A new attempt began; the one before may have failed without being judged, and its log lies aside."""
        entry.grown = 0
        old = look.rotated(entry.path) if entry.folder else None
        if old is not None:
            try:
                found = old.stat()
                unseen = (found.st_ino, found.st_size, found.st_mtime_ns) != before.mark
            except OSError:
                unseen = False
            if unsettled or unseen:
                self._judge(entry, 0.0, upto=f"logs/{old.name}")
        stamp = entry.reports.stamp()
        if stamp is not None and stamp.note in ("", "grown"):
            self._note(entry, stamp, "newer")

    def judge(self, entry: Entry, now: float) -> None:
        """Analyse a run that seems to be over, and write, note or take away what its folder says of it."""
        self._judge(entry, now, upto=None)

    def _judge(self, entry: Entry, now: float, upto: str | None) -> None:
        run = entry.run
        run.retry_at = None
        database = self._jobs.path_of(entry.path) if entry.folder and not run.job_lies else None
        try:
            judged = judging.judge(
                entry.path, self._lexicon, self._texts.lang, database, folder=entry.folder, upto=upto
            )
        except (NothingRecognised, IntakeError):
            return self._settle(entry, upto) if _stands(entry) else None
        except OSError as error:
            if upto is None and _stands(entry):
                self.trouble(entry, "unreadable", (error.strerror or type(error).__name__).lower())
                self._settle(entry, upto)
                entry.run.retry_at = now + FIRST_RETRY_S
            return None
        except Exception as error:  # one bad run must not stop the others
            self.trouble(entry, "internal", f"{type(error).__name__}, {noted(error, 'watch').code}")
            return self._settle(entry, upto)
        if upto is None and not (_stands(entry) and self._believed(entry, judged)):
            return None
        told = self._keep(entry, judged, now, upto)
        return self._settle(entry, upto, told)

    @staticmethod
    def _believed(entry: Entry, judged: Judged) -> bool:
        """Whether the reason to judge stands, now that the whole log was read; else the run is waited for again."""
        run = entry.run
        if judged.stale_row and run.job in OVER and run.process is not Process.GONE and not run.job_lies:
            run.job_lies = True
            return False
        if judged.open and run.hint in (Hint.ERROR, Hint.ENDED):
            run.doubt()
            return False
        return True

    def _settle(self, entry: Entry, upto: str | None, told: str | None = None) -> None:
        if upto is None and entry.run.log is not None:
            entry.run.settle()
            entry.grown = 0
            self._memory.settle(str(entry.path), entry.run.log.mark, told)

    def _keep(self, entry: Entry, judged: Judged, now: float, upto: str | None) -> str | None:
        """Bring the reports in line with what was found; a name for the failure that the user was told of."""
        old = entry.reports.stamp()
        fresh = entry.run.replaced and upto is None
        same = old is not None and not fresh and judging.same_attempt(old, judged)
        if not judged.failed:
            if old is not None and upto is None:
                self._spared(entry, judged, old, same=same)
            return None
        name = f"{judged.stamp.attempt}:{judged.stamp.line}:{judged.stamp.bytes}:{judged.stamp.claims}"
        if same and old is not None and old.claims == judged.stamp.claims:
            if old.note == "grown":
                self._note(entry, old, "")
            return name
        known = old is None and self._memory.told(str(entry.path)) == name
        self._report(entry, judged, now, "written" if known else "changed" if same else "failed", upto)
        return name

    def _report(self, entry: Entry, judged: Judged, now: float, what: str, upto: str | None) -> None:
        note = "newer" if upto is not None else ""
        stamp = msgspec.structs.replace(judged.stamp, note=note)
        rendered = self._render(judged)
        written: list[Path] = []
        try:
            written = entry.reports.put(stamp, self._sentences(stamp), rendered.files)
            entry.trouble, entry.retry_s = None, FIRST_RETRY_S
        except NotWritten as problem:
            self.trouble(entry, "not_written", str(problem))
            if upto is None:
                entry.run.retry_at = now + entry.retry_s
                entry.retry_s = min(2 * entry.retry_s, LAST_RETRY_S)
            if what == "written":
                return
        event = event_of(what, entry.path, written, rendered.report)
        self._emit(event)
        if what == "failed":
            self._hooks.add(for_hook(event, entry.path, written))

    def _spared(self, entry: Entry, judged: Judged, old: Stamp, *, same: bool) -> None:
        """There is a report, and the run did not fail after all, or a later attempt did not."""
        try:
            if same:
                gone = entry.reports.remove()
                self._emit(event_of("cleared", entry.path, gone, judged.report, failure=False))
                return
            note = f"later {judged.stamp.attempt} {judged.stamp.outcome}"
            if old.note != note:
                noted = self._note(entry, old, note)
                self._emit(event_of("later", entry.path, noted, judged.report, failure=False))
        except NotWritten as problem:
            self.trouble(entry, "not_written", str(problem))

    def _note(self, entry: Entry, stamp: Stamp, note: str) -> list[Path]:
        stamp = msgspec.structs.replace(stamp, note=note)
        try:
            return entry.reports.annotate(stamp, self._sentences(stamp))
        except NotWritten as problem:
            self.trouble(entry, "not_written", str(problem))
            return []

    def _sentences(self, stamp: Stamp) -> list[str]:
        """The standing note: which attempt the report is on, and what came after it."""
        kind, *rest = stamp.note.split(" ") if stamp.note else [""]
        found = [self._texts("watch.note.on", {"attempt": stamp.attempt})]
        if kind == "later" and len(rest) == 2:
            outcome = self._texts(f"word.outcome.{rest[1]}")
            found.append(self._texts("watch.note.later", {"later": rest[0], "ended": outcome}))
        elif kind:
            found.append(self._texts(f"watch.note.{kind}"))
        return found


def _stands(entry: Entry) -> bool:
    """Whether the log is still as it was seen: else what was just read may be of another attempt."""
    try:
        log = look.log_of(entry.path, folder=entry.folder)
    except OSError:
        return False
    return log is not None and entry.run.log is not None and log.mark == entry.run.log.mark
