"""How a report was made: what `verify` needs to make it again."""

from __future__ import annotations

from postmortem.pipeline import Analysis
from postmortem.report import document as doc
from postmortem.text import LogText


def options(analysis: Analysis, *, redacted: bool, ticket: bool) -> doc.OptionsPart:
    """The options that a report is made with."""
    gpu = analysis.beside.gpu_mib
    return doc.OptionsPart(
        attempt=analysis.asked_attempt,
        gpu_gib=None if gpu is None else round(gpu / 1024, 6),
        redacted=redacted,
        ticket=ticket,
    )


def beside(analysis: Analysis) -> doc.BesidePart:
    """What was read besides the log."""
    known = analysis.beside
    return doc.BesidePart(
        configs=[LogText(name) for name in analysis.config_files],
        database=LogText(known.database.name) if known.database is not None else None,
        loss_log=known.skipped_steps is not None,
        folder=known.folder is not None,
        datasets=[one.name for one in known.datasets],
    )
