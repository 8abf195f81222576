"""From what was opened to an analysis: the one way in which a command and the fleet read a run."""

from __future__ import annotations

from collections.abc import Sequence

from postmortem import pipeline
from postmortem.intake import Intake
from postmortem.jobconfig import ConfigText
from postmortem.knowledge.load import history
from postmortem.model import DatasetSizes, JobDatabase
from postmortem.scan import Lexicon


def sources(opened: Intake) -> list[pipeline.Source]:
    """The logs of `opened`, to be read once."""
    return [pipeline.Source(log.name, log.encoding, log.chunks(), log.repairs) for log in opened.logs]


def analysis_of(
    opened: Intake,
    lexicon: Lexicon,
    *,
    config: ConfigText | None = None,
    attempt: int | None = None,
    database: JobDatabase | None = None,
    datasets: Sequence[DatasetSizes] = (),
    gpu_mib: float | None = None,
) -> pipeline.Analysis:
    """The analysis of the attempt that counts, or of the one asked for. Raises as `pipeline.analyse`, and OSError."""
    return pipeline.analyse(
        opened.source,
        sources(opened),
        [*([config] if config is not None else []), *opened.configs],
        lexicon,
        attempt=attempt,
        skipped_steps=opened.skipped_steps(),
        gpu_mib=gpu_mib,
        folder=opened.witness(),
        database=database,
        versions=history(),
        datasets=datasets,
    )


def run_of(
    opened: Intake, lexicon: Lexicon, database: JobDatabase | None = None
) -> tuple[pipeline.Analysis, tuple[pipeline.Analysis, ...]]:
    """The analysis of the attempt that counts, and of all attempts of its job where there are several; the logs are
    read once. Raises as `pipeline.analyse_run`, and OSError."""
    beside = pipeline.Beside(opened.skipped_steps(), None, opened.witness(), database, history())
    return pipeline.analyse_run(opened.source, sources(opened), opened.configs, lexicon, beside)


def analyses_of(opened: Intake, lexicon: Lexicon, database: JobDatabase | None = None) -> tuple[pipeline.Analysis, ...]:
    """An analysis of every attempt. Raises as `pipeline.analyse_each`, and OSError."""
    beside = pipeline.Beside(opened.skipped_steps(), None, opened.witness(), database, history())
    return pipeline.analyse_each(opened.source, sources(opened), opened.configs, lexicon, beside)
