"""`postmortem check`: a job config before its run → what it needs, what is risky, what to change first."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, guard, inputs, options, output, redaction

if TYPE_CHECKING:
    from postmortem.check import Check
    from postmortem.knowledge.schema import Knowledge


class CheckFormat(str, enum.Enum):
    """How to print the check."""

    terminal = "terminal"
    json = "json"


def check(
    config: Path = typer.Argument(..., metavar="CONFIG", help="The job config (YAML or JSON), as AI Toolkit reads it."),
    gpu: float | None = typer.Option(
        None,
        "--gpu",
        metavar="GIB",
        min=1,
        max=4096,
        help="The card's size in GiB, taken as given; torch sees a little less of it (a 24 GB card: 23.5 to 23.99).",
    ),
    log: str | None = typer.Option(
        None, "--log", metavar="STABLE_RUN", help="A log or run folder of a stable run of this job, to hold it against."
    ),
    format: CheckFormat = typer.Option(CheckFormat.terminal, "--format", help="How to print the check."),
    lang: str = common.LANG,
    out: Path | None = options.OUTPUT,
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
    redact: bool = typer.Option(False, "--redact/--no-redact", help="Replace names, paths and keys by labels."),
    key: Path | None = typer.Option(None, "--redaction-map", metavar="FILE", help=redaction.KEY_HELP),
) -> int:
    """Say before a run whether it will fit, what is risky in it, and whether checkpointing off may be tried.

    Exit status: 0 checked, also where it does not fit; 2 bad usage; 3 unreadable or no job config.
    """
    base = common.knowledge(pack)
    lang = common.language_of(base, lang, out, json=format is CheckFormat.json)
    hide = redaction.wanted(redact, False, key, out)
    targets = (("-o", out), ("--redaction-map", key))
    guard.refuse(targets, config, log, pack)
    inputs.check_gpu(gpu)
    text = inputs.named_config(config)
    analysis = None
    if log is not None:
        opened = inputs.open_input(log)
        guard.refuse_opened(targets, opened)
        analysis = inputs.analysed(opened, log, None, base)
    from postmortem.check import build
    from postmortem.intake.sources import printable_name
    from postmortem.jobconfig import each

    jobs = each(text, base)
    found = build(printable_name(str(config)), jobs, base, lang, gpu_mib=gpu * 1024 if gpu else None, log=analysis)
    if hide:
        redactor = redaction.redactor(base, [], [analysis] if analysis is not None else [])
        redactor.learn(found, [settings for job in jobs for settings in job.given])
        found = redactor.document(found)
        redaction.write_key(redactor, key)
    if format is CheckFormat.json:
        from postmortem.check import json_

        output.write(json_.render(found), out, kind="json")
    else:
        _print(found, base, lang, out)
    if hide:
        redaction.tell(base, lang, key)
    return 0


def _print(found: Check, base: Knowledge, lang: str, out: Path | None) -> None:
    from postmortem.check import terminal
    from postmortem.report.texts import Texts

    to_file = out is not None
    shown = terminal.render(
        found,
        Texts(base, lang),
        width=80 if to_file else output.columns(),
        colour=output.colour_stdout() and not to_file,
        encoding="utf-8" if to_file else output.encoding(),
    )
    output.write(shown, out)
