"""The comparison for a person at a terminal. Rich lays out text objects; it is given no markup."""

from __future__ import annotations

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.compare import rows
from postmortem.compare.document import Comparison, EditItem, VariableItem
from postmortem.report import encode
from postmortem.report.page import Page, head
from postmortem.report.texts import Texts

MAX_EDITS = 8
MAX_SOURCE = 40
MAX_VARIABLES = 20


def render(
    comparison: Comparison, texts: Texts, *, width: int = 80, colour: bool = False, encoding: str = "utf-8"
) -> str:
    """The comparison as text of `width` columns, in characters that `encoding` has."""
    page = Page(width, colour=colour, encoding=encoding)
    for part in _parts(comparison, texts):
        page.add(part)
    if comparison.redacted is not None:
        page.add(Text("\n" + comparison.redacted.says, style="dim"))
    return page.text()


def _parts(comparison: Comparison, texts: Texts) -> list[RenderableType]:
    found = comparison.conclusion
    style = "bold green" if found.proven else "bold yellow"
    parts: list[RenderableType] = [Text(encode.plain(found.text), style=style)]
    parts += [Text(encode.plain(text)) for text in found.advice]
    parts += [Text(""), _history(comparison, texts)]
    parts += [Text(""), head(_changed(comparison, texts))]
    for item in (comparison.changes or [])[:MAX_VARIABLES]:
        parts.append(Padding(Text(encode.plain(item.title), style="bold"), (0, 0, 0, 2)))
        parts += [Padding(Text(edit_line(edit), style="cyan"), (0, 0, 0, 4)) for edit in item.edits[:MAX_EDITS]]
    if comparison.no_bearing:
        parts += [Text(""), head(texts("compare.section.no_bearing"))]
        edits = [edit for item in comparison.no_bearing for edit in item.edits]
        parts += [Padding(Text(edit_line(edit), style="dim"), (0, 0, 0, 2)) for edit in edits[:MAX_EDITS]]
    if comparison.circumstances:
        parts += [Text(""), head(texts("compare.section.circumstances"))]
        for other in comparison.circumstances:
            line = f"{other.title}: {encode.terminal(other.from_)} → {encode.terminal(other.to)}"
            parts.append(Padding(Text(line), (0, 0, 0, 2)))
    for key, items in (("helped", comparison.helped), ("in_vain", comparison.in_vain)):
        if items and len(comparison.history) > 2:
            parts += [Text(""), head(texts(f"compare.section.{key}"))]
            parts += [Padding(Text(_line(item)), (0, 0, 0, 2)) for item in items[:MAX_VARIABLES]]
    if comparison.next_fix is not None:
        parts += [Text(""), head(texts("compare.section.next"))]
        parts.append(Padding(Text(comparison.next_fix.title, style="bold"), (0, 0, 0, 2)))
        parts += [Padding(Text(edit_line(edit)), (0, 0, 0, 4)) for edit in comparison.next_fix.changes[:MAX_EDITS]]
    if comparison.notes:
        parts += [Text(""), head(texts("section.warnings"))]
        parts += [Padding(Text("- " + encode.plain(note.text)), (0, 0, 0, 2)) for note in comparison.notes]
    return parts


def edit_line(edit: EditItem) -> str:
    """One edit on one line of visible characters."""
    return f"{encode.terminal(edit.path, 80)}: {encode.value(edit.from_)[:80]} → {encode.value(edit.to)[:80]}"


def _line(item: VariableItem) -> str:
    return f"{encode.plain(item.title)} ({'; '.join(edit_line(edit) for edit in item.edits[:2])})"


def _changed(comparison: Comparison, texts: Texts) -> str:
    if comparison.changes is None:
        return texts("compare.section.config_unknown")
    return texts("compare.section.changed", {"count": len(comparison.changes)})


def _history(comparison: Comparison, texts: Texts) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=2, justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for item in comparison.history:
        mark = {comparison.failed: "failed", comparison.retry: "retry"}.get(item.number)
        source = encode.terminal(item.source)
        # the end of a path tells attempts apart
        label = f"{source if len(source) <= MAX_SOURCE else '…' + source[1 - MAX_SOURCE :]} #{item.attempt}"
        name = f" · {encode.terminal(item.job_name, 40)}" if item.job_name else ""
        shown = Text(label + name + (f"  ← {texts(f'compare.word.{mark}')}" if mark else ""), style="bold")
        table.add_row(str(item.number), shown)
        table.add_row("", Text(f"{rows.outcome(item, texts)} · {rows.steps(item, texts)}"))
        if item.changes and len(comparison.history) > 2:
            names = ", ".join(encode.plain(change.title) for change in item.changes[:MAX_EDITS])
            table.add_row("", Text(f"{texts('compare.word.changed')}: {names}", style="dim"))
        if item.conclusion and len(comparison.history) > 2:
            table.add_row("", Text(texts(f"compare.short.{item.conclusion}"), style="dim"))
    return table
