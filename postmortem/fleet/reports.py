"""The report of each run that failed, beside the page: written by worker processes, a file a run."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from postmortem.files import sweep, write_whole
from postmortem.fleet import pool
from postmortem.fleet.row import Row
from postmortem.fleet.work import report_of
from postmortem.report.document import Report
from postmortem.report.excerpt import Excerpt
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon

SHARE = 8
_OURS = re.compile(r"\.?([0-9a-f]{16})\.html(\.part)?")


class Wanted(msgspec.Struct, frozen=True):
    """A report to write: of the run at `path`, below `folder`, in `lang`; `redact` hides what is personal in it."""

    path: str
    folder: str
    lang: str
    redact: bool

    @property
    def stem(self) -> str:
        """The file's name without its suffix: the same for the same run, and saying nothing of it."""
        return blake2b(os.fsencode(os.path.abspath(self.path)), digest_size=8).hexdigest()  # noqa: PTH100


def report_page(report: Report, excerpt: Excerpt, texts: Texts) -> tuple[str, str]:
    """A report as a page of its own: its suffix and its text."""
    from postmortem.report import html

    return ".html", html.render(report, texts, excerpt)


def wanted(rows: Sequence[Row], paths: Sequence[str], folder: Path, lang: str, *, redact: bool) -> dict[int, Wanted]:
    """The reports that the page links, by the index of their rows: of every run that failed. `paths` says where the
    runs are; what a row says is made to be shown."""
    return {
        index: Wanted(path, str(folder), lang, redact)
        for index, (row, path) in enumerate(zip(rows, paths, strict=True))
        if row.fingerprint is not None and row.duplicate_of is None
    }


def clear(folder: Path, asked: Iterable[Wanted]) -> None:
    """Take away what an earlier page had beside it and this one has not: it may be of other runs, and not redacted.

    Raises OSError.
    """
    kept = {one.stem for one in asked}
    for path in folder.iterdir() if folder.is_dir() else ():
        found = _OURS.fullmatch(path.name)
        if found and (found[1] not in kept or path.name.startswith(".")) and path.is_file():
            path.unlink(missing_ok=True)
    sweep(folder)


def write_all(
    asked: Sequence[Wanted], lexicon: Lexicon, workers: int, pack: Path | None, step: Callable[[], None] | None = None
) -> list[str | None]:
    """Write every report; the file names in order, None for a run that could not be read any more.

    Raises OSError where the folder cannot be written.
    """
    names: list[str | None] = []
    for name in _written(asked, lexicon, workers, pack):
        names.append(name)
        if step is not None:
            step()
    return names


def _written(asked: Sequence[Wanted], lexicon: Lexicon, workers: int, pack: Path | None) -> Iterator[str | None]:
    if workers <= 1 or len(asked) <= 2 * SHARE:
        for one in asked:
            yield _write(one, lexicon)
        return
    done = 0
    with suppress(BrokenProcessPool, pool.NoWorkers), pool.started(workers, pack) as executor:
        shares = [asked[at : at + SHARE] for at in range(0, len(asked), SHARE)]
        waiting = deque(pool.submit(executor, pool.ending, _in_worker, share) for share in shares)
        while waiting:
            for name in pool.answer(executor, waiting.popleft()):
                done += 1
                yield name
    # a worker was killed, or none could be started: the rest is written here, so that the page has all its links
    for one in asked[done:]:
        yield _write(one, lexicon)


def _in_worker(share: Sequence[Wanted]) -> list[str | None]:
    return [_write(one, pool.ready()) for one in share]


def _write(one: Wanted, lexicon: Lexicon) -> str | None:
    try:
        report, excerpt = report_of(one.path, lexicon, one.lang, redact=one.redact)
        suffix, text = report_page(report, excerpt, Texts(lexicon.knowledge, one.lang))
    except Exception:  # what cannot be read now has a row that says so, or has changed since
        for path in Path(one.folder).glob(f"{one.stem}.*"):
            path.unlink(missing_ok=True)  # of an earlier page
        return None
    target = Path(one.folder) / f"{one.stem}{suffix}"
    write_whole(text.encode("utf-8", "replace"), target)
    return target.name
