"""Analyse one target; whatever it is made of, a row comes back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from postmortem import pipeline
from postmortem.fleet.find import Target
from postmortem.fleet.row import Row, row_of
from postmortem.intake import Intake, IntakeError, jobdb, open_path
from postmortem.model import JobDatabase
from postmortem.reading import analyses_of, analysis_of
from postmortem.report import build
from postmortem.report.document import Report
from postmortem.scan import Lexicon
from postmortem.text import printable

CHUNK = 1 << 20


class Done(msgspec.Struct, frozen=True):
    """A target's row, and the key of the bytes it stands on (None where they could not be read)."""

    target: Target
    key: str | None
    row: Row


def work(target: Target, lexicon: Lexicon) -> Done:
    """The row of `target`. Never raises but for what ends the process."""
    try:
        opened = open_path(Path(target.path))
        key = content_key(target, opened)
        return Done(target, key, _row(target, opened, lexicon))
    except pipeline.NothingRecognised:
        status = "error" if target.sure else "not_a_log"
        return Done(target, None, failed(target, status, "no line in it is one that a training program prints"))
    except IntakeError as error:
        why = str(error).removeprefix(f"{printable(target.path)[:300]}: ")
        return Done(target, None, failed(target, "error" if target.sure else "not_a_log", why))
    except OSError as error:
        return Done(target, None, failed(target, "error", (error.strerror or type(error).__name__).lower()))
    except MemoryError:
        return Done(target, None, failed(target, "error", "too large for this machine's memory"))
    except Exception as error:  # one bad input must not stop the others; its row says what to report
        return Done(target, None, failed(target, "error", f"internal error ({type(error).__name__}); please report it"))


def failed(target: Target, status: str, why: str) -> Row:
    """The row of a target that could not be analysed."""
    return Row(
        run=printable(target.name)[:200],
        path=printable(target.path)[:1000],
        status=status,
        error=printable(why)[:300],
        bytes=target.bytes,
    )


def report_of(path: str, lexicon: Lexicon, lang: str = "en") -> Report:
    """The report on one run of the fleet, as `analyze` gives it. Raises as that does."""
    opened = open_path(Path(path))
    return build(analysis_of(opened, lexicon, database=opened.database()), lexicon.knowledge, lang)


def content_key(target: Target, opened: Intake) -> str:
    """A key of all that the row depends on: the bytes of logs and configs, what lies beside them by size and time."""
    digest = blake2b(digest_size=16)
    for log in opened.logs:
        digest.update(f"log {log.name} {log.encoding}\0".encode("utf-8", "surrogateescape"))
        for chunk in log.chunks():
            digest.update(chunk)
    for config in opened.configs:
        digest.update(f"\0config {config.name}\0{config.text}".encode("utf-8", "surrogateescape"))
    if target.kind == "folder":
        beside = [one.rsplit(":", 1)[0] for one in target.signature.split("|")]
        digest.update(("\0beside " + "|".join(beside)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _row(target: Target, opened: Intake, lexicon: Lexicon) -> Row:
    database = _database(opened)
    analysis = analysis_of(opened, lexicon, database=database)
    report = build(analysis, lexicon.knowledge)
    history = tuple(_history(opened, lexicon, analysis)) if len(analysis.attempts) > 1 else ()
    return row_of(target.name, target.path, analysis, report, lexicon.knowledge, history)


def _database(opened: Intake) -> JobDatabase | None:
    """The UI's jobs, read once for all runs of one toolkit."""
    found = jobdb.find(opened.folder, climb=opened.keep is None) if opened.folder is not None else None
    if found is None:
        return None
    state = found.stat()
    return _read_database(str(found), state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_database(path: str, size: int, mtime_ns: int) -> JobDatabase:
    return jobdb.read(Path(path))


def _history(opened: Intake, lexicon: Lexicon, analysis: pipeline.Analysis) -> Iterator[pipeline.Analysis]:
    for one in analyses_of(opened, lexicon):
        if pipeline.same_job(one.attempt, analysis.attempt):
            yield one
