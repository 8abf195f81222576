"""The report for a person at a terminal: 80 columns and up, readable without colour.

Rich lays out and colours; it is given text objects only, never strings with markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.text import Text

from postmortem.report import encode, outlook, picture, summary
from postmortem.report.document import EvidenceItem, RemedyItem, Report
from postmortem.report.page import Page, bullet, head, indented, label, table
from postmortem.report.texts import Texts

_COLOURS = {"gpu_oom": "bold red", "host_oom": "bold red", "vram_spill": "bold yellow", "not_memory": "bold yellow"}
_SHOWN_FACTORS = 1
MAX_FIXES = 6
MAX_SETTINGS = 5
MAX_EVIDENCE = 3
_LESS_TELLING = ("bar", "phase", "frame", "consequence")
"""Evidence of what the verdict's other lines say too, the least telling first."""


def render(report: Report, texts: Texts, *, width: int = 80, colour: bool = False, encoding: str = "utf-8") -> str:
    """The report as text of `width` columns, in characters that `encoding` has.

    The verdict, its proof and the first fix come first: a screen of 24 lines must show them.
    """
    page = Page(width, colour=colour, encoding=encoding)
    for part in _parts(report, texts, page):
        page.add(part)
    if report.redacted is not None:
        page.add(Text("\n" + report.redacted.says, style="dim"))
    return page.text()


def _parts(report: Report, texts: Texts, page: Page) -> list[RenderableType]:
    width, blocks = page.width, page.blocks
    parts: list[RenderableType] = [*_verdict(report, texts), Text(""), _facts(report, texts)]
    if report.failure.evidence:
        parts += [Text(""), head(texts("section.evidence")), _evidence(report, texts, width, page.dots)]
    if report.remedies:
        parts += [Text(""), head(texts("section.do"))]
        parts += [_remedy(item, texts) for item in report.remedies[:MAX_FIXES]]
        rest = "; ".join(item.title for item in report.remedies[MAX_FIXES:])
        parts += [indented(Text(f"{texts('word.also')}: {rest}", style="dim"))] if rest else []
    ladder = outlook.ladder_lines(report.ladder, report.card_needed_gib, texts)
    if ladder:
        parts += [Text(""), head(texts("forecast.ladder")), *(indented(Text(line)) for line in ladder)]
    about = [encode.plain(factor.text) for factor in report.failure.factors[_SHOWN_FACTORS:]]
    about += [encode.plain(line) for line in summary.notes(report, texts)]
    if about:
        parts += [Text(""), head(texts("section.about")), *(bullet(line) for line in about)]
    parts += _memory(report, texts, width, blocks)
    parts += _forecast(report, texts, width, blocks)
    if report.settings and report.remedies:
        parts += [Text(""), *_settings(report, texts, width)]
    if report.will_not_help:
        parts += [Text(""), head(texts("section.useless"))]
        parts += [bullet(f"{item.name}: {encode.plain(item.why)}") for item in report.will_not_help]
    if report.capture:
        parts += [Text(""), head(texts("section.capture")), *(bullet(item.text) for item in report.capture)]
    if report.warnings:
        parts += [Text(""), head(texts("section.warnings"))]
        parts += [bullet(_with_line(encode.plain(item.text), item.line, texts)) for item in report.warnings]
    return [*parts, *_further(report, texts)]


def _further(report: Report, texts: Texts) -> list[RenderableType]:
    """Where to read on."""
    parts: list[RenderableType] = [Text("")]
    guides = summary.guides(report)
    if guides:
        # without the scheme, the longest of these addresses fits a line, and a broken one is of no use
        parts.append(head(texts("section.guide")))
        parts += [indented(Text(url.removeprefix("https://"), style="dim")) for url in guides]
        parts.append(Text(""))
    topic = report.failure.class_ or report.failure.kind
    return [*parts, Text(f"{texts('section.explain')}: postmortem explain {topic}", style="dim")]


def _memory(report: Report, texts: Texts, width: int, blocks: bool) -> list[RenderableType]:
    """The card's memory when it ran out, as a bar with its legend."""
    drawn = picture.memory(report, texts, min(width - 4, 76), blocks)
    if drawn is None:
        return []
    bar, legend = drawn
    made = table("fixed", "text")
    for mark, text in legend:
        made.add_row(mark, text)
    title: list[RenderableType] = [Text(""), head(texts("section.memory"))]
    return [*title, *([indented(bar)] if bar is not None else []), indented(made, 3)]


def _forecast(report: Report, texts: Texts, width: int, blocks: bool) -> list[RenderableType]:
    """What the failing phase needs, drawn against the card; nothing where the card did not run out."""
    if report.failure.kind not in ("gpu_oom", "vram_spill") or not report.remedies:
        return []
    rows = picture.forecast(report.forecast, texts, width, blocks)
    if rows is None or report.forecast is None:
        missing = report.forecast_missing
        return [Text(""), Text(encode.plain(missing.text), style="dim")] if missing else []
    title = {"phase": report.forecast.phase, "model": report.forecast.model}
    made = table("text", "fixed", "fixed")
    for row in rows:
        made.add_row(*row)
    parts: list[RenderableType] = [Text(""), head(texts("forecast.title", title)), indented(made)]
    return [*parts, *(indented(Text(line, style="dim")) for line in outlook.forecast_notes(report, texts))]


