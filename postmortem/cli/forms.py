"""A report in the form that the user asked for: the one place that picks a renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from postmortem.cli import common, output

if TYPE_CHECKING:
    from postmortem.intake import Intake
    from postmortem.knowledge.schema import Knowledge
    from postmortem.report.document import Report
    from postmortem.report.excerpt import Excerpt

LEAVING = (common.Format.markdown, common.Format.html)
"""Forms made to be sent to somebody: redacted unless the user says no, and shown with an excerpt of the log."""


def leaves(format: common.Format) -> bool:
    """Whether a report in this form is meant to leave the machine."""
    return format in LEAVING


def kind(format: common.Format) -> output.Kind:
    """What a form is, where stdout lacks some of its characters."""
    if format is common.Format.json:
        return "json"
    return "html" if format is common.Format.html else "text"


def excerpt_of(report: Report, opened: Intake) -> Excerpt:
    """The lines around the evidence, read from the log a second time.

    `opened` must have been opened to be read again. What cannot be read any more is left out.
    """
    from postmortem.report.excerpt import cut

    logs = {log.name: log for log in opened.logs}
    try:
        return cut(report, lambda name: logs[name].chunks() if name in logs else None)
    except OSError:
        return cut(report, lambda name: None)


def rendered(
    report: Report,
    excerpt: Excerpt | None,
    base: Knowledge,
    format: common.Format,
    *,
    to_file: bool = False,
    flavor: common.Flavor | None = None,
    max_chars: int | None = None,
) -> str:
    """`report` as `format`; `excerpt` is there for the forms that leave the machine, `flavor` and `max_chars` are
    Markdown's."""
    if format is common.Format.json:
        from postmortem.report import json_

        return json_.render(report)
    from postmortem.report.texts import Texts

    texts = Texts(base, report.lang)
    if format is common.Format.markdown:
        from postmortem.report import markdown

        return markdown.render(
            report, texts, excerpt, flavor=(flavor or common.Flavor.github).value, max_chars=max_chars
        )
    if format is common.Format.html:
        from postmortem.report import html

        return html.render(report, texts, excerpt)
    from postmortem.report import terminal

    colour = output.colour_stdout() and not to_file
    return terminal.render(
        report,
        texts,
        width=80 if to_file else output.columns(),
        colour=colour,
        encoding="utf-8" if to_file else output.encoding(),
    )
