"""The parts of a report's ticket that are folded away: evidence, other fixes, figures, settings, notes, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from postmortem.report import encode, outlook, summary
from postmortem.report import encode_ticket as cutting
from postmortem.report.document import RemedyItem, Report, Span
from postmortem.report.excerpt import Excerpt, ExcerptLine, Passage
from postmortem.report.texts import Texts, size
from postmortem.report.ticket.blocks import (
    Block,
    Bullets,
    Fold,
    Heading,
    Links,
    Paragraph,
    Section,
    Verbatim,
    table,
)
from postmortem.text import LogText, Words

Fix = Callable[[RemedyItem, Report, Texts, str, str], Iterator[Block]]

MAX_FIXES = 12
MAX_SETTINGS = 40
MAX_NOTES = 40
SHORT_NOTES = 4
HEAD, TAIL = 6, 24
"""Rows of the timeline shown, from its start and from its end."""
_LEDGER = ("capacity", "other_processes", "non_pytorch", "allocated", "reserved_unallocated", "unexplained", "free")


def evidence(report: Report, texts: Texts, excerpt: Excerpt | None) -> Section:
    """The excerpt of the log with its evidence marked; shorter, the evidence alone."""
    name = texts("ticket.name.evidence")
    proven: dict[LogText, list[ExcerptLine]] = {}
    for item in report.failure.evidence:
        proven.setdefault(item.source, []).append(ExcerptLine(item.line, item.text, item.what, item.says))
    alone = Excerpt([Passage(source, lines) for source, lines in proven.items()])
    whole = excerpt if excerpt is not None and excerpt.passages else alone
    forms = tuple(_excerpt(*form, texts) for form in ((whole, 500), (alone, 300), (alone, 120)))
    return Section(name, (*forms, ()), (40, 72, 76))


def _excerpt(excerpt: Excerpt, limit: int, texts: Texts) -> tuple[Block, ...]:
    if not excerpt.passages:
        return ()
    several = len({passage.source for passage in excerpt.passages}) > 1
    width = max((len(str(line.line)) for passage in excerpt.passages for line in passage.lines), default=1)
    blocks: list[Block] = []
    shown: list[LogText] = []
    source: LogText | None = None
    for passage in excerpt.passages:
        if shown and passage.source != source:
            blocks.append(Verbatim(tuple(shown)))
            shown = []
        if several and passage.source != source:
            blocks.append(Paragraph((Words(passage.source),)))
        if shown:
            shown.append(LogText(" " * (width + 2) + "…"))
        source = passage.source
        shown += [_excerpt_line(line, width, limit) for line in passage.lines]
    count = sum(len(passage.lines) for passage in excerpt.passages)
    return (Fold(Words(texts("ticket.fold.evidence", {"count": count})), (*blocks, Verbatim(tuple(shown)))),)


def _excerpt_line(line: ExcerptLine, width: int, limit: int) -> LogText:
    text = line.text.reveal().rstrip()
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    mark = ">" if line.what else " "
    return LogText(f"{mark} {line.line:>{width}}  {text}" + (f"   <- {line.says}" if line.says else ""))


def other_fixes(report: Report, texts: Texts, fix: Fix) -> Section:
    """The fixes after the first, and the ladder; shorter, their titles."""
    name = texts("ticket.name.fixes")
    others = report.remedies[1 : 1 + MAX_FIXES]
    if not others:
        return Section(name, ((),))
    summary_line = Words(texts("ticket.fold.fixes", {"count": len(report.remedies) - 1}))
    ladder = outlook.ladder_lines(report.ladder, report.card_needed_gib, texts)
    climb: list[Block] = []
    if ladder:
        climb = [Heading(Words(texts("forecast.ladder"))), Paragraph(tuple(Words(line) for line in ladder))]
    full = [block for item in others for block in fix(item, report, texts, "", "full")]
    brief = [block for item in others for block in fix(item, report, texts, "", "short")]
    titles = Bullets(tuple(Words(item.title) for item in others))
    forms = tuple((Fold(summary_line, tuple(inside)),) for inside in ([*full, *climb], [*brief, *climb], [titles]))
    return Section(name, (*forms, ()), (30, 55, 70))


def memory(report: Report, texts: Texts) -> Section:
    """The card's memory as a sum, and the forecast."""
    blocks: list[Block] = []
    rows = [(texts(f"memory.{part}"), getattr(report.ledger, part)) for part in _LEDGER]
    rows.append((texts("memory.request"), report.memory.tried_to_allocate))
    known = [(label, size(mib)) for label, mib in rows if mib is not None]
    if known:
        blocks += [Heading(Words(texts("section.memory"))), table(*known)]
        if report.ledger.overdrawn:
            blocks.append(Paragraph((Words(texts("memory.overdrawn", {"size": size(report.ledger.overdrawn)})),)))
    blocks += _forecast(report, texts)
    name = texts("ticket.name.memory")
    if not blocks:
        return Section(name, ((),))
    return Section(name, ((Fold(Words(texts("ticket.fold.memory")), tuple(blocks)),), ()), (60,))


def _forecast(report: Report, texts: Texts) -> list[Block]:
    found = report.forecast
    if report.failure.kind not in ("gpu_oom", "vram_spill") or not report.remedies:
        return []
    if found is None:
        return [Paragraph((report.forecast_missing.text,))] if report.forecast_missing else []
    rows: list[tuple[str, str, str]] = []
    for part in found.parts:
        sizes = outlook.between(Span(low=part.low, likely=part.likely, high=part.high), texts)
        rows.append((texts(f"forecast.part.{part.id}"), sizes, texts(f"forecast.basis.{part.provenance}")))
    rows.append((texts("forecast.need"), outlook.between(found.need, texts), ""))
    if found.usable is not None:
        rows.append((texts("forecast.usable"), size(found.usable), ""))
    title = Words(texts("forecast.title", {"phase": found.phase, "model": found.model}))
    notes = tuple(Words(note) for note in outlook.forecast_notes(report, texts))
    return [Heading(title), table(*rows), *([Paragraph(notes)] if notes else [])]


def settings(report: Report, texts: Texts) -> Section:
    """The settings that bear on this failure, with their sources."""
    name = texts("ticket.name.settings")
    if not report.settings:
        return Section(name, ((),))
    rows = [
        (
            LogText(row.path),
            cutting.shortened(LogText(encode.value(row.value)), 80),
            summary.origin(row.source, row.line, texts),
        )
        for row in report.settings[:MAX_SETTINGS]
    ]
    return Section(name, ((Fold(Words(texts("ticket.fold.settings")), (table(*rows),)),), ()), (20,))


def useless(report: Report, texts: Texts) -> Section:
    """Popular fixes that cannot touch this failure."""
    name = texts("ticket.name.useless")
    if not report.will_not_help:
        return Section(name, ((),))
    items = tuple(Words(f"{item.name}: ", *item.why.parts) for item in report.will_not_help)
    return Section(name, ((Fold(Words(texts("ticket.fold.useless")), (Bullets(items),)),), ()), (58,))


def notes(report: Report, texts: Texts) -> Section:
    """What else there is to know of the run and of the input; shorter, the first few."""
    name = texts("ticket.name.notes")
    items = [factor.text for factor in report.failure.factors[2:]]
    items += summary.notes(report, texts)
    for warning in report.warnings:
        where = f" ({texts('section.line')} {warning.line})" if warning.line else ""
        items.append(Words(*warning.text.parts, where))
    if not items:
        return Section(name, ((),))
    heading = Words(texts("ticket.fold.notes", {"count": len(items)}))

    def form(most: int, limit: int) -> tuple[Block, ...]:
        shown = [cutting.cut(item, limit) for item in items[:most]]
        if len(items) > most:
            shown.append(Words(texts("ticket.and_more", {"count": len(items) - most})))
        return (Fold(heading, (Bullets(tuple(shown)),)),)

    return Section(name, (form(MAX_NOTES, 1000), form(SHORT_NOTES, 300), ()), (50, 65))


def timeline(report: Report, texts: Texts) -> Section:
    """What happened, from the first lines and from the last."""
    name = texts("ticket.name.timeline")
    rows = report.timeline
    if not rows:
        return Section(name, ((),))
    width = max(len(str(row.line or "")) for row in rows)
    lines: list[LogText] = []
    for index, row in enumerate(rows):
        if len(rows) > HEAD + TAIL and HEAD <= index < len(rows) - TAIL:
            if index == HEAD:
                lines.append(LogText(" " * (width + 2) + "…"))
            continue
        step = f"{texts('word.step', {'step': row.step})} · " if row.step is not None else ""
        text = cutting.shortened(row.text, 100).reveal()
        lines.append(LogText(f"{row.line or '':>{width}}  {texts(f'phase.{row.phase}.title')} · {step}{text}"))
    heading = Words(texts("ticket.fold.timeline", {"count": len(rows)}))
    return Section(name, ((Fold(heading, (Verbatim(tuple(lines)),)),), ()), (10,))


def limits(report: Report, texts: Texts) -> Section:
    """How far to trust the claim, what the log did not hold, versions, and where the advice stands."""
    tool = report.tool
    made_by = Words(f"{tool.name} {tool.version}, {texts('section.versions')}: patterns {tool.patterns}")
    sure = Words(texts(f"ticket.sure.{report.failure.confidence}"))
    read = texts.words(
        "ticket.read", {"lines": report.input.lines, "source": cutting.shortened(report.input.source, 80)}
    )
    rests = texts("ticket.only_log") + (" " + texts("ticket.proven") if report.remedies else "")
    hidden = [Words(report.redacted.says)] if report.redacted is not None else []
    blocks: list[Block] = [Paragraph((sure, Words(rests), read, *hidden, made_by))]
    if report.capture and report.remedies:
        blocks += [
            Heading(Words(texts("section.capture"))),
            Bullets(tuple(Words(item.text) for item in report.capture)),
        ]
    links = [(texts("section.guide"), url) for url in summary.guides(report)]
    links += [(item.source, item.url) for item in report.regressions if item.url]
    if links:
        blocks.append(Links(tuple(links)))
    heading = Words(texts("ticket.fold.limits"))
    short = (Fold(heading, (Paragraph((sure, *hidden, made_by)),)),)
    return Section(texts("ticket.name.limits"), ((Fold(heading, tuple(blocks)),), short, ()), (62, 80))