def _verdict(report: Report, texts: Texts) -> list[RenderableType]:
    failure = report.failure
    style = _COLOURS.get(failure.kind, "bold green" if failure.kind == "none" else "bold")
    parts: list[RenderableType] = [Text(encode.plain(failure.headline), style=style)]
    if failure.error is not None:
        parts.append(Text(encode.terminal(failure.error, 300)))
    for factor in failure.factors[:_SHOWN_FACTORS]:
        parts.append(Text(encode.plain(factor.text)))
    if failure.kind == "unknown" and report.run.outcome == "incomplete" and not failure.factors:
        parts.append(Text(texts("headline.more.incomplete")))
    return parts


def _facts(report: Report, texts: Texts) -> RenderableType:
    made = table("fixed", "text")
    run = report.run
    names = [encode.terminal(run.job_name, 60) if run.job_name else None, run.family]
    names += [summary.trainer(report, texts), summary.attempt_of(report, texts)]
    safe = summary.safe(report, texts)
    rows = [
        ("section.run", " · ".join(name for name in names if name) or texts("word.log_does_not_say")),
        (summary.when_label(report), summary.when(report, texts)),
        ("section.card", summary.card(report, texts)),
        ("section.safe", encode.plain(safe) if safe else None),
        ("section.confidence", texts(f"word.confidence.{report.failure.confidence}")),
    ]
    for key, shown in rows:
        if shown:
            made.add_row(label(texts(key)), Text(shown))
    return made


def _settings(report: Report, texts: Texts, width: int) -> list[RenderableType]:
    title = head(texts("section.settings"))
    rows = [
        (
            row.path,
            encode.value(row.value)[:60] + (f"  ← {texts('word.the_cause')}" if row.first_fix else ""),
            encode.plain(summary.origin(row.source, row.line, texts)),
            "bold" if row.first_fix else "",
        )
        for row in report.settings[:MAX_SETTINGS]
    ]
    if width < picture.NARROW:
        return [
            title,
            *(indented(Text(f"{path}: {value} ({where})", style=style)) for path, value, where, style in rows),
        ]
    made = table("fixed", "text", "fixed")
    made.add_row(title, Text(""), Text(texts("section.from"), style="dim"))
    for path, value, where, style in rows:
        made.add_row(Text("  " + path), Text(value, style=style), Text(where, style="dim"))
    return [made]


def _evidence(report: Report, texts: Texts, width: int, dots: str) -> RenderableType:
    """One row a line, cut to the width: whole lines are in the Markdown and the JSON."""
    items = _chosen(report.failure.evidence)
    several = len({item.source.reveal() for item in report.failure.evidence}) > 1
    places = [f"{encode.terminal(item.source, 24)}:{item.line}" if several else str(item.line) for item in items]
    margin = max((cell_len(place) for place in places), default=0) + 2
    rows: list[RenderableType] = []
    for place, item in zip(places, items):
        says = f" ({item.says})"
        shown = encode.terminal(item.text, 400).strip()
        room = width - margin - 2 - cell_len(says)
        if room < 20:  # what it proves goes on a line of its own
            says, room = f"\n{' ' * (margin + 1)}({item.says})", max(10, width - margin - 2)
        if cell_len(shown) > room:
            shown = set_cell_size(shown, room - len(dots)).rstrip() + dots
        row = Text(" " * (margin - cell_len(place)) + place + " ", style="dim")
        row.append(shown.replace(" ", "\u00a0"), style="not dim")
        row.append(says)
        rows.append(row)
    return Group(*rows)


def _chosen(items: Sequence[EvidenceItem]) -> list[EvidenceItem]:
    """At most `MAX_EVIDENCE`: of those that say the same the first and the last, then without the less telling ones."""
    kept = list(items)
    while len(kept) > MAX_EVIDENCE:
        said = [item.what for item in kept]
        least = [at for at in range(len(said)) if said[at] in said[:at] and said[at] in said[at + 1 :]]
        least += [said.index(what) for what in _LESS_TELLING if what in said]
        kept.pop(least[0] if least else len(kept) // 2)
    return kept


def _remedy(item: RemedyItem, texts: Texts) -> RenderableType:
    title = bullet(item.title, f"{item.rank}.", "bold", text_style="bold")
    body: list[RenderableType] = []
    for change in item.changes[:6]:
        body.append(Text(f"{change.path}: {encode.value(change.from_)} → {encode.value(change.to)}", style="cyan"))
    body.append(Text(f"{texts('section.ui')}: {item.ui}", style="dim"))
    body.append(Text(encode.plain(item.why)))
    effect = outlook.effect(item, texts)
    if effect:
        body.append(Text(effect, style="green" if item.fits == "fits" else ""))
    section = (item.guide.section or "").replace(" ", "\u00a0").replace(",\u00a0", ", ")
    guide = f" · {texts('section.guide')} {section}" if section else ""
    body.append(Text(f"{texts('section.cost')}: {item.cost}{guide}", style="dim"))
    return Group(title, indented(Group(*body), 4))


def _with_line(text: str, line: int | None, texts: Texts) -> str:
    return f"{text} ({texts('section.line')} {line})" if line else text
