"""The page: templates filled with the document, one style, one script, and a policy that allows only these."""

from __future__ import annotations

from functools import cache

import jinja2
from markupsafe import Markup

from postmortem.report import encode_html as encode
from postmortem.report import outlook, shell, summary
from postmortem.report.document import Report
from postmortem.report.excerpt import Excerpt
from postmortem.report.html import parts, picture_memory, picture_phases, picture_steps
from postmortem.report.html.buckets import shapes
from postmortem.report.html.proof import Proof
from postmortem.report.texts import Texts
from postmortem.text import LogText

DEFAULT = LogText("default")
"""The source of a setting that no config gives."""
LOG = LogText("log")
"""The source of one that stands in the log's own dump of the config."""


def render(report: Report, texts: Texts, excerpt: Excerpt | None = None) -> str:
    """The report as one HTML file; without an `excerpt`, the lines of evidence stand by themselves."""
    proof = Proof(report, excerpt)
    style, script = shell.styled(_asset("style.css")), _asset("copy.js")
    settings = parts.config(report)
    need = picture_memory.forecast(report, texts) if parts.about_the_card(report) else None
    return (
        _page()
        .render(
            report=report,
            t=texts,
            proof=proof,
            facts=parts.facts(report, texts),
            fixes=parts.fixes(report, texts),
            config=settings,
            set_so=[row for row in settings.matter if row.cause and row.source != DEFAULT],
            memory=picture_memory.at_failure(report, texts),
            need=need,
            notes=outlook.forecast_notes(report, texts),
            missing=report.forecast_missing.text if report.forecast_missing and parts.about_the_card(report) else None,
            ladder=parts.ladder(report, texts),
            dated=summary.trainer(report, texts) if report.run.dated else None,
            torch=parts.torch_versions(report),
            timed=any(item.time for item in report.timeline),
            topic=parts.topic(report, texts),
            phases=picture_phases.phases(report, texts),
            steps=picture_steps.steps(report, texts),
            shapes=shapes(report),
            guides=parts.guides(report),
            policy=shell.policy(style, script),
            style=Markup(style),  # noqa: S704 (our own file)
            script=Markup(script),  # noqa: S704
        )
        .rstrip("\n")
        + "\n"
    )


@cache
def _environment() -> jinja2.Environment:
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("postmortem.report", "html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=encode.shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        value=encode.value,
        log=encode.log,
        breakable=encode.breakable,
        clock=picture_phases.clock,
        short=lambda url: url.removeprefix("https://"),
    )
    found.tests.update(default=lambda source: source == DEFAULT, log=lambda source: source == LOG)
    return found


@cache
def _page() -> jinja2.Template:
    return _environment().get_template("page.html.j2")


@cache
def _asset(name: str) -> str:
    loader = _environment().loader
    assert loader is not None  # given above
    text, _, _ = loader.get_source(_environment(), name)
    return text.replace("\r\n", "\n")
