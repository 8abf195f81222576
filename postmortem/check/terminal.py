"""The check for a person at a terminal. Rich lays out text objects; it is given no markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from postmortem.check.document import Check, ConditionItem, FixItem, JobItem, PhaseItem
from postmortem.report import encode, outlook, picture
from postmortem.report.document import ChangeItem
from postmortem.report.page import Page, bullet, head, indented, table
from postmortem.report.texts import Texts, size

MAX_FIXES = 5
MAX_CHANGES = 6
MARK = 8
"""Columns of the words in front of risks and conditions."""
_STYLES = {"fits": "bold green", "borderline": "bold yellow", "does not fit": "bold red", "unknown": "bold"}
_MARKS = {True: "yes", False: "no", None: "open"}


def render(check: Check, texts: Texts, *, width: int = 80, colour: bool = False, encoding: str = "utf-8") -> str:
    """The check as text of `width` columns, in characters that `encoding` has."""
    page = Page(width, colour=colour, encoding=encoding)
    for index, job in enumerate(check.jobs):
        for part in (*([Text("")] if index else []), *_job(job, check, texts, page.width, page.blocks)):
            page.add(part)
    if check.input.processes > len(check.jobs):
        page.add(Text("\n" + texts("check.more_processes", {"count": len(check.jobs)})))
    if check.redacted is not None:
        page.add(Text("\n" + check.redacted.says, style="dim"))
    return page.text()


def _job(job: JobItem, check: Check, texts: Texts, width: int, blocks: bool) -> Iterator[RenderableType]:
    yield Text(encode.plain(job.headline), style=_STYLES[job.fits])
    names = [encode.terminal(job.name, 60) if job.name else None, job.family]
    if job.family is None and job.arch is not None:
        names.append(encode.terminal(job.arch, 40))
    if check.input.processes > 1:
        names.append(texts("check.process", {"number": job.process, "count": check.input.processes}))
    if check.card.source is not None and check.card.capacity is not None:
        names.append(texts(f"check.card.{check.card.source}", {"size": size(check.card.capacity)}))
    yield Text(" · ".join(name for name in names if name), style="dim")
    if check.card.capacity is None:
        yield Text(texts("check.card_unknown"))
    if job.fits != "fits" and job.card_gib is not None:
        yield Text(texts("check.card_gib_all", {"size": job.card_gib}))
    yield from _phases(job, texts, width, blocks)
    for phase in job.phases:
        if phase.forecast is not None and phase.forecast.fits in ("borderline", "does not fit"):
            yield from _fixes(phase, texts)
    yield from _risks(job, texts)
    yield from _trial(job, texts)
    if job.warnings:
        yield Text("")
        yield head(texts("section.warnings"))
        for item in job.warnings:
            yield bullet(encode.plain(item.text), width=MARK)
    yield Text("")
    yield Text(texts("check.not_forecast"), style="dim")


def _phases(job: JobItem, texts: Texts, width: int, blocks: bool) -> Iterator[RenderableType]:
    worst = job.phases[0] if job.phases else None
    if worst is not None and worst.forecast is not None:
        rows = picture.forecast(worst.forecast, texts, width, blocks) or []
        made = table("text", "fixed", "fixed")
        for row in rows:
            made.add_row(*row)
        yield Text("")
        yield head(texts("forecast.title", {"phase": worst.phase, "model": worst.forecast.model}))
        yield indented(made)
    forecasts = [phase for phase in job.phases if phase.forecast is not None]
    if forecasts:
        yield Text("")
        yield head(texts("check.section.phases"))
        overview = table("text", "fixed", "text")
        for phase in forecasts:
            overview.add_row(*_overview(phase, texts))
        yield indented(overview)
    if not job.previews:
        yield Text("  " + texts("check.no_previews"), style="dim")
    reasons = dict.fromkeys(phase.forecast_missing.text for phase in job.phases if phase.forecast_missing is not None)
    for reason in reasons:
        yield Text("  " + encode.plain(reason), style="dim")


def _overview(phase: PhaseItem, texts: Texts) -> tuple[Text, Text, Text]:
    found = phase.forecast
    assert found is not None  # only phases with one are shown
    words = [] if found.usable is None else [texts(f"check.fits.{found.fits}")]
    if found.fits != "fits":
        key = "card_gib" if phase.card_gib is not None else "no_card_gib"
        words.append(texts(f"check.{key}", {"size": phase.card_gib}))
    verdict = "; ".join(words)
    style = _STYLES[found.fits].removeprefix("bold").strip()
    return (
        Text(texts(f"phase.{phase.phase}.title")),
        Text(outlook.between(found.need, texts)),
        Text(verdict, style=style),
    )


def _fixes(phase: PhaseItem, texts: Texts) -> Iterator[RenderableType]:
    yield Text("")
    yield head(texts("check.section.fixes", {"phase": phase.phase}))
    if not phase.fixes:
        yield Text("  " + texts("check.section.no_fix"))
    for item in phase.fixes[:MAX_FIXES]:
        yield from _fix(item, texts)
    rest = phase.fixes[MAX_FIXES:]
    if rest:
        yield Padding(
            Text(texts("word.also") + ": " + "; ".join(item.title for item in rest), style="dim"), (0, 0, 0, 2)
        )
    lines = outlook.ladder_lines(phase.ladder, phase.card_needed_gib, texts)
    if lines:
        yield Text("")
        yield head(texts("check.section.ladder", {"phase": phase.phase}))
        for line in lines:
            yield Padding(Text(line), (0, 0, 0, 2))


def _fix(item: FixItem, texts: Texts) -> Iterator[RenderableType]:
    yield bullet(item.title, f"{item.rank}.", "bold", text_style="bold")
    for change in item.changes[:MAX_CHANGES]:
        yield Padding(Text(change_line(change), style="cyan"), (0, 0, 0, 4))
    effect = outlook.effect(item, texts)
    if effect:
        yield Padding(Text(effect, style="green" if item.fits == "fits" else ""), (0, 0, 0, 4))
    yield Padding(Text(f"{texts('section.cost')}: {item.cost}", style="dim"), (0, 0, 0, 4))


def _risks(job: JobItem, texts: Texts) -> Iterator[RenderableType]:
    yield Text("")
    yield head(texts("check.section.risks"))
    if not job.risks:
        yield Text("  " + texts("check.section.no_risks"))
    for item in job.risks:
        guide = f" ({texts('section.guide')} {item.guide})" if item.guide else ""
        style = "red" if item.severity == "high" else "yellow"
        yield bullet(encode.plain(item.text) + guide, texts(f"check.severity.{item.severity}"), style, MARK)
    if job.first_try is not None:
        yield Text("")
        yield head(texts("check.section.first_try", {"family": job.family}))
        yield Padding(Text(job.first_try.text), (0, 0, 0, 2))


def _trial(job: JobItem, texts: Texts) -> Iterator[RenderableType]:
    trial = job.trial
    yield Text("")
    yield head(texts("check.section.trial"))
    yield Padding(Text(trial.text), (0, 0, 0, 2))
    for change in trial.changes:
        yield Padding(Text(change_line(change), style="cyan"), (0, 0, 0, 4))
    for condition in trial.conditions:
        yield _condition(condition, texts)
    if trial.watch:
        yield Padding(Text(texts("check.section.watch") + ":"), (0, 0, 0, 2))
        for line in trial.watch:
            yield bullet(line, width=MARK)


def _condition(item: ConditionItem, texts: Texts) -> RenderableType:
    mark = texts(f"check.mark.{_MARKS[item.holds]}")
    style = {True: "green", False: "red", None: ""}[item.holds]
    return bullet(f"{item.title}: {encode.plain(item.text)}", mark, style, MARK)


def change_line(change: ChangeItem) -> str:
    """One edit on one line of visible characters."""
    return f"{change.path}: {encode.value(change.from_)[:80]} → {encode.value(change.to)[:80]}"
