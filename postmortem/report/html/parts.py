"""The document's parts as the page lays them out: facts, fixes with their edits, the config beside the defaults."""

from __future__ import annotations

from typing import Any

import msgspec
from markupsafe import Markup

from postmortem.report import encode_html as encode
from postmortem.report import outlook, summary
from postmortem.report.document import ChangeItem, RemedyItem, Report
from postmortem.report.texts import Texts
from postmortem.text import LogText


class Fact(msgspec.Struct, frozen=True):
    """A label and what stands beside it."""

    label: str
    text: Any


class Edit(msgspec.Struct, frozen=True):
    """One edit of the config: the block it stands in, and the line before and after."""

    path: str
    block: str
    before: Markup
    after: Markup


class Fix(msgspec.Struct, frozen=True):
    """A fix, its edits, and what it does in figures."""

    item: RemedyItem
    edits: list[Edit]
    effect: str | None


class Setting(msgspec.Struct, frozen=True):
    """A setting beside AI Toolkit's default; `matters` where the report is about it."""

    path: str
    value: Any
    default: Any
    source: LogText
    line: int | None
    differs: bool
    cause: bool = False


class Rung(msgspec.Struct, frozen=True):
    """One retry of the ladder, in words."""

    title: str
    need: str
    fits: str


class Config(msgspec.Struct, frozen=True):
    """The settings that matter, the others that differ from their default, and the rest."""

    matter: list[Setting]
    differ: list[Setting]
    same: list[Setting]


def about_the_card(report: Report) -> bool:
    """Whether a forecast of the card's memory has anything to say on this run."""
    return report.failure.kind in ("gpu_oom", "vram_spill") and bool(report.remedies)


def facts(report: Report, texts: Texts) -> list[Fact]:
    """The run in a few lines, as every form has them."""
    run, nothing = report.run, texts("word.log_does_not_say")
    names: list[Any] = [run.job_name] if run.job_name else []
    names += [name for name in (run.family, summary.trainer(report, texts)) if name]
    which = summary.attempt_of(report, texts)
    if which:
        names.append(which)
    found = [
        Fact(texts("section.run"), _joined(names) or nothing),
        Fact(texts(summary.when_label(report)), summary.when(report, texts)),
    ]
    found.append(Fact(texts("section.card"), summary.card(report, texts) or nothing))
    safe = summary.safe(report, texts)
    if safe:
        found.append(Fact(texts("section.safe"), safe))
    found.append(Fact(texts("section.config"), _joined(summary.sources(report, texts), Markup(", ")) or nothing))
    for line in summary.notes(report, texts):
        found.append(Fact(texts("section.note"), line))
    return found


def fixes(report: Report, texts: Texts) -> list[Fix]:
    """All fixes, best first."""
    return [
        Fix(item, [_edit(change) for change in item.changes], outlook.effect(item, texts)) for item in report.remedies
    ]


def config(report: Report) -> Config:
    """The settings, those on top that the report is about."""
    matter = [
        Setting(row.path, row.value, row.default, row.source, row.line, row.value != row.default, row.first_fix)
        for row in report.settings
    ]
    shown = {row.path for row in matter}
    rest: list[Setting] = []
    for path, item in report.config.values.items():
        default = item.value if item.default is msgspec.UNSET else item.default
        if path not in shown:
            rest.append(Setting(path, item.value, default, item.source, item.line, item.value != default))
    return Config(matter, [row for row in rest if row.differs], [row for row in rest if not row.differs])


def ladder(report: Report, texts: Texts) -> list[Rung]:
    """The retries; none where the first fix is all there is."""
    if len(report.ladder) < 2:
        return []
    return [
        Rung(rung.title, outlook.between(rung.need, texts), outlook.verdict(rung.fits, texts)) for rung in report.ladder
    ]


def topic(report: Report, texts: Texts) -> str:
    """The verdict in a word or two."""
    kind = report.failure.kind
    return texts(f"class.{report.failure.class_}.title" if report.failure.class_ else f"kind.{kind}.title")


def torch_versions(report: Report) -> str | None:
    """The releases of torch that the log can be of."""
    found = report.run.torch
    if found is None:
        return None
    return f"≥ {found.from_}" + (f", < {found.until}" if found.until else "") if found.from_ else f"< {found.until}"


def guides(report: Report) -> list[str]:
    """The guide pages that the fixes stand on."""
    urls = [item.guide.url for item in report.remedies if item.guide.section and item.guide.url]
    return list(dict.fromkeys(url for url in urls if url.startswith("https://")))


def _edit(change: ChangeItem) -> Edit:
    block, _, key = change.path.rpartition(".")
    return Edit(
        path=change.path,
        block=block,
        before=encode.config_line(key or change.path, change.from_),
        after=encode.config_line(key or change.path, change.to),
    )


def _joined(items: list[Any], between: Markup = Markup(" · ")) -> Markup:
    return between.join(encode.log(item, 80) if isinstance(item, LogText) else item for item in items)
