"""The runs and their groups for a person at a terminal. Rich lays out text objects; it is given no markup."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from postmortem.fleet import words
from postmortem.fleet.facts import MIN_OTHERS
from postmortem.fleet.groups import FixTotal, Group, Rank
from postmortem.fleet.row import Row
from postmortem.report.page import Page
from postmortem.report.texts import Texts
from postmortem.text import printable

MAX_GROUPS = 10
MAX_FIXES = 5
MAX_ROWS = 40
MAX_ERRORS = 10


def render(
    rows: Sequence[Row],
    shown: Sequence[Row],
    groups: Sequence[Group],
    fixes: Sequence[FixTotal],
    texts: Texts,
    *,
    width: int,
    colour: bool,
    by: Rank = "runs",
) -> str:
    """The totals of `rows`, the groups, the fixes, and the rows that are `shown`, as text of `width` columns."""
    page = Page(width, colour=colour)
    for part in _parts(rows, shown, groups, fixes, texts, by, page.width):
        page.add(part)
    return page.text()


def _parts(
    rows: Sequence[Row],
    shown: Sequence[Row],
    groups: Sequence[Group],
    fixes: Sequence[FixTotal],
    texts: Texts,
    by: Rank,
    width: int,
) -> Iterator[RenderableType]:
    yield Text(words.totals(list(rows), texts), style="bold")
    if len(shown) != len(rows):
        yield Text(texts("fleet.total_filtered", {"runs": len(rows), "shown": len(shown)}))
    copies = sum(row.duplicate_of is not None for row in rows)
    if copies:
        yield Text(words.count("fleet.duplicates", copies, texts))
    if fixes:
        yield Text(texts(f"fleet_page.headline_fix.{by}", {"fix": words.fix_title(fixes[0].fix, texts)}))
    yield Text("")
    if groups or shown or not rows:
        none = "fleet.no_groups" if len(shown) == len(rows) else "fleet.none_shown"
        yield Text(texts(f"fleet.groups.{by}" if groups else none), style="bold")
    for number, group in enumerate(groups[:MAX_GROUPS], 1):
        yield from _group(number, group, texts, width)
    if len(groups) > MAX_GROUPS:
        yield _more("fleet.more_groups", len(groups) - MAX_GROUPS, texts)
    if groups and sum(row.kind == "none" and row.duplicate_of is None for row in rows) < MIN_OTHERS:
        yield Padding(Text(texts("fleet.not_compared"), style="dim"), (0, 0, 0, 1))
    yield from _fixes(fixes, texts, by, width)
    yield from _runs(shown, texts, width)


def _group(number: int, group: Group, texts: Texts, width: int) -> Iterator[RenderableType]:
    head = f"{words.count('fleet.runs', group.runs, texts)} · {words.title(group, texts)}"
    yield _item(number, Text(head, style="bold"))
    lines = [words.hours(group, texts)]
    if group.families:
        lines.append(f"{texts('fleet.families')}: {words.families(group, texts)}")
    lines += [f"{texts('fleet.shares')}: {words.fact(item, texts)}" for item in group.facts]
    if group.fix:
        line = f"{texts('fleet.fix')}: {words.fix_title(group.fix, texts)}"
        if group.fix_runs < group.runs:
            line += f" ({texts('fleet.fix_some', {'count': group.fix_runs})})"
        lines.append(line)
        if group.tried:
            lines.append(words.followed(group, texts))
    lines.append(f"{texts('fleet.example')}: {_tail(printable(group.example), width - 6 - 14)}")
    for line in filter(None, lines):
        yield Padding(Text(line), (0, 0, 0, 5))


def _fixes(fixes: Sequence[FixTotal], texts: Texts, by: Rank, width: int) -> Iterator[RenderableType]:
    if not fixes:
        return
    yield Text("")
    yield Text(texts(f"fleet.fixes.{by}"), style="bold")
    yield Padding(Text(texts("fleet.fixes_note"), style="dim"), (0, 0, 0, 1))
    for number, fix in enumerate(fixes[:MAX_FIXES], 1):
        parts = [words.count("fleet.runs", fix.runs, texts), words.hours(fix, texts)]
        if fix.tried:
            parts.append(words.followed(fix, texts))
        yield _item(number, Text(words.fix_title(fix.fix, texts)))
        yield Padding(Text(" · ".join(filter(None, parts)), style="dim"), (0, 0, 0, 5))
    if len(fixes) > MAX_FIXES:
        yield _more("fleet.more_fixes", len(fixes) - MAX_FIXES, texts)


def _runs(shown: Sequence[Row], texts: Texts, width: int) -> Iterator[RenderableType]:
    """The table of runs, those that failed first, and what could not be read."""
    analysed = [row for row in shown if row.status == "analysed"]
    errors = [row for row in shown if row.status == "error"]
    if analysed:
        failed_first = sorted(analysed, key=lambda row: row.kind == "none")
        yield Text("")
        yield Text(texts("fleet.list"), style="bold")
        yield _table(failed_first[:MAX_ROWS], texts, width)
        if len(analysed) > MAX_ROWS:
            yield _more("fleet.more_runs", len(analysed) - MAX_ROWS, texts)
    if errors:
        yield Text("")
        yield Text(texts("fleet.errors"), style="bold")
        for row in errors[:MAX_ERRORS]:
            yield Padding(Text(f"{_tail(row.run, 40)}: {row.error}"), (0, 0, 0, 1))
        if len(errors) > MAX_ERRORS:
            yield _more("fleet.more_errors", len(errors) - MAX_ERRORS, texts)


def _table(rows: Sequence[Row], texts: Texts, width: int) -> RenderableType:
    """The columns that fit: a wide window shows more of them, and each as wide as what is in it."""
    cells = [_cells(row, texts) for row in rows]
    names = ["run", "verdict", "step", "family", "card_gib", "first_fix"]
    if width >= 100:
        names = ["run", "verdict", "step", "family", "card_gib", "hours", "first_fix"]
    used = [name for name in names if name == "run" or any(one[name] for one in cells)]
    widths = {
        name: max([cell_len(words.column(name, texts)), *(cell_len(one[name]) for one in cells)]) for name in used
    }
    _shrink(widths, width - 2 * (len(used) - 1) - 1)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in used:
        right = name in ("step", "card_gib", "hours")
        header = Text(set_cell_size(words.column(name, texts), widths[name]).rstrip(), style="dim")
        table.add_column(header, justify="right" if right else "left", no_wrap=True, width=widths[name])
    for one in cells:
        shown = [_tail(one[name], widths[name]) if name == "run" else _head(one[name], widths[name]) for name in used]
        table.add_row(*(Text(text) for text in shown))
    return Padding(table, (0, 0, 0, 1))


def _cells(row: Row, texts: Texts) -> dict[str, str]:
    return {
        "run": row.run,
        "verdict": words.verdict(row, texts),
        "step": "" if row.step is None else str(row.step),
        "family": row.family or "",
        "card_gib": words.value("card_gib", row.card_gib, texts),
        "hours": "" if row.hours is None else words.amount(row.hours),
        "first_fix": words.fix_name(row.first_fix, texts),
    }


def _shrink(widths: dict[str, int], room: int) -> None:
    """Take from the widest column until all fit."""
    while sum(widths.values()) > room:
        widest = max(widths, key=lambda name: widths[name])
        if widths[widest] <= 6:
            return
        widths[widest] -= 1


def _item(number: int, head: Text) -> RenderableType:
    """A numbered line whose own lines stand below its text."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(justify="right", width=3)
    grid.add_column()
    grid.add_row(Text(f"{number}."), head)
    return Padding(grid, (0, 0, 0, 1))


def _more(key: str, number: int, texts: Texts) -> RenderableType:
    return Padding(Text(words.count(key, number, texts), style="dim"), (0, 0, 0, 1))


def _head(text: str, cells: int) -> str:
    """The beginning of `text` in so many cells."""
    return text if cell_len(text) <= cells else set_cell_size(text, cells - 1).rstrip() + "…"


def _tail(text: str, cells: int) -> str:
    """The end of a path in so many cells: its last part tells the runs apart."""
    if cell_len(text) <= cells:
        return text
    while text and cell_len(text) > cells - 1:
        text = text[1:]
    return "…" + text
