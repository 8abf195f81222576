"""What `batch` writes: the table in the form asked for, the groups, the page with its reports."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from postmortem.cli import output
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from postmortem.fleet.groups import FixTotal, Group, Rank
    from postmortem.fleet.row import Row
    from postmortem.knowledge.schema import Knowledge


class Wanted(msgspec.Struct, frozen=True):
    """What the user asked `batch` to write."""

    where: str | None
    format: str
    out: Path | None
    groups: Path | None
    html: Path | None
    rank: str
    lang: str
    redact: bool
    workers: int
    pack: Path | None


class Shown(msgspec.Struct, frozen=True):
    """All rows, those that `--where` lets through, and the table of each."""

    every: list[Row]
    kept: list[Row]
    paths: list[str]
    """Where those that are kept are: a row says that for people only."""
    all_table: pd.DataFrame
    table: pd.DataFrame


def write(rows: list[Row], paths: list[str], wanted: Wanted, base: Knowledge) -> None:
    """Write all that was asked for; the table last, so that what fails leaves stdout empty. Raises Failure."""
    shown = _shown(rows, paths, wanted.where)
    if wanted.groups is not None:
        _groups(shown, wanted, wanted.groups, base)
    if wanted.html is not None:
        _page(shown, wanted, wanted.html, base)
    _table(shown, wanted, base)


def _shown(rows: list[Row], paths: list[str], where: str | None) -> Shown:
    from postmortem.fleet import table
    from postmortem.fleet.query import BadExpression

    every = table.frame(rows)
    kept = every
    if where is not None:
        try:
            kept = table.where(every, where)
        except BadExpression as error:
            raise Failure(f"--where: {printable(str(error))}", USAGE) from None
        for column, text, near in table.unmatched(every, where):
            output.tell(f"--where: no run has the {column} '{text}'; there are {', '.join(near)}")
    return Shown(rows, [rows[index] for index in kept.index], [paths[index] for index in kept.index], every, kept)


def _ranked(shown: Shown, wanted: Wanted, base: Knowledge) -> tuple[list[Group], list[FixTotal]]:
    from postmortem.fleet.groups import fixes_of, groups_of

    by = cast("Rank", wanted.rank)
    groups = groups_of(shown.table, shown.kept, base, shown.all_table, by)
    return groups, fixes_of(shown.table, shown.kept, by)


def _table(shown: Shown, wanted: Wanted, base: Knowledge) -> None:
    from postmortem.fleet import table

    out = wanted.out
    if wanted.format == "csv":
        # a spreadsheet takes a file without the mark for the system's own code page, and garbles Korean names
        output.write(table.to_csv(shown.table), out, encoding="utf-8-sig")
    elif wanted.format == "jsonl":
        output.write(table.to_jsonl(shown.kept), out)
    elif wanted.format == "parquet":
        assert out is not None
        _parquet(shown.table, out)
    else:
        from postmortem.fleet import view
        from postmortem.report.texts import Texts

        colour = output.colour_stdout() and out is None
        width = 80 if out else output.columns()
        by = cast("Rank", wanted.rank)
        texts = Texts(base, wanted.lang)
        groups, fixes = _ranked(shown, wanted, base)
        text = view.render(shown.every, shown.kept, groups, fixes, texts, width=width, colour=colour, by=by)
        output.write(text, out)


def _parquet(table: pd.DataFrame, out: Path) -> None:
    from postmortem.fleet.table import to_parquet

    try:
        content = to_parquet(table)
    except ImportError:
        raise Failure("--format parquet needs pyarrow: pip install 'aitk-postmortem[parquet]'", USAGE) from None
    output.write_bytes(content, out)


def _groups(shown: Shown, wanted: Wanted, target: Path, base: Knowledge) -> None:
    from postmortem.fleet import table
    from postmortem.report.texts import Texts

    groups, fixes = _ranked(shown, wanted, base)
    if target.suffix.lower() == ".json":
        output.write(table.groups_to_json(groups, fixes), target)
        return
    text = table.groups_to_csv(groups, Texts(base, wanted.lang))
    output.write(text, target, encoding="utf-8-sig")


def _page(shown: Shown, wanted: Wanted, target: Path, base: Knowledge) -> None:
    """The page, and beside it the folder of the failed runs' reports; without the page no new folder stays."""
    from postmortem.fleet import reports

    folder = target.with_name(target.stem + "_reports")
    there = folder.exists()
    try:
        _page_and_reports(shown, wanted, target, folder, base)
    except BaseException:
        if not there:
            with suppress(OSError):
                reports.clear(folder, ())
                folder.rmdir()
        raise


def _page_and_reports(shown: Shown, wanted: Wanted, target: Path, folder: Path, base: Knowledge) -> None:
    from postmortem import processes
    from postmortem.cli.progress import bar
    from postmortem.fleet import page, reports, table
    from postmortem.fleet.page.private import private
    from postmortem.report.texts import Texts
    from postmortem.scan import Lexicon

    asked = reports.wanted(shown.kept, shown.paths, folder, wanted.lang, redact=wanted.redact)
    try:
        reports.clear(folder, asked.values())
        if asked:
            folder.mkdir(exist_ok=True)
        with bar(len(asked)) as progress:
            step = progress.step if progress else None
            names = reports.write_all(
                list(asked.values()), Lexicon(base), wanted.workers or processes.cores(), wanted.pack, step
            )
    except OSError as error:
        raise Failure(f"{printable(str(folder))}: cannot write: {(error.strerror or 'error').lower()}") from None
    links = {index: f"{folder.name}/{name}" for index, name in zip(asked, names, strict=True) if name is not None}
    rows = shown.kept
    if wanted.redact:
        # labels first, so that no group names a run by its own name
        rows = private(shown.kept, base)
    renamed = Shown(shown.every, rows, shown.paths, shown.all_table, table.frame(rows))
    groups, fixes = _ranked(renamed, wanted, base)
    by = cast(Literal["runs", "hours"], wanted.rank)
    content = page.Page(rows, shown.every, groups, fixes, links, base.version, by, wanted.redact)
    output.write(page.render(content, Texts(base, wanted.lang)), target)
