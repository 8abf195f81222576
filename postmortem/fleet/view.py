"""The runs and their groups for a person at a terminal. Rich lays out text objects; it is given no markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.fleet.groups import Fact, Group
from postmortem.fleet.row import Row
from postmortem.report.page import Page
from postmortem.report.texts import Texts
from postmortem.text import printable

MAX_GROUPS = 10
MAX_ROWS = 40
MAX_ERRORS = 10
MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")


def render(
    rows: Sequence[Row], shown: Sequence[Row], groups: Sequence[Group], texts: Texts, *, width: int, colour: bool
) -> str:
    """The totals of `rows`, the groups, and the rows that are `shown`, as text of `width` columns."""
    page = Page(width, colour=colour)
    for part in _parts(rows, shown, groups, texts):
        page.add(part)
    return page.text()


def title(group: Group, texts: Texts) -> str:
    """A group in a few words: what it means for the user, or how it failed."""
    if group.class_:
        name = texts(f"class.{group.class_}.title", default=group.class_)
    else:
        name = texts(f"word.kind.{group.kind}", default=group.kind)
        name += f" ({printable(group.signature)[:60]})" if group.signature else ""
    return name if group.resource in (None, "vram") else f"{name}, {texts(f'word.resource.{group.resource}')}"


def fix_name(fix: str | None, texts: Texts) -> str:
    """A fix in two or three words."""
    if fix is None:
        return ""
    return texts(f"remedy.{fix}.name") if texts.has(f"remedy.{fix}.name") else texts(f"remedy.{fix}.title", default=fix)


def fact(item: Fact, texts: Texts) -> str:
    """What a group shares, with its counts."""
    value = texts(f"word.{str(item.value).lower()}", default=str(item.value)) if isinstance(item.value, bool) else item
    shown = value if isinstance(value, str) else printable(str(item.value))[:60]
    return texts(
        "fleet.fact",
        {
            "column": item.column,
            "value": shown,
            "runs": item.runs,
            "of": item.of,
            "others": item.others,
            "others_of": item.others_of,
        },
    )


def _parts(
    rows: Sequence[Row], shown: Sequence[Row], groups: Sequence[Group], texts: Texts
) -> Iterator[RenderableType]:
    errors = [row for row in rows if row.status == "error"]
    failed = sum(row.kind in MEMORY_KINDS for row in rows)
    counts = {"runs": len(rows), "failed": failed, "errors": len(errors), "shown": len(shown)}
    yield Text(texts("fleet.total", counts), style="bold")
    if len(shown) != len(rows):
        yield Text(texts("fleet.total_filtered", counts))
    copies = sum(row.duplicate_of is not None for row in rows)
    if copies:
        yield Text(texts("fleet.duplicates", {"count": copies}))
    yield Text("")
    yield Text(texts("fleet.groups" if groups else "fleet.no_groups"), style="bold")
    for number, group in enumerate(groups[:MAX_GROUPS], 1):
        yield from _group(number, group, texts)
    if len(groups) > MAX_GROUPS:
        yield Text("  " + texts("fleet.more_groups", {"count": len(groups) - MAX_GROUPS}), style="dim")
    analysed = [row for row in shown if row.status == "analysed"]
    if analysed:
        yield Text("")
        yield Text(texts("fleet.runs"), style="bold")
        yield _table(analysed[:MAX_ROWS], texts)
        if len(analysed) > MAX_ROWS:
            yield Text("  " + texts("fleet.more_runs", {"count": len(analysed) - MAX_ROWS}), style="dim")
    if errors:
        yield Text("")
        yield Text(texts("fleet.errors"), style="bold")
        for row in errors[:MAX_ERRORS]:
            yield Padding(Text(f"{row.run}: {row.error}"), (0, 0, 0, 2))


def _group(number: int, group: Group, texts: Texts) -> Iterator[RenderableType]:
    head = texts("fleet.group", {"count": group.runs, "headline": title(group, texts)})
    if group.hours:
        head += " · " + texts("fleet.group_hours", {"hours": f"{group.hours:.1f}"})
    yield Padding(Text(f"{number}. {head}", style="bold" if number == 1 else ""), (0, 0, 0, 1))
    lines = []
    if group.families:
        lines.append(f"{texts('fleet.families')}: {', '.join(group.families)}")
    lines += [f"{texts('fleet.shares')}: {fact(item, texts)}" for item in group.facts]
    if group.fix:
        line = f"{texts('fleet.fix')}: {fix_name(group.fix, texts)}"
        if group.tried:
            line += f" ({texts('fleet.followed', {'tried': group.tried, 'helped': group.helped})})"
        lines.append(line)
    lines.append(f"{texts('fleet.example')}: {printable(group.example)}")
    for line in lines:
        yield Padding(Text(line), (0, 0, 0, 5))


def _table(rows: Sequence[Row], texts: Texts) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(texts("fleet.col.run"), overflow="ellipsis", no_wrap=True, ratio=5)
    table.add_column(texts("fleet.col.family"), overflow="ellipsis", no_wrap=True, ratio=2)
    table.add_column(texts("fleet.col.class"), overflow="ellipsis", no_wrap=True, ratio=3)
    table.add_column(texts("fleet.col.step"), justify="right", no_wrap=True, min_width=5)
    table.add_column(texts("fleet.col.card"), justify="right", no_wrap=True, min_width=5)
    table.add_column(texts("fleet.col.fix"), overflow="ellipsis", no_wrap=True, ratio=4)
    for row in rows:
        table.add_row(
            Text(row.run),
            Text(row.family or ""),
            Text(row.class_ or (row.outcome or "" if row.kind == "none" else row.kind or "")),
            Text("" if row.step is None else str(row.step)),
            Text("" if row.card_gib is None else f"{row.card_gib} GB"),
            Text(fix_name(row.first_fix, texts)),
        )
    return table
