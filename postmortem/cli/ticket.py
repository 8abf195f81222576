"""What is in a ticket: made by `bundle`, and made again by `verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postmortem.cli import common, forms
from postmortem.cli.errors import Failure

if TYPE_CHECKING:
    from postmortem.bundle.manifest import LogItem
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
) -> tuple[Report, dict[str, str]]:
    """The report as the ticket holds it, and the texts of the ticket's files but for the manifest."""
    from postmortem.bundle import build as ticket
    from postmortem.bundle import jobfile, passages
    from postmortem.report.texts import Texts

    texts = Texts(base, report.lang)
    excerpt, lines = shown
    if redactor is not None:
        report, excerpt, lines = redactor.document(report), redactor.excerpt(excerpt), redactor.excerpt(lines)
    found = {name: forms.rendered(report, excerpt, base, format, to_file=True) for name, format in FORMS}
    found["log-excerpt.txt"] = passages.render(lines, report.input.lines, texts)
    found["config.yaml"] = jobfile.render(report.config, analysis.config.others, texts, texts_too=redactor is None)
    found["README.txt"] = ticket.readme(report, [*found, "README.txt", "manifest.json"], texts)
    return report, found


def logs_of(opened: Intake, reported: str, redactor: Redactor | None) -> list[LogItem]:
    """The checksums of the logs: of their text, in which byte spans count, and of the files. Raises Failure."""
    import hashlib

    from postmortem.bundle.manifest import LogItem
    from postmortem.text import LogText, printable

    found: list[LogItem] = []
    for log in opened.logs:
        text, size = hashlib.sha256(), 0
        file, file_size = hashlib.sha256(), 0
        try:
            for chunk in log.chunks():
                text.update(chunk)
                size += len(chunk)
            if log.path is not None:
                with log.path.open("rb") as stream:
                    while piece := stream.read(1 << 20):
                        file.update(piece)
                        file_size += len(piece)
        except OSError as error:
            raise Failure(f"{printable(log.name)}: {(error.strerror or type(error).__name__).lower()}") from None
        found.append(
            LogItem(
                name=LogText(redactor.text(log.name) if redactor is not None else log.name),
                reported=log.name == reported,
                text_bytes=size,
                text_sha256=text.hexdigest(),
                file_bytes=file_size if log.path is not None else None,
                file_sha256=file.hexdigest() if log.path is not None else None,
            )
        )
    return found
