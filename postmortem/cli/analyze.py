"""`postmortem analyze`: one log, run folder or stream → a report."""

from __future__ import annotations

from pathlib import Path

import typer

from postmortem.cli import common, forms, inputs, output


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
    flavor: common.Flavor | None = common.FLAVOR,
    max_chars: int | None = common.MAX_CHARS,
    lang: str = typer.Option("en", "--lang", help="Language of all that people read: en or ko."),
    attempt: int | None = typer.Option(None, "--attempt", metavar="N", help="Report on the N-th attempt in the input."),
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
    gpu: float | None = typer.Option(
        None, "--gpu", metavar="GIB", min=1, max=4096, help="The card's size, if the log does not tell it."
    ),
    redact: bool | None = typer.Option(
        None, "--redact/--no-redact", help="Hide user names, tokens and addresses (default: in Markdown only)."
    ),
    max_expanded: int = typer.Option(4096, "--max-expanded", metavar="MIB", min=1, help="Unpack at most so much."),
    max_ratio: int = typer.Option(1000, "--max-ratio", min=1, help="Unpack at most so many times an archive's size."),
    max_entries: int = typer.Option(10_000, "--max-entries", min=1, help="Look at so many entries of an archive."),
    exit_zero: bool = typer.Option(False, "--exit-zero", help="Exit with 0 also when a memory failure was found."),
) -> int:
    """Say why a run died, and what to change first."""
    base = common.knowledge(pack)
    common.check_language(base, lang)
    common.check_ticket(format, flavor, max_chars)
    inputs.check_gpu(gpu)
    inputs.refuse_overwriting(out, path, config, db)
    opened = inputs.open_input(path, max_expanded, max_ratio, max_entries, again=forms.leaves(format))
    named = inputs.named_config(config) if config is not None else None
    analysis = inputs.analysed(
        opened,
        path,
        named,
        base,
        attempt,
        database=inputs.named_database(opened, db),
        datasets=[inputs.named_dataset(folder) for folder in dataset or ()],
        gpu_gib=gpu,
    )
    from postmortem.report import build

    report = build(analysis, base, lang)
    excerpt = forms.excerpt_of(report, opened) if forms.leaves(format) else None
    if forms.leaves(format) if redact is None else redact:
        from postmortem.report.redact import Redactor

        redactor = Redactor(base)
        report = redactor.document(report)
        excerpt = redactor.excerpt(excerpt) if excerpt is not None else None
    output.write(
        forms.rendered(report, excerpt, base, format, to_file=out is not None, flavor=flavor, max_chars=max_chars),
        out,
    )
    return 1 if report.failure.kind in inputs.MEMORY_KINDS and not exit_zero else 0
