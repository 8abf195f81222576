"""The report for a person at a terminal: 80 columns and up, readable without colour.

Rich lays out and colours; it is given text objects only, never strings with markup.
"""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.report import encode, outlook, picture
from postmortem.report.document import RemedyItem, Report
from postmortem.report.page import Page
from postmortem.report.texts import Texts, size

_COLOURS = {"gpu_oom": "bold red", "host_oom": "bold red", "vram_spill": "bold yellow", "not_memory": "bold yellow"}
MAX_FIXES = 6
MAX_SETTINGS = 5
MAX_EVIDENCE = 6
MAX_STEPS = 12


def render(report: Report, texts: Texts, *, width: int = 80, colour: bool = False, ascii_only: bool = False) -> str:
    """The report as text of `width` columns."""
    page = Page(width, colour=colour)
    for part in _parts(report, texts, page.width, ascii_only):
        page.add(part)
    if report.redacted is not None:
        page.add(Text("\n" + report.redacted.says, style="dim"))
    return page.text()


def _parts(report: Report, texts: Texts, width: int, ascii_only: bool) -> list[RenderableType]:
    parts: list[RenderableType] = [*_verdict(report, texts), Text(""), _facts(report, texts)]
    drawn = picture.memory(report, texts, min(width - 4, 76), ascii_only)
    if drawn is not None:
        bar, legend = drawn
        table = _grid(1)
        for mark, text in legend:
            table.add_row(mark, text)
        parts += [Text(""), _head(texts("section.memory"))]
        parts += [Padding(bar, (0, 0, 0, 2))] if bar is not None else []
        parts.append(Padding(table, (0, 0, 0, 3)))
    parts += _forecast(report, texts, width, ascii_only)
    if report.settings and report.remedies:
        parts += [Text(""), _settings(report, texts)]
    if report.failure.evidence:
        parts += [Text(""), _head(texts("section.evidence")), _evidence(report, texts, width)]
    if report.remedies:
        parts += [Text(""), _head(texts("section.do"))]
        for item in report.remedies[:MAX_FIXES]:
            parts.append(_remedy(item, texts))
        rest = report.remedies[MAX_FIXES:]
        if rest:
            names = Text("  " + texts("word.also") + ": ", style="dim")
            names.append("; ".join(item.title for item in rest), style="dim")
            parts.append(Padding(names, (0, 0, 0, 0)))
    ladder = outlook.ladder_lines(report.ladder, report.card_needed_gib, texts)
    if ladder:
        parts += [Text(""), _head(texts("forecast.ladder"))]
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in ladder]
    if report.will_not_help:
        parts += [Text(""), _head(texts("section.useless"))]
        parts += [_bullet(f"{item.name}: {encode.plain(item.why)}") for item in report.will_not_help]
    if report.capture:
        parts += [Text(""), _head(texts("section.capture"))]
        parts += [_bullet(item.text) for item in report.capture]
    if report.warnings:
        parts += [Text(""), _head(texts("section.warnings"))]
        parts += [_bullet(_with_line(encode.plain(item.text), item.line, texts)) for item in report.warnings]
    guides = dict.fromkeys(item.guide.url for item in report.remedies if item.guide.section and item.guide.url)
    if guides:
        # without the scheme, the longest of these addresses fits a line, and a broken one is of no use
        parts += [Text(""), _head(texts("section.guide"))]
        parts += [Text(f"  {url.removeprefix('https://')}", style="dim") for url in guides if url]
    topic = report.failure.class_ or report.failure.kind
    parts += [
        Text("") if not guides else Text("", end=""),
        Text(f"{texts('section.explain')}: postmortem explain {topic}", style="dim"),
    ]
    return parts


def _forecast(report: Report, texts: Texts, width: int, ascii_only: bool) -> list[RenderableType]:
    """What the failing phase needs, drawn against the card; nothing where the card did not run out."""
    if report.failure.kind not in ("gpu_oom", "vram_spill") or not report.remedies:
        return []
    rows = picture.forecast(report.forecast, texts, width, ascii_only)
    if rows is None or report.forecast is None:
        return [Text(""), Text(report.forecast_missing.text, style="dim")] if report.forecast_missing else []
    title = {"phase": report.forecast.phase, "model": report.forecast.model}
    table = _grid(None)
    table.add_column(no_wrap=True)
    for row in rows:
        table.add_row(*row)
    parts: list[RenderableType] = [Text(""), _head(texts("forecast.title", title)), Padding(table, (0, 0, 0, 2))]
    parts += [Padding(Text(line, style="dim"), (0, 0, 0, 2)) for line in outlook.forecast_notes(report, texts)]
    return parts


