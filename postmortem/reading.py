"""From what was opened to an analysis: the one way in which a command and the fleet read a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from postmortem import pipeline
from postmortem.faults import Faults
from postmortem.intake import Intake
from postmortem.jobconfig import ConfigText
from postmortem.knowledge.load import history
from postmortem.model import DatasetSizes, JobDatabase, Notice
from postmortem.processes import LARGE
from postmortem.scan import Lexicon

Value = TypeVar("Value")


def sources(opened: Intake, told: Callable[[int], None] | None = None) -> list[pipeline.Source]:
    """The logs of `opened`, to be read once; `told` hears of every piece how many bytes it was."""
    return [pipeline.Source(log.name, log.encoding, log.chunks(told), log.repairs) for log in opened.logs]


def pace_of(opened: Intake) -> pipeline.Pace:
    """How to read the logs of `opened` soonest where nothing else is to do: large ones by two processes."""
    if all(log.size is not None and log.size < LARGE for log in opened.logs):
        return pipeline.Pace()
    from postmortem.ahead import ahead

    return pipeline.Pace(cutting=ahead)


def analysis_of(
    opened: Intake,
    lexicon: Lexicon,
    *,
    config: ConfigText | None = None,
    attempt: int | None = None,
    database: JobDatabase | None = None,
    datasets: Sequence[DatasetSizes] = (),
    gpu_mib: float | None = None,
    loss_log: bool = True,
    folder: bool = True,
    told: Callable[[int], None] | None = None,
    pace: pipeline.Pace = pipeline.Pace(),
) -> pipeline.Analysis:
    """The analysis of the attempt that counts, or of the one asked for. Raises as `pipeline.analyse`, and OSError.

    `loss_log` and `folder` say whether these may speak, where they are there; `told` as in `sources`.
    """
    beside = _beside(opened, database, loss_log=loss_log, folder=folder)
    return pipeline.analyse(
        opened.source,
        sources(opened, told),
        [*([config] if config is not None else []), *opened.configs],
        lexicon,
        attempt=attempt,
        skipped_steps=beside.skipped_steps,
        gpu_mib=gpu_mib,
        folder=beside.folder,
        database=database,
        versions=beside.versions,
        datasets=datasets,
        faults=beside.faults,
        notices=beside.notices,
        pace=pace,
    )


def run_of(
    opened: Intake, lexicon: Lexicon, database: JobDatabase | None = None, pace: pipeline.Pace = pipeline.Pace()
) -> tuple[pipeline.Analysis, tuple[pipeline.Analysis, ...]]:
    """The analysis of the attempt that counts, and of all attempts of its job where there are several; the logs are
    read once. Raises as `pipeline.analyse_run`, and OSError."""
    beside = _beside(opened, database)
    return pipeline.analyse_run(opened.source, sources(opened), opened.configs, lexicon, beside, pace)


def analyses_of(
    opened: Intake,
    lexicon: Lexicon,
    *,
    config: ConfigText | None = None,
    told: Callable[[int], None] | None = None,
    pace: pipeline.Pace = pipeline.Pace(),
) -> tuple[pipeline.Analysis, ...]:
    """An analysis of every attempt; `told` as in `sources`. Raises as `pipeline.analyse_each`, and OSError."""
    configs = [*([config] if config is not None else []), *opened.configs]
    faults = Faults()
    database = faults.guard("database", opened.database, lambda: None)
    beside = _beside(opened, database)
    beside = msgspec.structs.replace(beside, faults=(*faults.found, *beside.faults))
    return pipeline.analyse_each(opened.source, sources(opened, told), configs, lexicon, beside, pace)


def _beside(
    opened: Intake, database: JobDatabase | None, *, loss_log: bool = True, folder: bool = True
) -> pipeline.Beside:
    """What lies beside the logs; what cannot be had through a fault of ours is as what is not there, and said."""
    faults = Faults()
    skipped = faults.guard("loss_log", opened.skipped_steps, lambda: None) if loss_log else None
    found = faults.guard("folder", opened.witness, lambda: None) if folder else None
    versions = faults.guard("dating", history, lambda: None)
    notices = opened.notices
    if loss_log and skipped is None and opened.has_loss_log and not faults.found:
        notices = (*notices, Notice("loss_log_unread"))
    return pipeline.Beside(skipped, None, found, database, versions, (), tuple(faults.found), notices)
