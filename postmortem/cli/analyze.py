"""`postmortem analyze`: one log, run folder or stream → a report."""

from __future__ import annotations

import contextlib
from pathlib import Path

import typer

from postmortem.cli import common, forms, guard, inputs, options, output, redaction
from postmortem.cli import tee as passing
from postmortem.cli.errors import Failure
from postmortem.faults import VERDICT


def analyze(
    path: str = typer.Argument(
        "-",
        metavar="[PATH|URL|-]",
        help="A log, a run folder (or one that holds a single run), archive, URL, or -.",
    ),
    config: Path | None = options.CONFIG,
    db: Path | None = options.DATABASE,
    dataset: list[Path] | None = options.DATASET,
    format: common.Format = typer.Option(common.Format.terminal, "--format", help="How to print the report."),
    out: Path | None = options.OUTPUT,
    flavor: common.Flavor | None = common.FLAVOR,
    max_chars: int | None = common.MAX_CHARS,
    lang: str = options.LANG,
    attempt: int | None = options.ATTEMPT,
    pack: Path | None = options.PATTERNS,
    gpu: float | None = options.GPU,
    redact: bool | None = typer.Option(None, "--redact/--no-redact", help=redaction.HELP),
    key: Path | None = typer.Option(None, "--redaction-map", metavar="FILE", help=redaction.KEY_HELP),
    max_expanded: int = options.EXPANDED,
    max_ratio: int = options.RATIO,
    max_entries: int = options.ENTRIES,
    tee: bool = typer.Option(
        False, "--tee", help="Pass the run that is piped in on to stderr as it comes; the report follows on stdout."
    ),
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Exit with 0 also when a memory failure was found."),
) -> int:
    """Say why a run died, and what to change first."""
    base = common.knowledge(pack)
    lang = common.language_of(base, lang, out, json=format is common.Format.json)
    common.check_ticket(format is common.Format.markdown, flavor, max_chars)
    hide = redaction.wanted(redact, forms.leaves(format), key, out)
    targets = (("-o", out), ("--redaction-map", key))
    guard.refuse(targets, path, config, db, pack, *(dataset or ()))
    if tee:
        passing.check(path)
    given = options.Given(
        config=config,
        db=db,
        datasets=tuple(dataset or ()),
        attempt=attempt,
        gpu_gib=gpu,
        expanded_mib=max_expanded,
        ratio=max_ratio,
        entries=max_entries,
    )
    with passing.standard_input() if tee else contextlib.nullcontext() as stream:
        opened, analysis = inputs.read_run(
            path, given, base, again=forms.leaves(format), stream=stream, quiet=tee, targets=targets
        )
    from postmortem.report import build

    report = build(analysis, base, lang, redacted=hide)
    excerpt = forms.excerpt_of(report, opened) if forms.leaves(format) else None
    if hide:
        redactor = redaction.redactor(base, [report, excerpt], [analysis])
        report = redactor.document(report)
        excerpt = redactor.excerpt(excerpt) if excerpt is not None else None
        redaction.write_key(redactor, key)
    text = forms.rendered(report, excerpt, base, format, to_file=out is not None, flavor=flavor, max_chars=max_chars)
    output.write(text, out, kind=forms.kind(format))
    if hide:
        redaction.tell(base, lang, key)
    if fault := analysis.failed(VERDICT):
        raise Failure(f"the verdict is missing: internal error ({fault.error}, fault {fault.code}); please report it")
    return 1 if report.failure.kind in inputs.MEMORY_KINDS and not exit_zero else 0