def _verdict(report: Report, texts: Texts) -> list[RenderableType]:
    failure = report.failure
    style = _COLOURS.get(failure.kind, "bold green" if failure.kind == "none" else "bold")
    parts: list[RenderableType] = [Text(encode.plain(failure.headline), style=style)]
    if failure.error is not None:
        parts.append(Text(encode.terminal(failure.error, 300)))
    for factor in failure.factors[:2]:
        parts.append(Text(encode.plain(factor.text)))
    if failure.kind == "unknown" and report.run.outcome == "incomplete" and not failure.factors:
        parts.append(Text(texts("headline.more.incomplete")))
    confidence = texts(f"word.confidence.{failure.confidence}")
    parts.append(Text(f"{texts('section.confidence')}: {confidence}", style="dim"))
    return parts


def _facts(report: Report, texts: Texts) -> RenderableType:
    table = _grid(8)
    run = report.run
    names = [encode.terminal(run.job_name, 60) if run.job_name else None, run.family, trainer_line(report, texts)]
    if report.input.attempts > 1:
        names.append(texts("word.attempt_of", {"attempt": report.input.attempt, "attempts": report.input.attempts}))
    table.add_row(
        _label(texts("section.run")), Text(" · ".join(name for name in names if name) or texts("word.log_does_not_say"))
    )
    table.add_row(_label(texts(when_label(report))), Text(when(report, texts)))
    card = card_line(report, texts)
    if card:
        table.add_row(_label(texts("section.card")), Text(card))
    safe = safe_line(report, texts)
    if safe:
        table.add_row(_label(texts("section.safe")), Text(safe))
    for factor in report.failure.factors[2:5]:
        table.add_row(_label(texts("section.note")), Text(encode.plain(factor.text)))
    for line in note_lines(report, texts):
        table.add_row(_label(texts("section.note")), Text(line))
    return table


def trainer_line(report: Report, texts: Texts) -> str | None:
    """The program, with the dates between which its version lies where the log tells."""
    dated = report.run.dated
    if dated is None:
        return report.run.trainer
    if dated.from_ is None or dated.until is None:
        key = "word.dated_until" if dated.from_ is None else "word.dated_since"
    else:
        key = "word.dated_day" if dated.from_ == dated.until else "word.dated"
    return texts(key, {"since": dated.from_, "until": dated.until})


def note_lines(report: Report, texts: Texts) -> list[str]:
    """What else the reader wants to know of the run: suspects, skipped steps, where a resume had started."""
    lines = [encode.plain(item) for item in report.skips.says] if report.skips else []
    if report.pace.total_s and report.pace.phases:
        named = [f"{texts(f'phase.{item.phase}.title')} {_clock(item.seconds)}" for item in report.pace.phases]
        lines.append(texts("word.took", {"whole": _clock(report.pace.total_s), "phases": ", ".join(named)}))
    steps = [event.step for event in report.oom_events if event.caught and event.phase == "training_step"]
    known = [str(step) for step in steps if step is not None]
    if known and len(steps) > 1:
        shown = ", ".join(known[:MAX_STEPS]) + (" …" if len(known) > MAX_STEPS else "")
        lines.append(texts("word.skipped_steps", {"steps": shown}))
    if report.run.start_step and report.run.outcome in ("failed", "killed"):
        lines.append(texts("word.resumed", {"step": report.run.start_step}))
    return lines


def safe_line(report: Report, texts: Texts) -> str | None:
    """What of a run that did not come to its end is not lost; None where nothing can be said, or need not be."""
    run = report.run
    if run.outcome not in ("failed", "killed", "incomplete", "stopped") or run.safe_source is None:
        return None
    what = "bare" if run.safe_checkpoint is None else "final" if run.safe_step is None else "step"
    key = "word.safe.nothing" if run.safe_source == "nothing" else f"word.safe.{run.safe_source}_{what}"
    return texts(key, {"step": run.safe_step, "name": run.safe_checkpoint})


