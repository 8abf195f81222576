"""What several commands read: the run at a path, a config, the UI's database; every fault becomes one line."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from postmortem.cli import common, guard, progress
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import named

if TYPE_CHECKING:
    from postmortem.cli.options import Given
    from postmortem.intake import Intake
    from postmortem.knowledge.schema import Knowledge
    from postmortem.model import DatasetSizes, JobDatabase
    from postmortem.pipeline import Analysis

MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")
MAX_EXPANDED_MIB, MAX_RATIO, MAX_ENTRIES = 4096, 1000, 10_000


def open_input(
    path: str,
    expanded_mib: int = MAX_EXPANDED_MIB,
    ratio: int = MAX_RATIO,
    entries: int = MAX_ENTRIES,
    *,
    again: bool = False,
    stream: BinaryIO | None = None,
) -> Intake:
    """What the user gave at `path` (``-`` is standard input, read through `stream` where one is given).

    `again` if its logs will be read more than once. Raises Failure.
    """
    from postmortem import intake
    from postmortem.intake.packed import Limits

    limits = Limits(expanded_mib, ratio, entries)
    try:
        if not path:
            raise intake.IntakeError("no file name given; give a log, a run folder, or - for standard input")
        if path == "-":
            if stream is None and sys.stdin is None:
                raise intake.IntakeError("standard input is closed; give a log or a run folder")
            return intake.open_stream(stream or sys.stdin.buffer, limits=limits, again=again)
        return intake.open_input(path, limits, again=again)
    except intake.IntakeError as error:
        near = _meant(path)
        raise Failure(f"{error}; did you mean the command `{near}`?" if near else str(error)) from None
    except OSError as error:  # no place for temporary files, a pipe that breaks
        raise Failure(f"{named(path)}: {(error.strerror or type(error).__name__).lower()}") from None


def analysed(
    opened: Intake,
    path: str,
    config: common.ConfigText | None,
    base: Knowledge,
    attempt: int | None = None,
    *,
    database: JobDatabase | None = None,
    datasets: Sequence[DatasetSizes] = (),
    gpu_gib: float | None = None,
    loss_log: bool = True,
    folder: bool = True,
    quiet: bool = False,
) -> Analysis:
    """The analysis of what was opened at `path`; `config` is the one that the user named. Raises Failure.

    `loss_log` and `folder` say whether these may speak, where they are there. A terminal sees how far it is with a
    long log, unless `quiet`.
    """
    from postmortem import pipeline
    from postmortem.intake.sources import printable_name
    from postmortem.reading import analysis_of, pace_of
    from postmortem.scan import Lexicon

    shown = printable_name(path)
    try:
        with progress.reading(opened.logs, quiet=quiet) as told:
            return analysis_of(
                opened,
                Lexicon(base),
                config=config,
                attempt=attempt,
                database=database,
                datasets=datasets,
                gpu_mib=gpu_gib * 1024 if gpu_gib else None,
                loss_log=loss_log,
                folder=folder,
                told=told,
                pace=pace_of(opened),
            )
    except pipeline.NothingRecognised:
        raise nothing_recognised(shown) from None
    except pipeline.NoSuchAttempt as error:
        raise Failure(f"--attempt {attempt}: the input holds {error.count} attempt(s)", USAGE) from None
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None


def read_run(
    path: str,
    given: Given,
    base: Knowledge,
    *,
    again: bool = False,
    stream: BinaryIO | None = None,
    quiet: bool = False,
    targets: Sequence[guard.Target] = (),
) -> tuple[Intake, Analysis]:
    """What lies at `path`, opened and analysed with what the user gave besides; `again` and `stream` as in
    `open_input`, `quiet` as in `analysed`, `targets` are to be written and must not be among it. Raises Failure."""
    check_gpu(given.gpu_gib)
    config = named_config(given.config) if given.config is not None else None
    datasets = [named_dataset(folder) for folder in given.datasets]
    opened = open_input(path, given.expanded_mib, given.ratio, given.entries, again=again, stream=stream)
    guard.refuse_opened(targets, opened)
    analysis = analysed(
        opened,
        path,
        config,
        base,
        given.attempt,
        database=named_database(opened, given.db),
        datasets=datasets,
        gpu_gib=given.gpu_gib,
        quiet=quiet,
    )
    return opened, analysis


def read_again(
    path: str, given: Given, base: Knowledge, beside: object, targets: Sequence[guard.Target] = ()
) -> tuple[Intake, Analysis]:
    """The run at `path` as a report was made of it: of what lies beside the log only what the report says (`beside`)
    that it was made with. An attempt that the input does not hold is as none; `targets` as in `read_run`. Raises
    Failure."""
    import msgspec

    check_gpu(given.gpu_gib)
    opened = open_input(path, given.expanded_mib, given.ratio, given.entries, again=True)
    guard.refuse_opened(targets, opened)
    told = beside if isinstance(beside, dict) else None
    config = named_config(given.config) if given.config is not None else None
    database = named_database(opened, given.db)
    datasets = [named_dataset(folder) for folder in given.datasets]
    if told is not None:
        if not told.get("configs"):
            opened = msgspec.structs.replace(opened, configs=())
        if told.get("database") is None and given.db is None:
            database = None

    def run(attempt: int | None) -> Analysis:
        return analysed(
            opened,
            path,
            config,
            base,
            attempt,
            database=database,
            datasets=datasets,
            gpu_gib=given.gpu_gib,
            loss_log=told is None or told.get("loss_log") is not False,
            folder=told is None or told.get("folder") is not False,
        )

    try:
        return opened, run(given.attempt)
    except Failure as failure:
        if given.attempt is None or failure.status != USAGE:
            raise
        return opened, run(None)


def refuse_faulty(analysis: Analysis, *rooms: str) -> None:
    """Raises Failure where a room failed on which everything depends that is to be said (any, if none is named)."""
    fault = analysis.failed(*rooms) if rooms else next(iter(analysis.faults), None)
    if fault is not None:
        raise Failure(f"internal error ({fault.error}, fault {fault.code}); please report it. --debug shows where.")


def check_gpu(gib: float | None) -> None:
    """Raises Failure where the size of the card is no number."""
    if gib is not None and not math.isfinite(gib):
        raise Failure("--gpu: give the card's size in GiB, such as 24", USAGE)


def nothing_recognised(shown: str) -> Failure:
    """The line for an input that is no log."""
    return Failure(
        f"{shown}: no line in it is one that a training program prints; give the log of a run (2>&1 | tee run.log)"
    )


def named_database(opened: Intake, path: Path | None) -> JobDatabase | None:
    """The jobs of the UI's database. The one that the user named must be usable. Raises Failure."""
    from postmortem.intake import IntakeError

    try:
        return opened.database(path)
    except IntakeError as error:
        raise Failure(str(error)) from None


def named_dataset(folder: Path) -> DatasetSizes:
    """The sizes of the files in a dataset's folder. Raises Failure."""
    from postmortem.intake import IntakeError, dataset

    try:
        return dataset.read(folder)
    except IntakeError as error:
        raise Failure(str(error)) from None


def named_config(path: Path) -> common.ConfigText:
    """The config that the user named: unlike one that lies beside the log, it must be usable. Raises Failure."""
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


def _meant(path: str) -> str | None:
    """The command that a word which is no file looks like."""
    import difflib

    from postmortem.cli.app import COMMANDS

    near = difflib.get_close_matches(path, COMMANDS, n=1, cutoff=0.75) if "/" not in path and "." not in path else []
    return near[0] if near else None
