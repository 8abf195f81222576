"""`postmortem analyze`: one log, run folder or stream → a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, output
from postmortem.cli.errors import USAGE, Failure

if TYPE_CHECKING:
    from postmortem.intake import Intake
    from postmortem.knowledge.schema import Knowledge
    from postmortem.model import DatasetSizes, JobDatabase
    from postmortem.report import Report

MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")


def analyze(
    path: str = typer.Argument(
        "-",
        metavar="[PATH|URL|-]",
        help="A log, a run folder (or one that holds a single run), archive, URL, or -.",
    ),
    config: Path | None = typer.Option(
        None, "--config", help="The job config (YAML or JSON), if the log does not hold it."
    ),
    db: Path | None = typer.Option(
        None, "--db", metavar="FILE", help="The UI's database (aitk_db.db), if it is not in the toolkit's folder."
    ),
    dataset: list[Path] | None = typer.Option(
        None,
        "--dataset",
        metavar="DIR",
        help="A dataset's folder, if the log lacks its bucket table; once for each, in the config's order or by name.",
    ),
    format: common.Format = typer.Option(common.Format.terminal, "--format", help="How to print the report."),
    out: Path | None = typer.Option(None, "-o", "--output", metavar="FILE", help="Write there, whole or not at all."),
    lang: str = typer.Option("en", "--lang", help="Language of all that people read: en or ko."),
    attempt: int | None = typer.Option(None, "--attempt", metavar="N", help="Report on the N-th attempt in the input."),
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
    redact: bool | None = typer.Option(
        None, "--redact/--no-redact", help="Hide user names, tokens and addresses (default: in Markdown only)."
    ),
    max_expanded: int = typer.Option(4096, "--max-expanded", metavar="MIB", min=1, help="Unpack at most so much."),
    max_ratio: int = typer.Option(1000, "--max-ratio", min=1, help="Unpack at most so many times an archive's size."),
    max_entries: int = typer.Option(10_000, "--max-entries", min=1, help="Look at so many entries of an archive."),
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Exit with 0 also when a memory failure was found."),
) -> int:
    """Say why a run died, and what to change first."""
    from postmortem import pipeline
    from postmortem.scan import Lexicon

    base = common.knowledge(pack)
    from postmortem.knowledge.load import history

    common.check_language(base, lang)
    opened = _open(path, max_expanded, max_ratio, max_entries)
    configs = list(opened.configs)
    if config is not None:
        configs.insert(0, _config(config))
    database = _database(opened, db)
    datasets = [_dataset(folder) for folder in dataset or ()]
    logs = [pipeline.Source(log.name, log.encoding, log.chunks(), log.repairs) for log in opened.logs]
    from postmortem.intake.sources import printable_name

    shown = printable_name(path)
    try:
        analysis = pipeline.analyse(
            opened.source,
            logs,
            configs,
            Lexicon(base),
            attempt=attempt,
            skipped_steps=opened.skipped_steps(),
            folder=opened.witness(),
            database=database,
            versions=history(),
            datasets=datasets,
        )
    except pipeline.NothingRecognised:
        raise Failure(
            f"{shown}: no line in it is one that a training program prints; give the log of a run (2>&1 | tee run.log)"
        ) from None
    except pipeline.NoSuchAttempt as error:
        raise Failure(f"--attempt {attempt}: the input holds {error.count} attempt(s)", USAGE) from None
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None
    from postmortem.report import build

    report = build(analysis, base, lang)
    if redact or (redact is None and format is common.Format.markdown):
        from postmortem.report.redact import redact as hide

        report = hide(report, base)
    output.write(_render(report, base, format, to_file=out is not None), out)
    return 1 if report.failure.kind in MEMORY_KINDS and not exit_zero else 0


def _open(path: str, expanded_mib: int, ratio: int, entries: int) -> Intake:
    from postmortem.intake import IntakeError, open_input, open_stream
    from postmortem.intake.packed import Limits

    limits = Limits(expanded_mib, ratio, entries)
    try:
        if not path:
            raise IntakeError("no file name given; give a log, a run folder, or - for standard input")
        if path == "-":
            if sys.stdin is None:
                raise IntakeError("standard input is closed; give a log or a run folder")
            return open_stream(sys.stdin.buffer, limits=limits)
        return open_input(path, limits)
    except IntakeError as error:
        near = _meant(path)
        raise Failure(f"{error}; did you mean the command `{near}`?" if near else str(error)) from None


def _meant(path: str) -> str | None:
    """The command that a word which is no file looks like."""
    import difflib

    from postmortem.cli.app import COMMANDS

    near = difflib.get_close_matches(path, COMMANDS, n=1, cutoff=0.75) if "/" not in path and "." not in path else []
    return near[0] if near else None


def _database(opened: Intake, path: Path | None) -> JobDatabase | None:
    """The jobs of the UI's database. The one that the user named must be usable."""
    from postmortem.intake import IntakeError

    try:
        return opened.database(path)
    except IntakeError as error:
        raise Failure(str(error)) from None


def _dataset(folder: Path) -> DatasetSizes:
    from postmortem.intake import IntakeError, dataset

    try:
        return dataset.read(folder)
    except IntakeError as error:
        raise Failure(str(error)) from None


def _config(path: Path) -> common.ConfigText:
    """The config that the user named: unlike one that lies beside the log, it must be usable."""
    from postmortem.intake import IntakeError
    from postmortem.intake.sources import printable_name, read_config
    from postmortem.jobconfig.parse import ConfigProblem, parse

    try:
        text = read_config(path)
        parse(text.text)
    except IntakeError as error:
        raise Failure(str(error)) from None
    except ConfigProblem as problem:
        where = f":{problem.line}" if problem.line else ""
        raise Failure(f"{printable_name(path)}{where}: {problem.problem}; give the job's YAML or JSON") from None
    return text


def _render(report: Report, base: Knowledge, format: common.Format, *, to_file: bool) -> str:
    if format is common.Format.json:
        from postmortem.report import json_

        return json_.render(report)
    from postmortem.report.texts import Texts

    texts = Texts(base, report.lang)
    if format is common.Format.markdown:
        from postmortem.report import markdown

        return markdown.render(report, texts)
    from postmortem.report import terminal

    colour = output.colour_stdout() and not to_file
    ascii_only = not to_file and not output.unicode_stdout()
    return terminal.render(
        report, texts, width=80 if to_file else output.columns(), colour=colour, ascii_only=ascii_only
    )
