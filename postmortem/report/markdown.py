"""The report as Markdown for a ticket: verdict, a small table, the first fix; the rest folded away."""

from __future__ import annotations

from postmortem.report import encode, outlook
from postmortem.report.document import RemedyItem, Report, Span, WarningItem
from postmortem.report.terminal import card_line, note_lines, origin, safe_line, trainer_line, when, when_label
from postmortem.report.texts import Texts, size
from postmortem.text import LogText


def render(report: Report, texts: Texts) -> str:
    """The report as GitHub-flavoured Markdown."""
    lines = [*_verdict(report, texts), "", *_table(report, texts), ""]
    if report.remedies:
        lines += [f"**{texts('section.first_fix')}**", "", *_remedy(report.remedies[0], texts), ""]
    inside = _details(report, texts)
    if inside:
        lines += [
            "<details>",
            f"<summary>{encode.markdown_plain(texts('section.details'))}</summary>",
            "",
            *inside,
            "</details>",
            "",
        ]
    if report.redacted is not None:
        lines += [encode.markdown_plain(report.redacted.says), ""]
    return "\n".join(lines).strip("\n") + "\n"


def _verdict(report: Report, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    lines = [f"**{encode.markdown_words(report.failure.headline)}**", ""]
    if report.failure.error is not None:
        lines += [encode.markdown_code(report.failure.error, 300), ""]
    if report.failure.factors:
        lines.append(" ".join(encode.markdown_words(factor.text) for factor in report.failure.factors[:2]))
    elif report.failure.kind == "unknown" and report.run.outcome == "incomplete":
        lines.append(plain(texts("headline.more.incomplete")))
    confidence = texts(f"word.confidence.{report.failure.confidence}")
    lines.append(f"({plain(texts('section.confidence'))}: {plain(confidence)})")
    return lines


def _table(report: Report, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    run = report.run
    names = [encode.markdown_table_code(run.job_name, 80) if run.job_name else None]
    names += [plain(name) for name in (run.family, trainer_line(report, texts)) if name]
    sources = ", ".join(encode.markdown_table_code(source, 60) for source in report.config.sources)
    rows = [
        (texts("section.run"), " · ".join(name for name in names if name)),
        (texts(when_label(report)), plain(when(report, texts))),
        (texts("section.card"), plain(card_line(report, texts) or texts("word.log_does_not_say"))),
        (texts("section.config"), sources or plain(texts("word.log_does_not_say"))),
    ]
    safe = safe_line(report, texts)
    if safe:
        rows.insert(2, (texts("section.safe"), plain(safe)))
    table = ["| | |", "|---|---|"]
    table += [f"| {plain(label)} | {text or plain(texts('word.log_does_not_say'))} |" for label, text in rows]
    return table


def _remedy(item: RemedyItem, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    lines = [f"{item.rank}. **{plain(item.title)}**  ", f"   {encode.markdown_words(item.why)}"]
    if item.changes:
        diff: list[str] = []
        for change in item.changes[:8]:
            diff.append(f"- {change.path}: {encode.value(change.from_)}"[:200])
            diff.append(f"+ {change.path}: {encode.value(change.to)}"[:200])
        lines += ["", *("   " + line for line in encode.markdown_fence(diff, "diff").splitlines())]
    lines.append("")
    effect = outlook.effect(item, texts)
    if effect:
        lines.append(f"   {plain(effect)}  ")
    guide = f" · {texts('section.guide')} {item.guide.section}" if item.guide.section else ""
    lines.append(f"   {texts('section.ui')}: {plain(item.ui)} · {texts('section.cost')}: {plain(item.cost + guide)}")
    return lines


def _details(report: Report, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    lines: list[str] = []
    if report.failure.evidence:
        shown = [
            f"{item.line}: {encode.terminal(item.text, 220).strip()}   <- {item.says}"
            for item in report.failure.evidence
        ]
        lines += [f"**{plain(texts('section.evidence'))}**", "", encode.markdown_fence(shown, "text"), ""]
    if report.ledger.capacity or report.memory.tried_to_allocate is not None:
        lines += [f"**{plain(texts('section.memory'))}**", "", *_memory(report, texts), ""]
    lines += _forecast(report, texts)
    for line in note_lines(report, texts):
        lines += [plain(line), ""]
    if report.settings:
        lines += [f"**{plain(texts('section.settings'))}**", "", "| | | |", "|---|---|---|"]
        for row in report.settings:
            value = encode.markdown_table_code(LogText(encode.value(row.value)), 80)
            lines.append(f"| `{row.path}` | {value} | {plain(origin(row.source.reveal(), row.line, texts))} |")
        lines.append("")
    if report.remedies[1:]:
        lines += [f"**{plain(texts('section.other_fixes'))}** ({plain(texts('section.then'))})", ""]
        for item in report.remedies[1:]:
            lines += [*_remedy(item, texts), ""]
    ladder = outlook.ladder_lines(report.ladder, report.card_needed_gib, texts)
    if ladder:
        lines += [f"**{plain(texts('forecast.ladder'))}**", "", *(f"{plain(line)}  " for line in ladder), ""]
    if report.will_not_help:
        lines += [f"**{plain(texts('section.useless'))}**", ""]
        lines += [f"- {plain(item.name)}: {encode.markdown_words(item.why)}" for item in report.will_not_help] + [""]
    for heading, items in (
        ("section.capture", [plain(item.text) for item in report.capture]),
        ("section.warnings", [_warning(item, texts) for item in report.warnings]),
    ):
        if items:
            lines += [f"**{plain(texts(heading))}**", "", *(f"- {text}" for text in items), ""]
    if not lines:
        return []
    guides = dict.fromkeys(item.guide.url for item in report.remedies if item.guide.section and item.guide.url)
    lines += [f"{plain(texts('section.guide'))}: {plain(url)}  " for url in guides if url]
    tool = report.tool
    lines += [f"{tool.name} {tool.version}, {texts('section.versions')}: patterns {tool.patterns}", ""]
    return lines


def _memory(report: Report, texts: Texts) -> list[str]:
    rows: list[str] = []
    for name in (
        "capacity",
        "other_processes",
        "non_pytorch",
        "allocated",
        "reserved_unallocated",
        "unexplained",
        "free",
    ):
        mib = getattr(report.ledger, name)
        if mib is not None:
            rows.append(f"| {encode.markdown_plain(texts(f'memory.{name}'))} | {size(mib)} |")
    tried = report.memory.tried_to_allocate
    if tried is not None:
        rows.append(f"| {encode.markdown_plain(texts('memory.request'))} | {size(tried)} |")
    return ["| | |", "|---|---|", *rows]


def _forecast(report: Report, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    found = report.forecast
    if report.failure.kind not in ("gpu_oom", "vram_spill") or not report.remedies:
        return []
    if found is None:
        return [plain(report.forecast_missing.text), ""] if report.forecast_missing else []
    lines = [f"**{plain(texts('forecast.title', {'phase': found.phase, 'model': found.model}))}**", ""]
    lines += ["| | | |", "|---|---|---|"]
    for part in found.parts:
        sizes = outlook.between(Span(low=part.low, likely=part.likely, high=part.high))
        name, basis = texts(f"forecast.part.{part.id}"), texts(f"forecast.basis.{part.provenance}")
        lines.append(f"| {plain(name)} | {plain(sizes)} | {plain(basis)} |")
    lines.append(f"| {plain(texts('forecast.need'))} | {plain(outlook.between(found.need))} | |")
    if found.usable is not None:
        lines.append(f"| {plain(texts('forecast.usable'))} | {plain(size(found.usable))} | |")
    return [*lines, "", *(f"{plain(note)}  " for note in outlook.forecast_notes(report, texts)), ""]


def _warning(item: WarningItem, texts: Texts) -> str:
    text = encode.markdown_words(item.text)
    return f"{text} ({texts('section.line')} {item.line})" if item.line else text
