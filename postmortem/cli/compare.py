"""`postmortem compare`: two or more attempts → what changed between them, and what that proves."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, guard, inputs, options, output, progress, redaction
from postmortem.cli.errors import USAGE, Failure
from postmortem.faults import VERDICT

if TYPE_CHECKING:
    from postmortem.pipeline import Analysis
    from postmortem.scan import Lexicon

MAX_INPUTS = 40


class CompareFormat(str, enum.Enum):
    """How to print the comparison."""

    terminal = "terminal"
    markdown = "markdown"
    json = "json"


def compare(
    paths: list[str] = typer.Argument(
        ...,
        metavar="FAILED [RETRY...]",
        help="Logs, run folders or archives, oldest first; or one with several attempts.",
    ),
    config: list[Path] = typer.Option(
        [],
        "--config",
        help="A job config for the first input, again for the second, and so on, if the log has none.",
    ),
    format: CompareFormat = typer.Option(CompareFormat.terminal, "--format", help="How to print the comparison."),
    out: Path | None = options.OUTPUT,
    flavor: common.Flavor | None = common.FLAVOR,
    max_chars: int | None = common.MAX_CHARS,
    lang: str = common.LANG,
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
    redact: bool | None = typer.Option(None, "--redact/--no-redact", help=redaction.HELP),
    key: Path | None = typer.Option(None, "--redaction-map", metavar="FILE", help=redaction.KEY_HELP),
) -> int:
    """Say what changed between attempts, how far each got, and what that proves."""
    from postmortem.scan import Lexicon

    base = common.knowledge(pack)
    lang = common.language_of(base, lang, out, json=format is CompareFormat.json)
    common.check_ticket(format is CompareFormat.markdown, flavor, max_chars)
    if len(paths) > MAX_INPUTS:
        raise Failure(f"{len(paths)} inputs; give at most {MAX_INPUTS}", USAGE)
    if len(config) > len(paths):
        raise Failure(f"--config given {len(config)} times for {len(paths)} input(s)", USAGE)
    if paths.count("-") > 1:
        raise Failure("standard input can be one of the inputs only", USAGE)
    hide = redaction.wanted(redact, format is CompareFormat.markdown, key, out)
    targets = (("-o", out), ("--redaction-map", key))
    guard.refuse(targets, *paths, *config, pack)
    lexicon = Lexicon(base)
    given = [*config, *[None] * (len(paths) - len(config))]
    attempts = _attempts(paths, given, lexicon, targets)
    for one in attempts:
        inputs.refuse_faulty(one, VERDICT, "config", "pattern")  # what is missing would pass for what did not change
    from postmortem.compare import build

    comparison = build(attempts, base, lang)
    if hide:
        redactor = redaction.redactor(base, [comparison], attempts)
        comparison = redactor.document(comparison)
        redaction.write_key(redactor, key)
    if format is CompareFormat.json:
        from postmortem.compare import json_

        text = json_.render(comparison)
    else:
        from postmortem.report.texts import Texts

        texts = Texts(base, lang)
        if format is CompareFormat.markdown:
            from postmortem.compare import markdown

            text = markdown.render(
                comparison, texts, flavor=(flavor or common.Flavor.github).value, max_chars=max_chars
            )
        else:
            from postmortem.compare import terminal

            text = terminal.render(
                comparison,
                texts,
                width=80 if out else output.columns(),
                colour=output.colour_stdout() and out is None,
                encoding="utf-8" if out else output.encoding(),
            )
    output.write(text, out, kind="json" if format is CompareFormat.json else "text")
    if hide:
        redaction.tell(base, lang, key)
    return 0


def _attempts(
    paths: list[str], configs: list[Path | None], lexicon: Lexicon, targets: Sequence[guard.Target]
) -> list[Analysis]:
    """Of one input all attempts of the newest one's job; of several, the attempt of each that speaks for it."""
    from postmortem import pipeline
    from postmortem.intake.sources import printable_name

    if len(paths) > 1:
        # the first is there for its failure; of a retry, the newest attempt counts
        first = _read(paths[0], configs[0], lexicon, targets)
        chosen = [_matching(first)]
        return chosen + [_read(path, config, lexicon, targets)[-1] for path, config in zip(paths[1:], configs[1:])]
    every = _read(paths[0], configs[0], lexicon, targets)
    same = [one for one in every if pipeline.same_job(one.attempt, every[-1].attempt)]
    if len(same) < 2:
        raise Failure(
            f"{printable_name(paths[0])}: holds one attempt of its job; give the retry as a second log or folder", USAGE
        )
    return same


def _matching(every: tuple[Analysis, ...]) -> Analysis:
    from postmortem import pipeline

    attempt = pipeline.choose([one.attempt for one in every])
    return next(one for one in every if one.attempt is attempt)


def _read(path: str, config: Path | None, lexicon: Lexicon, targets: Sequence[guard.Target]) -> tuple[Analysis, ...]:
    from postmortem import pipeline
    from postmortem.intake.sources import printable_name
    from postmortem.reading import analyses_of, pace_of

    opened = inputs.open_input(path)
    guard.refuse_opened(targets, opened)
    named = inputs.named_config(config) if config is not None else None
    shown = printable_name(path)
    try:
        with progress.reading(opened.logs) as told:
            return analyses_of(opened, lexicon, config=named, told=told, pace=pace_of(opened))
    except pipeline.NothingRecognised:
        raise inputs.nothing_recognised(shown) from None
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None
