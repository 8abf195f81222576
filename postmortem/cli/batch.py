"""`postmortem batch`: many runs → which died of what, the same failures together, files of rows."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, guard, options, output
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import LogText, named, printable

if TYPE_CHECKING:
    from postmortem.fleet.find import Passed
    from postmortem.fleet.work import Done
    from postmortem.knowledge.schema import Knowledge
    from postmortem.report.texts import Texts


MAX_UNREAD = 5
"""Folders and files that could not be read and are named."""
INTERRUPTED = 130
"""The exit status of what is not whole, as a shell gives it after Ctrl-C."""


class Ranking(str, enum.Enum):
    """By what groups and fixes are ranked."""

    runs = "runs"
    hours = "hours"


class Engine(str, enum.Enum):
    """What analyses the runs."""

    local = "local"
    dask = "dask"


class TableFormat(str, enum.Enum):
    """How to print the rows."""

    table = "table"
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


def batch(
    folders: list[str] = typer.Argument(
        ..., metavar="DIR...", help="Folders with runs, at any depth, here or in a store (s3://...); or single logs."
    ),
    format: TableFormat | None = typer.Option(
        None, "--format", help="How to print the rows: a table, if nothing is said.", show_default=False
    ),
    out: str | None = typer.Option(
        None,
        "-o",
        "--output",
        metavar="FILE",
        callback=options.stdout,
        help="Write there, whole or not at all; with --engine dask a folder: a Parquet data set.",
    ),
    groups_file: Path | None = typer.Option(
        None, "--groups", metavar="FILE", help="Write the groups there too: FILE.json or FILE.csv."
    ),
    html: Path | None = typer.Option(
        None, "--html", metavar="FILE", help="Write one page about all of them, and the failed runs' reports beside it."
    ),
    rank: Ranking = typer.Option(Ranking.runs, "--rank", help="Rank groups and fixes by runs, or by GPU hours lost."),
    redact: bool = typer.Option(
        True, "--redact/--no-redact", help="In the page: labels in place of run names, job names and paths."
    ),
    workers: int = typer.Option(0, "--workers", metavar="N", min=0, help="Processes; 0 means one a core."),
    engine: Engine = typer.Option(Engine.local, "--engine", help="This machine, or a Dask cluster that is there."),
    scheduler: str | None = typer.Option(
        None, "--scheduler", metavar="ADDRESS", help="The cluster's scheduler, such as tcp://10.0.0.1:8786."
    ),
    where: str | None = typer.Option(
        None, "--where", metavar="EXPR", help="Show these rows only, such as \"class == 'bucket_spike'\"."
    ),
    include: list[str] = typer.Option([], "--include", metavar="GLOB", help="Only runs whose path or name matches."),
    exclude: list[str] = typer.Option([], "--exclude", metavar="GLOB", help="No runs whose path or name matches."),
    since: str | None = typer.Option(
        None, "--since", metavar="WHEN", help="Only runs whose log changed since then: 2026-11-30, or 7d, 12h."
    ),
    cache: bool = typer.Option(True, "--cache/--no-cache", help="Keep rows, and read only what has changed."),
    lang: str = common.LANG,
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
) -> int:
    """Say which of many runs died of what, and which fix would save most."""
    base = common.knowledge(pack)
    lang = common.language_of(base, lang, Path(out) if out is not None else None)
    if format is TableFormat.parquet and out is None:
        raise Failure("--format parquet: give -o FILE; it is no text", USAGE)
    if groups_file is not None and groups_file.suffix.lower() not in (".json", ".csv"):
        raise Failure(f"--groups {printable(str(groups_file))}: give a file that ends in .json or .csv", USAGE)
    if (engine is Engine.dask) != (scheduler is not None):
        raise Failure("--engine dask and --scheduler ADDRESS go together", USAGE)
    file = Path(out) if out is not None else None
    parts = scheduler is not None and format in (None, TableFormat.parquet)
    targets: tuple[guard.Target, ...] = (("-o", file), ("--groups", groups_file), ("--html", html))
    for _, target in targets:
        if not (parts and target is file):  # a data set is a folder, which may be there or in a store
            output.check(target)
    targets = tuple((option, target) for option, target in targets if not (parts and target is file))
    guard.refuse(targets, *folders, pack)
    if where is not None:
        _check(where)
    if scheduler is not None and out is not None and parts:
        from postmortem.cli import batch_cluster

        batch_cluster.write(folders, out, base, lang, scheduler, pack, include, exclude, common.since(since), where)
        return 0
    done, whole = _done(
        folders, base, pack, workers or None, include, exclude, since, scheduler, targets, lang, use_cache=cache
    )
    if not done:
        shown = ", ".join(named(folder, 100) for folder in folders[:3])
        asked = [name for name, given in (("include", include), ("exclude", exclude), ("since", since)) if given]
        if asked:
            raise Failure(f"{shown}: no run in it that {' and '.join(f'--{name}' for name in asked)} would let through")
        raise Failure(f"{shown}: no run in it; give a folder with run folders, logs or archives")
    from postmortem.cli import batchout

    batchout.write(
        [one.row for one in done],
        [one.target.path for one in done],
        batchout.Wanted(
            where,
            (format or TableFormat.table).value,
            file,
            groups_file,
            html,
            rank.value,
            lang,
            redact=redact,
            workers=workers,
            pack=pack,
        ),
        base,
    )
    return 0 if whole else INTERRUPTED


def _check(where: str) -> None:
    """Say what is wrong with the expression before hours are spent on logs. Raises Failure."""
    from postmortem.fleet import table
    from postmortem.fleet.query import BadExpression, checked

    try:
        checked(where, list(table.columns()))
    except BadExpression as error:
        raise Failure(f"--where: {printable(str(error))}", USAGE) from None


def _text(words: str | LogText) -> str:
    return words.reveal() if isinstance(words, LogText) else words


def tell_passed(passed: Passed, texts: Texts) -> None:
    """Say what of the folders was not looked into."""
    if passed.links:
        output.tell(texts("fleet.passed.links", {"count": passed.links}))
    if passed.unread:
        first = list(passed.unread.items())[:MAX_UNREAD]
        names = [f"{named(name, 200) or '.'} ({_text(texts.problem(why))})" for name, why in first]
        more = ["…"] * (len(passed.unread) > MAX_UNREAD)
        values = {"count": len(passed.unread), "names": LogText(", ".join(names + more))}
        output.tell(texts("fleet.passed.unread", values))


def _done(
    folders: Sequence[str],
    base: Knowledge,
    pack: Path | None,
    workers: int | None,
    include: Sequence[str],
    exclude: Sequence[str],
    since: str | None,
    scheduler: str | None,
    outputs: Sequence[guard.Target],
    lang: str,
    *,
    use_cache: bool,
) -> tuple[list[Done], bool]:
    """What is done of the runs, and whether that is all of them. Raises Failure."""
    from postmortem import processes
    from postmortem.cli.progress import bar
    from postmortem.fleet import cache, pool
    from postmortem.fleet.find import Passed, find
    from postmortem.fleet.run import done_of
    from postmortem.intake import IntakeError
    from postmortem.knowledge.kept import home
    from postmortem.report.texts import Texts
    from postmortem.scan import Lexicon

    passed = Passed()
    try:
        targets = list(find(folders, include, exclude, common.since(since), passed))
    except IntakeError as error:
        raise Failure(str(error)) from None
    tell_passed(passed, Texts(base, lang))
    guard.refuse_files(outputs, (one.path for one in targets if one.kind != "folder"))
    done: list[Done] = []
    with ExitStack() as held:
        engine = None
        if scheduler is not None:
            from postmortem.cli import batch_cluster

            engine = held.enter_context(batch_cluster.connected(scheduler, base, pack, folders)).rows
        store = cache.Cache(base.version, home() if use_cache else None)
        held.callback(store.close)
        progress = held.enter_context(bar(len(targets)))
        try:
            step = progress.step if progress else None
            found = done_of(targets, Lexicon(base), store, workers or processes.cores(), pack, step, engine)
            with closing(found):
                done.extend(found)
        except pool.NoWorkers:
            raise Failure(
                "no workers can be started here (too little memory, or too many processes); try --workers 1"
            ) from None
        except KeyboardInterrupt:
            if not done:
                raise
            output.tell(f"interrupted: {len(done)} runs are done; what follows is of these, and a new start goes on")
            return done, False
    return done, True
