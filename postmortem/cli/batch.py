"""`postmortem batch`: many runs → which died of what, the same failures together, files of rows."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, inputs, output
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

if TYPE_CHECKING:
    from postmortem.fleet.row import Row
    from postmortem.knowledge.schema import Knowledge


class TableFormat(str, enum.Enum):
    """How to print the rows."""

    table = "table"
    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


def batch(
    folders: list[Path] = typer.Argument(..., metavar="DIR…", help="Folders with runs, at any depth; or single logs."),
    format: TableFormat = typer.Option(TableFormat.table, "--format", help="How to print the rows."),
    out: Path | None = typer.Option(None, "-o", "--output", metavar="FILE", help="Write there, whole or not at all."),
    workers: int = typer.Option(0, "--workers", metavar="N", min=0, help="Processes; 0 means one a core."),
    where: str | None = typer.Option(
        None, "--where", metavar="EXPR", help="Show these rows only, such as \"class == 'bucket_spike'\"."
    ),
    include: list[str] = typer.Option([], "--include", metavar="GLOB", help="Only runs whose path or name matches."),
    exclude: list[str] = typer.Option([], "--exclude", metavar="GLOB", help="No runs whose path or name matches."),
    since: str | None = typer.Option(
        None, "--since", metavar="WHEN", help="Only runs whose log changed since then: 2026-11-30, or 7d, 12h."
    ),
    cache: bool = typer.Option(True, "--cache/--no-cache", help="Keep rows, and read only what has changed."),
    lang: str = typer.Option("en", "--lang", help="Language of all that people read: en or ko."),
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
) -> int:
    """Say which of many runs died of what, and which fix would save most."""
    base = common.knowledge(pack)
    common.check_language(base, lang)
    if format is TableFormat.parquet and out is None:
        raise Failure("--format parquet: give -o FILE; it is no text", USAGE)
    for folder in folders:
        inputs.refuse_overwriting(out, folder)
    rows = list(_rows(folders, base, pack, workers or None, include, exclude, since, use_cache=cache))
    if not rows:
        shown = ", ".join(printable(str(folder))[:100] for folder in folders[:3])
        raise Failure(f"{shown}: no run in it; give a folder with run folders, logs or archives")
    _write(rows, where, format, out, base, lang)
    return 0


def _rows(
    folders: Sequence[Path],
    base: Knowledge,
    pack: Path | None,
    workers: int | None,
    include: Sequence[str],
    exclude: Sequence[str],
    since: str | None,
    *,
    use_cache: bool,
) -> Iterator[Row]:
    from postmortem.cli.progress import bar
    from postmortem.fleet import cache, pool
    from postmortem.fleet.find import find
    from postmortem.fleet.run import rows_of
    from postmortem.intake import IntakeError
    from postmortem.scan import Lexicon

    try:
        targets = list(find(folders, include, exclude, common.since(since)))
    except IntakeError as error:
        raise Failure(str(error)) from None
    store = cache.Cache(base.version, cache.home() if use_cache else None)
    done: list[Row] = []
    with bar(len(targets)) as progress:
        try:
            step = progress.step if progress else None
            done.extend(rows_of(targets, Lexicon(base), store, workers or pool.cores(), pack, step))
        except KeyboardInterrupt:
            output.tell(f"interrupted: {len(done)} runs are done; what follows is of these, and a new start goes on")
        finally:
            store.close()
    yield from done


def _write(
    rows: list[Row], where: str | None, format: TableFormat, out: Path | None, base: Knowledge, lang: str
) -> None:
    from postmortem.fleet import table
    from postmortem.fleet.query import BadExpression

    every = table.frame(rows)
    shown = every
    if where is not None:
        try:
            shown = table.where(every, where)
        except BadExpression as error:
            raise Failure(f"--where: {printable(str(error))}", USAGE) from None
    kept = [rows[index] for index in shown.index]
    if format is TableFormat.csv:
        output.write(table.to_csv(shown), out)
    elif format is TableFormat.jsonl:
        output.write(table.to_jsonl(kept), out)
    elif format is TableFormat.parquet:
        assert out is not None
        _parquet(shown, out)
    else:
        from postmortem.fleet import view
        from postmortem.fleet.groups import groups_of
        from postmortem.report.texts import Texts

        colour = output.colour_stdout() and out is None
        width = 80 if out else output.columns()
        groups = groups_of(shown, kept)
        output.write(view.render(rows, kept, groups, Texts(base, lang), width=width, colour=colour), out)


def _parquet(shown: object, out: Path) -> None:
    from io import BytesIO

    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise Failure("--format parquet needs pyarrow: pip install 'aitk-postmortem[parquet]'", USAGE) from None
    buffer = BytesIO()
    shown.to_parquet(buffer, index=False)  # type: ignore[attr-defined]
    output.write_bytes(buffer.getvalue(), out)
