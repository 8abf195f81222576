"""The comparison as Markdown for a ticket."""

from __future__ import annotations

from postmortem.compare import rows
from postmortem.compare.document import Comparison
from postmortem.compare.terminal import edit_line
from postmortem.report import encode
from postmortem.report.texts import Texts

MAX_EDITS = 40


def render(comparison: Comparison, texts: Texts) -> str:
    """The comparison as GitHub-flavoured Markdown."""
    plain = encode.markdown_plain
    found = comparison.conclusion
    lines = [f"**{encode.markdown_words(found.text)}**", ""]
    for text in found.advice:
        lines += [encode.markdown_words(text), ""]
    lines += [*_history(comparison, texts), ""]
    if comparison.changes is None:
        lines += [plain(texts("compare.section.config_unknown")), ""]
    else:
        count = len(comparison.changes)
        lines += [f"**{plain(texts('compare.section.changed', {'count': count}))}**", ""]
    for heading, items in (("", comparison.changes), ("compare.section.no_bearing", comparison.no_bearing)):
        if not items:
            continue
        if heading:
            lines += [f"**{plain(texts(heading))}**", ""]
        diff: list[str] = []
        for edit in [edit for item in items for edit in item.edits][:MAX_EDITS]:
            path = encode.terminal(edit.path, 100)
            diff += [f"- {path}: {encode.value(edit.from_)[:100]}", f"+ {path}: {encode.value(edit.to)[:100]}"]
        lines += [encode.markdown_fence(diff, "diff"), ""]
    if comparison.circumstances:
        lines += [f"**{plain(texts('compare.section.circumstances'))}**", ""]
        for other in comparison.circumstances:
            sides = f"{encode.markdown_code(other.from_)} → {encode.markdown_code(other.to)}"
            lines.append(f"- {plain(other.title)}: {sides}")
        lines.append("")
    for key, tried in (("helped", comparison.helped), ("in_vain", comparison.in_vain)):
        if tried and len(comparison.history) > 2:
            names = [f"- {encode.markdown_words(item.title)}" for item in tried]
            lines += [f"**{plain(texts(f'compare.section.{key}'))}**", "", *names, ""]
    if comparison.next_fix is not None:
        lines += [f"**{plain(texts('compare.section.next'))}**: {plain(comparison.next_fix.title)}", ""]
        edits = [edit_line(edit) for edit in comparison.next_fix.changes]
        lines += [encode.markdown_fence(edits, "text"), ""] if edits else []
    lines += [f"- {encode.markdown_words(note.text)}" for note in comparison.notes]
    if comparison.redacted is not None:
        lines += ["", encode.markdown_plain(comparison.redacted.says)]
    return "\n".join(lines).strip("\n") + "\n"


def _history(comparison: Comparison, texts: Texts) -> list[str]:
    plain = encode.markdown_plain
    heads = [texts(f"compare.column.{name}") for name in ("attempt", "outcome", "steps", "changed", "shows")]
    lines = ["| # | " + " | ".join(plain(head) for head in heads) + " |", "|---" * 6 + "|"]
    for item in comparison.history:
        changed = ", ".join(encode.markdown_words(change.title) for change in item.changes or [])
        cells = [
            str(item.number),
            encode.markdown_table_code(item.source, 80) + f" {item.attempt}",
            plain(rows.outcome(item, texts)),
            plain(rows.steps(item, texts)),
            changed.replace("|", "¦"),
            plain(texts(f"compare.short.{item.conclusion}")) if item.conclusion else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines
