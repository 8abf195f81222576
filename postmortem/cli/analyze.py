"""`postmortem analyze`: one log, run folder or stream → a report."""

from __future__ import annotations

from pathlib import Path

import typer

from postmortem.cli import common, forms, inputs, options, output


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
    lang: str = options.LANG,
    attempt: int | None = options.ATTEMPT,
    pack: Path | None = options.PATTERNS,
    gpu: float | None = options.GPU,
    redact: bool | None = typer.Option(
        None, "--redact/--no-redact", help="Hide user names, tokens and addresses (default: in Markdown only)."
    ),
    max_expanded: int = options.EXPANDED,
    max_ratio: int = options.RATIO,
    max_entries: int = options.ENTRIES,
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Exit with 0 also when a memory failure was found."),
) -> int:
    """Say why a run died, and what to change first."""
    base = common.knowledge(pack)
    common.check_language(base, lang)
    inputs.refuse_overwriting(out, path, config, db)
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
    opened, analysis = inputs.read_run(path, given, base, again=forms.leaves(format))
    from postmortem.report import build

    hidden = forms.leaves(format) if redact is None else redact
    report = build(analysis, base, lang, redacted=hidden)
    excerpt = forms.excerpt_of(report, opened) if forms.leaves(format) else None
    if hidden:
        from postmortem.report.redact import Redactor

        redactor = Redactor(base)
        report = redactor.document(report)
        excerpt = redactor.excerpt(excerpt) if excerpt is not None else None
    output.write(forms.rendered(report, excerpt, base, format, to_file=out is not None), out)
    return 1 if report.failure.kind in inputs.MEMORY_KINDS and not exit_zero else 0
