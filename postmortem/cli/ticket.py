"""What is in a ticket: made by `bundle`, and made again by `verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postmortem.cli import common, forms

if TYPE_CHECKING:
    from postmortem.intake import Intake
    from postmortem.knowledge.schema import Knowledge
    from postmortem.pipeline import Analysis
    from postmortem.report import Report
    from postmortem.report.excerpt import Excerpt
    from postmortem.report.redact import Redactor

FORMS = (
    ("report.html", common.Format.html),
    ("report.md", common.Format.markdown),
    ("report.json", common.Format.json),
)
"""The reports in a ticket: file name and format."""
READ = ("report.html", "report.md", "log-excerpt.txt", "config.yaml", "README.txt")
"""The files of a ticket that people read; the other two are for programs."""
Excerpts = tuple["Excerpt", "Excerpt"]


def excerpts(report: Report, opened: Intake, analysis: Analysis, base: Knowledge) -> Excerpts:
    """The lines of the log that the reports show, and those of the ticket's own excerpt: unredacted."""
    from postmortem.bundle import passages
    from postmortem.report.texts import Texts

    source = analysis.scanned.source
    log = next(one for one in opened.logs if one.name == source)
    return forms.excerpt_of(report, opened), passages.gather(report, log.chunks, source, Texts(base, report.lang))


def texts_of(
    report: Report,
    shown: Excerpts,
    analysis: Analysis,
    base: Knowledge,
    redactor: Redactor | None,
    *,
    originals: bool = False,
) -> tuple[Report, dict[str, str]]:
    """The report as the ticket holds it, and the texts of the ticket's files but for the manifest.

    With `originals`, line for line the same files, with what stands in the log in place of the labels.
    """
    import msgspec

    from postmortem.bundle import build as ticket
    from postmortem.bundle import jobfile, passages
    from postmortem.report.texts import Texts

    texts = Texts(base, report.lang)
    excerpt, lines = shown
    if redactor is not None and originals:
        report = msgspec.structs.replace(report, redacted=redactor.document(report).redacted)
    elif redactor is not None:
        report, excerpt, lines = redactor.document(report), redactor.excerpt(excerpt), redactor.excerpt(lines)
    found = {name: forms.rendered(report, excerpt, base, format, to_file=True) for name, format in FORMS}
    found["log-excerpt.txt"] = passages.render(lines, report.input.lines, texts)
    found["config.yaml"] = jobfile.render(report.config, analysis.config.others, texts, texts_too=redactor is None)
    found["README.txt"] = ticket.readme(report, [*found, "README.txt", "manifest.json"], texts)
    return report, found


def differing(
    files: dict[str, bytes],
    known: set[str],
    report: Report,
    shown: Excerpts,
    analysis: Analysis,
    base: Knowledge,
    redactor: Redactor | None,
) -> list[tuple[str, str | None, str | None]]:
    """The lines of a ticket's files that the log does not give, each with its place and the line that it gives.

    Files in `known` are passed over.
    """
    from functools import cache

    from postmortem.verify import files as lines

    _, made = texts_of(report, shown, analysis, base, redactor)
    for name in ("report.json", *known):  # the report is compared value by value
        made.pop(name, None)
    plain = cache(lambda: texts_of(report, shown, analysis, base, redactor, originals=True)[1])
    return [(f"{one.name}:{one.line}", one.sent, one.made) for one in lines.check(files, made, plain)]