def _clock(seconds: float) -> str:
    """``H:MM:SS``."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def when_label(report: Report) -> str:
    """Which label the line of `when` carries."""
    return "section.died" if report.run.outcome in ("failed", "killed") else "section.ended"


def when(report: Report, texts: Texts) -> str:
    """At which step, in which phase, how it ended."""
    failure, run = report.failure, report.run
    parts: list[str] = [texts(f"word.outcome.{run.outcome}")]
    stepping = failure.phase in ("training_step", "mid_sampling", "saving", "validation")
    died = run.outcome in ("failed", "killed")
    if failure.kind == "vram_spill":
        key = "word.slow_from"
    elif died or failure.kind not in ("gpu_oom", "host_oom"):
        key = "word.step_of" if run.total_steps else "word.step"
    else:
        key = "word.first_skip"
    if failure.step is not None and stepping:
        parts.append(texts(key, {"step": failure.step, "total": run.total_steps}))
    if failure.phase != "unknown" and failure.kind != "none":
        parts.append(texts(f"phase.{failure.phase}.title"))
    if failure.resource:
        parts.append(texts(f"word.resource.{failure.resource}"))
    return " · ".join(parts)


def card_line(report: Report, texts: Texts) -> str | None:
    """The card's size as sold, and as torch sees it."""
    total = report.memory.gpu_total
    if total is None:
        return None
    from postmortem.vram import card_class_gib

    sold = card_class_gib(total)
    name = texts("word.card_class", {"size": sold}) + ", " if sold else ""
    return f"{name}{texts('memory.capacity')} {size(total)}"


def _settings(report: Report, texts: Texts) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    table.add_row(_head(texts("section.settings")), Text(""), Text(texts("section.from"), style="dim"))
    for row in report.settings[:MAX_SETTINGS]:
        mark = f"  ← {texts('word.the_cause')}" if row.first_fix else ""
        value = Text(encode.value(row.value)[:60] + mark, style="bold" if row.first_fix else "")
        table.add_row(Text("  " + row.path), value, Text(origin(row.source.reveal(), row.line, texts), style="dim"))
    return table


def origin(source: str, line: int | None, texts: Texts) -> str:
    """Where a setting comes from."""
    name = texts("word.default") if source == "default" else source[:24]
    return f"{name}, {texts('section.line')} {line}" if line else name


def _evidence(report: Report, texts: Texts, width: int) -> RenderableType:
    """One row a line, cut to the width: whole lines are in the Markdown and the JSON."""
    items = report.failure.evidence[:MAX_EVIDENCE]
    several = len({item.source.reveal() for item in report.failure.evidence}) > 1
    places = [f"{encode.terminal(item.source, 24)}:{item.line}" if several else str(item.line) for item in items]
    margin = max((cell_len(place) for place in places), default=0) + 2
    rows: list[RenderableType] = []
    for place, item in zip(places, items):
        says = f" ({item.says})"
        shown = encode.terminal(item.text, 400).strip()
        room = max(20, width - margin - 2 - cell_len(says))
        if cell_len(shown) > room:
            shown = set_cell_size(shown, room - 1).rstrip() + "…"
        row = Text(" " * (margin - cell_len(place)) + place + " ", style="dim", no_wrap=True)
        row.append(shown, style="not dim")
        row.append(says)
        rows.append(row)
    return Group(*rows)


def _remedy(item: RemedyItem, texts: Texts) -> RenderableType:
    head = Text(f"{item.rank}. {item.title}", style="bold")
    body: list[RenderableType] = []
    for change in item.changes[:6]:
        body.append(Text(f"{change.path}: {encode.value(change.from_)} → {encode.value(change.to)}", style="cyan"))
    body.append(Text(encode.plain(item.why)))
    effect = outlook.effect(item, texts)
    if effect:
        body.append(Text(effect, style="green" if item.fits == "fits" else ""))
    where = Text(f"{texts('section.ui')}: {item.ui}", style="dim")
    body.append(where)
    section = (item.guide.section or "").replace(" ", "\u00a0").replace(",\u00a0", ", ")
    guide = f" · {texts('section.guide')} {section}" if section else ""
    body.append(Text(f"{texts('section.cost')}: {item.cost}{guide}", style="dim"))
    return Group(Padding(head, (0, 0, 0, 1)), Padding(Group(*body), (0, 0, 0, 4)))


def _with_line(text: str, line: int | None, texts: Texts) -> str:
    return f"{text} ({texts('section.line')} {line})" if line else text


def _grid(label: int | None) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=label, no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _label(text: str) -> Text:
    return Text(text, style="dim")


def _head(text: str) -> Text:
    return Text(text, style="bold underline")


def _bullet(text: str) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=3, justify="right")
    table.add_column(overflow="fold")
    table.add_row(Text("-"), Text(text))
    return table
