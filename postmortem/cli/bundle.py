"""`postmortem bundle`: one failed run → a redacted ticket, a zip with report, log excerpt, settings and manifest."""

from __future__ import annotations

from pathlib import Path

import typer

from postmortem.cli import common, guard, inputs, options, output, redaction, ticket
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable


def bundle(
    path: str = typer.Argument(..., metavar="PATH|URL|-", help="A log, a run folder, archive, URL, or -."),
    out: Path | None = typer.Option(None, "-o", "--output", metavar="ZIP", help="The ticket; whole or not at all."),
    config: Path | None = options.CONFIG,
    db: Path | None = options.DATABASE,
    dataset: list[Path] | None = options.DATASET,
    lang: str = options.LANG,
    attempt: int | None = options.ATTEMPT,
    pack: Path | None = options.PATTERNS,
    gpu: float | None = options.GPU,
    redact: bool = typer.Option(True, "--redact/--no-redact", help=redaction.HELP),
    key: Path | None = typer.Option(None, "--redaction-map", metavar="FILE", help=redaction.KEY_HELP),
    max_expanded: int = options.EXPANDED,
    max_ratio: int = options.RATIO,
    max_entries: int = options.ENTRIES,
) -> int:
    """Make a ticket of a run, to attach to an issue or a mail: one zip in which names are replaced by labels."""
    base = common.knowledge(pack)
    target = _target(out)
    lang = common.language_of(base, lang, target)
    redaction.wanted(redact, True, key, target)
    targets = (("-o", target), ("--redaction-map", key))
    guard.refuse(targets, path, config, db, pack, *(dataset or ()))
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
    opened, analysis = inputs.read_run(path, given, base, again=True, targets=targets)
    from postmortem.bundle import build as parts
    from postmortem.report import build
    from postmortem.report.texts import Texts

    report = build(analysis, base, lang, redacted=redact, ticket=True)
    shown = ticket.excerpts(report, opened, analysis, base)
    redactor = redaction.redactor(base, [report, *shown], [analysis]) if redact else None
    report, files = ticket.texts_of(report, shown, analysis, base, redactor)
    content = parts.bundle(report, ticket.logs_of(opened, analysis.scanned.source, redactor), files)
    output.write_bytes(content, target)
    names = ", ".join(parts.ORDER)
    texts = Texts(base, lang)
    output.tell(texts("bundle.wrote", {"file": printable(str(target)), "names": names}))
    if redactor is None:
        output.tell(texts("bundle.open"))
    else:
        redaction.write_key(redactor, key)
        redaction.tell(base, lang, key)
    return 0


def _target(out: Path | None) -> Path:
    if out is None or str(out) == "-":
        raise Failure("bundle writes a file: give -o ticket.zip", USAGE)
    return out
