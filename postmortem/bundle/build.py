"""Put the parts of a ticket together; nothing here touches files, clock or environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from postmortem.bundle import manifest as manifests
from postmortem.bundle.archive import pack
from postmortem.report.document import Report
from postmortem.report.encode import plain
from postmortem.report.texts import Texts

ORDER = ("report.html", "report.md", "report.json", "log-excerpt.txt", "config.yaml", "manifest.json", "README.txt")
"""The files as a reader wants them."""


def bundle(report: Report, logs: Sequence[manifests.LogItem], texts: Mapping[str, str]) -> bytes:
    """The ticket's bytes: the same parts give the same bytes. `texts` are its files but for the manifest, by name."""
    files = {name: text.encode() for name, text in texts.items()}
    files["manifest.json"] = manifests.render(manifests.describe(report, logs, files)).encode()
    return pack(files)


def readme(report: Report, names: Sequence[str], texts: Texts) -> str:
    """What a reader finds in the ticket, in the report's language: the verdict first."""
    listed = [name for name in ORDER if name in names]
    width = max(len(name) for name in listed)
    hidden = "bundle.redacted" if report.input.options.redacted else "bundle.not_redacted"
    first = report.remedies[0].title if report.remedies else None
    lines = [
        texts("bundle.title"),
        "",
        plain(report.failure.headline),
        *([texts("bundle.first_fix", {"title": first})] if first else []),
        "",
        *(f"{name:<{width}}  {texts(f'bundle.file.{name}')}" for name in listed),
        "",
        texts("bundle.check"),
        "    postmortem verify ticket.zip run.log",
        "",
        texts(hidden),
        texts("bundle.made_by", {"version": report.tool.version, "patterns": report.tool.patterns}),
    ]
    return "\n".join(lines) + "\n"
