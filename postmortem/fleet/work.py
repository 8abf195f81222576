"""Analyse one target, or many; whatever each is made of, a row comes back."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import msgspec

from postmortem import pipeline
from postmortem.faults import VERDICT, noted
from postmortem.fleet.find import Target
from postmortem.fleet.row import MAX_PATH, Row, row_of, shown_name
from postmortem.intake import Intake, IntakeError, Unreachable, is_url, jobdb, open_input, open_path
from postmortem.intake.folders import LOG_NAMES
from postmortem.model import JobDatabase
from postmortem.reading import analysis_of, run_of
from postmortem.report import build
from postmortem.report.document import Report
from postmortem.report.excerpt import Excerpt, cut
from postmortem.scan import Lexicon
from postmortem.text import printable

NOTHING = "no line in it is one that a training program prints"
FETCHED_AHEAD = 8
"""Runs of a store that are being fetched while another is analysed: a store is slow to answer, not slow to send."""
BULK_FROM = 64 << 10
"""Bytes of a log from which on its bars are read together: what that takes is loaded once for all runs."""
AHEAD_BYTES = 128 << 20
TRIES = 3
"""How often a store is asked for a run; it rests for a second and more between."""
PATIENCE = 20
"""Runs in a row that a store is asked for again: one that is down is not waited for 10,000 times."""


class Done(msgspec.Struct, frozen=True):
    """A target's row, and the key of the bytes it stands on (None where they could not be read); `again` where another
    try may do better."""

    target: Target
    key: str | None
    row: Row
    again: bool = False


def work_all(targets: Iterable[Target], lexicon: Lexicon) -> Iterator[Done]:
    """A row for each of `targets`, in order; those of a store are fetched ahead, and asked for again if need be."""
    rest = iter(targets)
    for target in rest:
        if is_url(target.path):
            yield from _fetched(chain([target], rest), lexicon)
            return
        yield work(target, lexicon)


def _fetched(targets: Iterable[Target], lexicon: Lexicon) -> Iterator[Done]:
    waiting: deque[tuple[Target, Future[Intake]]] = deque()
    rest = iter(targets)
    patience = PATIENCE
    with ThreadPoolExecutor(FETCHED_AHEAD, thread_name_prefix="fetching") as threads:
        while True:
            while len(waiting) < FETCHED_AHEAD and sum(one.bytes for one, _ in waiting) < AHEAD_BYTES:
                target = next(rest, None)
                if target is None:
                    break
                waiting.append((target, threads.submit(open_target, target)))
            if not waiting:
                return
            target, future = waiting.popleft()
            done = work(target, lexicon, future.result)
            del future
            for pause in range(1, TRIES):
                if not done.again or not patience:
                    break
                patience -= 1
                time.sleep(pause * pause)
                done = work(target, lexicon)
            patience = patience if done.again else PATIENCE
            yield done


def open_target(target: Target) -> Intake:
    """What lies at `target`, fetched first if it is in a store. Raises IntakeError and OSError."""
    if not is_url(target.path):
        return open_path(Path(target.path))
    from postmortem.intake import remote

    return remote.open_url(target.path, files=target.files)


def shown(path: str) -> str:
    """The path of a target as the tables show it: no password or signature of a URL."""
    if not is_url(path):
        return path
    from postmortem.intake import remote

    return remote.without_secrets(path)


def work(target: Target, lexicon: Lexicon, opened_by: Callable[[], Intake] | None = None) -> Done:
    """The row of `target`. Never raises but for what ends the process."""
    try:
        before = _standing(target)
        opened = opened_by() if opened_by is not None else open_target(target)
        key = content_key(target, opened)
        row = _row(target, opened, lexicon)
        # what is written while it is read has a key of other bytes than its row
        return Done(target, key if _standing(target) == before else None, row)
    except pipeline.NothingRecognised:
        # as sure as an analysis, so remembered like one; but its status is also the name's
        status = "error" if target.sure else "not_a_log"
        return Done(target, f"{key}-{status}", failed(target, status, NOTHING))
    except Unreachable as error:
        return Done(target, None, failed(target, "error", _why(error, target)), again=True)
    except IntakeError as error:
        return Done(target, None, failed(target, "error" if target.sure else "not_a_log", _why(error, target)))
    except OSError as error:
        return Done(target, None, failed(target, "error", (error.strerror or type(error).__name__).lower()))
    except MemoryError:
        return Done(target, None, failed(target, "error", "too large for this machine's memory"))
    except Exception as error:  # one bad input must not stop the others; its row says what to report
        why = f"internal error ({type(error).__name__}, fault {noted(error, 'batch').code}); please report it"
        return Done(target, None, failed(target, "error", why))


def _standing(target: Target) -> tuple[int, int] | None:
    """Size and time of a run's newest log; None where there is none, or a store keeps it."""
    if is_url(target.path):
        return None
    try:
        found = os.stat(f"{target.path}/{LOG_NAMES[0]}" if target.kind == "folder" else target.path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _why(error: IntakeError, target: Target) -> str:
    """What the error says, without the path that the row has already; of a file in a folder its name is left."""
    path = printable(shown(target.path))[:300]
    return str(error).removeprefix(f"{path}: ").removeprefix(f"{path}/")


def failed(target: Target, status: str, why: str) -> Row:
    """The row of a target that could not be analysed."""
    return Row(
        run=shown_name(target.name),
        path=shown_name(shown(target.path), MAX_PATH),
        status=status,
        error=printable(why)[:300],
        bytes=target.bytes,
    )


def report_of(path: str, lexicon: Lexicon, lang: str = "en", *, redact: bool = False) -> tuple[Report, Excerpt]:
    """The report on one run of the fleet, as `analyze` gives it, with the log around its evidence.

    Raises as that does.
    """
    opened = open_input(path, again=True)
    analysis = analysis_of(opened, lexicon, database=opened.database())
    report = build(analysis, lexicon.knowledge, lang, redacted=redact)
    logs = {log.name: log for log in opened.logs}
    excerpt = cut(report, lambda name: logs[name].chunks() if name in logs else None)
    if redact:
        from postmortem.report.redact import Redactor, settings_of

        redactor = Redactor(lexicon.knowledge)
        redactor.learn(None, settings_of(analysis))
        for one in (report, excerpt):
            redactor.learn(one)
        report, excerpt = redactor.document(report), redactor.excerpt(excerpt)
    return report, excerpt


def content_key(target: Target, opened: Intake) -> str:
    """A key of all that the row depends on: the bytes of logs and configs, what lies beside them by size and time.

    Of what is read whole the time does not count: a copied folder is a copy whenever it was made.
    """
    digest = blake2b(digest_size=16)
    for log in opened.logs:
        digest.update(f"log {log.name} {log.encoding}\0".encode("utf-8", "surrogateescape"))
        for chunk in log.chunks():
            digest.update(chunk)
    for config in opened.configs:
        digest.update(f"\0config {config.name}\0{config.text}".encode("utf-8", "surrogateescape"))
    if target.kind == "folder":
        read = {name.rsplit("/", 1)[-1] for name in (log.name for log in opened.logs)}
        read |= {config.name for config in opened.configs}
        entries = [one.rsplit(":", 4) for one in target.signature.split("|")]
        beside = [":".join(one[:3]) for one in entries if one[0] not in read]
        if any(one[0] == jobdb.NAME for one in entries):
            beside.append(Path(target.path).name)  # by which the UI's database knows the job
        digest.update(("\0beside " + "|".join(beside)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _row(target: Target, opened: Intake, lexicon: Lexicon) -> Row:
    database = _database(opened)
    analysis, history = run_of(opened, lexicon, database, pipeline.Pace(BULK_FROM))
    if fault := analysis.failed(VERDICT):
        return failed(target, "error", f"internal error ({fault.error}, fault {fault.code}); please report it")
    return row_of(target.name, shown(target.path), analysis, lexicon.knowledge, history)


def _database(opened: Intake) -> JobDatabase | None:
    """The UI's jobs, read once for all runs of one toolkit."""
    found = jobdb.find(opened.folder, climb=opened.keep is None) if opened.folder is not None else None
    if found is None:
        return None
    return _read_database(str(found), tuple(_mark(f"{found}{end}") for end in ("", "-wal")))


def _mark(path: str) -> tuple[int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


@lru_cache(maxsize=4)
def _read_database(path: str, marks: tuple[tuple[int, int] | None, ...]) -> JobDatabase:
    return jobdb.read(Path(path))
