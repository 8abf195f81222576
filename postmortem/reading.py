"""From what was opened to an analysis: the one way in which a command and the fleet read a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from postmortem import pipeline
from postmortem.intake import Intake
from postmortem.jobconfig import ConfigText
from postmortem.knowledge.load import history
from postmortem.model import DatasetSizes, JobDatabase
from postmortem.scan import Lexicon
from postmortem.scan.segments import BULK_FROM


def sources(opened: Intake, told: Callable[[int], None] | None = None) -> list[pipeline.Source]:
    """The logs of `opened`, to be read once; `told` hears of every piece how many bytes it was."""
    return [pipeline.Source(log.name, log.encoding, log.chunks(told), log.repairs) for log in opened.logs]


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
) -> pipeline.Analysis:
    """The analysis of the attempt that counts, or of the one asked for. Raises as `pipeline.analyse`, and OSError.

    `loss_log` and `folder` say whether these may speak, where they are there; `told` as in `sources`.
    """
    return pipeline.analyse(
        opened.source,
        sources(opened, told),
        [*([config] if config is not None else []), *opened.configs],
        lexicon,
        attempt=attempt,
        skipped_steps=opened.skipped_steps() if loss_log else None,
        gpu_mib=gpu_mib,
        folder=opened.witness() if folder else None,
        database=database,
        versions=history(),
        datasets=datasets,
    )


def run_of(
    opened: Intake, lexicon: Lexicon, database: JobDatabase | None = None, *, bulk_from: int = BULK_FROM
) -> tuple[pipeline.Analysis, tuple[pipeline.Analysis, ...]]:
    """The analysis of the attempt that counts, and of all attempts of its job where there are several; the logs are
    read once. `bulk_from` as `scan` takes it. Raises as `pipeline.analyse_run`, and OSError."""
    beside = pipeline.Beside(opened.skipped_steps(), None, opened.witness(), database, history())
    return pipeline.analyse_run(opened.source, sources(opened), opened.configs, lexicon, beside, bulk_from=bulk_from)


def analyses_of(
    opened: Intake,
    lexicon: Lexicon,
    *,
    config: ConfigText | None = None,
    told: Callable[[int], None] | None = None,
) -> tuple[pipeline.Analysis, ...]:
    """An analysis of every attempt; `told` as in `sources`. Raises as `pipeline.analyse_each`, and OSError."""
    configs = [*([config] if config is not None else []), *opened.configs]
    beside = pipeline.Beside(opened.skipped_steps(), None, opened.witness(), opened.database(), history())
    return pipeline.analyse_each(opened.source, sources(opened, told), configs, lexicon, beside)
