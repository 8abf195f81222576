"""The check for a person at a terminal. Rich lays out text objects; it is given no markup."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.check.document import Check, ConditionItem, FixItem, JobItem, PhaseItem
from postmortem.report import encode, outlook, picture
from postmortem.report.document import ChangeItem
from postmortem.report.page import Page
from postmortem.report.texts import Texts, size

MAX_FIXES = 5
MAX_CHANGES = 6
_STYLES = {"fits": "bold green", "borderline": "bold yellow", "does not fit": "bold red", "unknown": "bold"}
_MARKS = {True: "yes", False: "no", None: "open"}


def render(check: Check, texts: Texts, *, width: int = 80, colour: bool = False, ascii_only: bool = False) -> str:
    """The check as text of `width` columns."""
    page = Page(width, colour=colour)
    for index, job in enumerate(check.jobs):
        for part in (*([Text("")] if index else []), *_job(job, check, texts, page.width, ascii_only)):
            page.add(part)
    if check.input.processes > len(check.jobs):
        page.add(Text("\n" + texts("check.more_processes", {"count": len(check.jobs)})))
    if check.redacted is not None:
        page.add(Text("\n" + check.redacted.says, style="dim"))
    return page.text()


def _job(job: JobItem, check: Check, texts: Texts, width: int, ascii_only: bool) -> Iterator[RenderableType]:
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
    yield from _phases(job, texts, width, ascii_only)
    for phase in job.phases:
        if phase.forecast is not None and phase.forecast.fits in ("borderline", "does not fit"):
            yield from _fixes(phase, texts)
    yield from _risks(job, texts)
    yield from _trial(job, texts)
    if job.warnings:
        yield Text("")
        yield _head(texts("section.warnings"))
        for item in job.warnings:
            yield _bullet("-", encode.plain(item.text))
    yield Text("")
    yield Text(texts("check.not_forecast"), style="dim")


def _phases(job: JobItem, texts: Texts, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    worst = job.phases[0] if job.phases else None
    if worst is not None and worst.forecast is not None:
        rows = picture.forecast(worst.forecast, texts, width, ascii_only) or []
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_column(no_wrap=True)
        for row in rows:
            table.add_row(*row)
        yield Text("")
        yield _head(texts("forecast.title", {"phase": worst.phase, "model": worst.forecast.model}))
        yield Padding(table, (0, 0, 0, 2))
    forecasts = [phase for phase in job.phases if phase.forecast is not None]
    if forecasts:
        yield Text("")
        yield _head(texts("check.section.phases"))
        overview = Table.grid(padding=(0, 2))
        for phase in forecasts:
            overview.add_row(*_overview(phase, texts))
        yield Padding(overview, (0, 0, 0, 2))
    if not job.previews:
        yield Text("  " + texts("check.no_previews"), style="dim")
    reasons = dict.fromkeys(phase.forecast_missing.text for phase in job.phases if phase.forecast_missing is not None)
    for reason in reasons:
        yield Text("  " + reason, style="dim")


def _overview(phase: PhaseItem, texts: Texts) -> tuple[Text, Text, Text]:
    found = phase.forecast
    assert found is not None  # only phases with one are shown
    words = [] if found.usable is None else [texts(f"check.fits.{found.fits}")]
    if found.fits != "fits":
        key = "card_gib" if phase.card_gib is not None else "no_card_gib"
        words.append(texts(f"check.{key}", {"size": phase.card_gib}))
    verdict = "; ".join(words)
    style = _STYLES[found.fits].removeprefix("bold").strip()
    return Text(texts(f"phase.{phase.phase}.title")), Text(outlook.between(found.need)), Text(verdict, style=style)


def _fixes(phase: PhaseItem, texts: Texts) -> Iterator[RenderableType]:
    yield Text("")
    yield _head(texts("check.section.fixes", {"phase": phase.phase}))
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
        yield _head(texts("check.section.ladder", {"phase": phase.phase}))
        for line in lines:
            yield Padding(Text(line), (0, 0, 0, 2))


def _fix(item: FixItem, texts: Texts) -> Iterator[RenderableType]:
    yield Padding(Text(f"{item.rank}. {item.title}", style="bold"), (0, 0, 0, 1))
    for change in item.changes[:MAX_CHANGES]:
        yield Padding(Text(change_line(change), style="cyan"), (0, 0, 0, 4))
    effect = outlook.effect(item, texts)
    if effect:
        yield Padding(Text(effect, style="green" if item.fits == "fits" else ""), (0, 0, 0, 4))
    yield Padding(Text(f"{texts('section.cost')}: {item.cost}", style="dim"), (0, 0, 0, 4))


def _risks(job: JobItem, texts: Texts) -> Iterator[RenderableType]:
    yield Text("")
    yield _head(texts("check.section.risks"))
    if not job.risks:
        yield Text("  " + texts("check.section.no_risks"))
    for item in job.risks:
        guide = f" ({texts('section.guide')} {item.guide})" if item.guide else ""
        style = "red" if item.severity == "high" else "yellow"
        yield _bullet(texts(f"check.severity.{item.severity}"), encode.plain(item.text) + guide, style)
    if job.first_try is not None:
        yield Text("")
        yield _head(texts("check.section.first_try", {"family": job.family}))
        yield Padding(Text(job.first_try.text), (0, 0, 0, 2))


def _trial(job: JobItem, texts: Texts) -> Iterator[RenderableType]:
    trial = job.trial
    yield Text("")
    yield _head(texts("check.section.trial"))
    yield Padding(Text(trial.text), (0, 0, 0, 2))
    for change in trial.changes:
        yield Padding(Text(change_line(change), style="cyan"), (0, 0, 0, 4))
    for condition in trial.conditions:
        yield _condition(condition, texts)
    if trial.watch:
        yield Padding(Text(texts("check.section.watch") + ":"), (0, 0, 0, 2))
        for line in trial.watch:
            yield _bullet("-", line)


def _condition(item: ConditionItem, texts: Texts) -> RenderableType:
    mark = texts(f"check.mark.{_MARKS[item.holds]}")
    style = {True: "green", False: "red", None: ""}[item.holds]
    return _bullet(mark, f"{item.title}: {encode.plain(item.text)}", style)


def change_line(change: ChangeItem) -> str:
    """One edit on one line of visible characters."""
    return f"{change.path}: {encode.value(change.from_)[:80]} → {encode.value(change.to)[:80]}"


def _head(text: str) -> Text:
    return Text(text, style="bold underline")


def _bullet(mark: str, text: str, style: str = "") -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=8, justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text(mark, style=style), Text(text))
    return table
