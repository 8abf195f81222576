"""The comparison as a ticket: what it proves, the attempts, what changed."""

from __future__ import annotations

from collections.abc import Iterable

from postmortem.compare import rows
from postmortem.compare.document import AttemptItem, Comparison, EditItem, VariableItem
from postmortem.report import encode_ticket as encode
from postmortem.report import ticket
from postmortem.report.texts import Texts
from postmortem.report.ticket.blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Section,
    Table,
    Title,
    Verbatim,
    joined,
    table,
    words,
)
from postmortem.report.ticket.edits import Edit, diff
from postmortem.text import LogText, Words

MAX_EDITS = 40
MAX_ATTEMPTS = 40
MAX_ITEMS = 40


def render(comparison: Comparison, texts: Texts, *, flavor: str = "github", max_chars: int | None = None) -> str:
    """The comparison in the markup of `flavor`, in at most `max_chars` characters, as the report's `render`."""
    sections = [
        _conclusion(comparison, texts),
        _changes(comparison, texts),
        _next_fix(comparison, texts),
        _history(comparison, texts),
        _circumstances(comparison, texts),
        _tried(comparison, texts),
        _edits("compare.section.no_bearing", comparison.no_bearing or [], texts, 20),
        _bullets("section.warnings", [note.text for note in comparison.notes], texts, 40),
        _hidden(comparison, texts),
    ]
    return ticket.written(sections, texts, flavor, max_chars)


def _conclusion(comparison: Comparison, texts: Texts) -> Section:
    found = comparison.conclusion

    def form(limit: int, each: int, advice: int) -> tuple[Block, ...]:
        lines = [encode.cut(text, limit, each) for text in found.advice[:advice]]
        return (Title(encode.cut(found.text, limit, each)), *([Paragraph(tuple(lines))] if lines else []))

    forms = (form(1000, 200, 20), form(300, 60, 1), form(200, 30, 0))
    return Section(texts("ticket.name.verdict"), forms, (80, 100))


def _changes(comparison: Comparison, texts: Texts) -> Section:
    name = texts("ticket.name.changes")
    if comparison.changes is None:
        return Section(name, ((Paragraph((Words(texts("compare.section.config_unknown")),)),),))
    heading = Heading(Words(texts("compare.section.changed", {"count": len(comparison.changes)})))
    if not comparison.changes:
        return Section(name, ((heading,),))
    forms = tuple((heading, _diff(comparison.changes, *form)) for form in ((MAX_EDITS, 120), (8, 60), (3, 30)))
    return Section(name, forms, (60, 90))


def _next_fix(comparison: Comparison, texts: Texts) -> Section:
    name = texts("ticket.name.fix")
    following = comparison.next_fix
    if following is None:
        return Section(name, ((),))
    heading = Heading(Words(f"{texts('compare.section.next')}: {following.title}"))
    edits = [_edit(edit) for edit in following.changes]

    def form(most: int, limit: int) -> tuple[Block, ...]:
        return (heading, diff(edits, most, limit)) if edits else (heading,)

    return Section(name, (form(8, 120), form(3, 40)), (85,))


def _history(comparison: Comparison, texts: Texts) -> Section:
    attempts = comparison.history

    def form(most: int, limit: int) -> tuple[Block, ...]:
        # the newest count: the comparison is on them
        shown = attempts[-most:]
        blocks: list[Block] = [_attempts(shown, limit, texts)]
        if len(attempts) > most:
            blocks.append(Paragraph((Words(texts("ticket.and_more", {"count": len(attempts) - most})),)))
        return tuple(blocks)

    return Section(texts("ticket.name.history"), (form(MAX_ATTEMPTS, 80), form(6, 40), form(2, 20)), (50, 95))


def _attempts(attempts: list[AttemptItem], limit: int, texts: Texts) -> Table:
    heads = [texts(f"compare.column.{name}") for name in ("attempt", "outcome", "steps", "changed", "shows")]

    def row(item: AttemptItem) -> tuple[str | Words, ...]:
        changed = joined(", ", [change.title for change in item.changes or []])
        return (
            str(item.number),
            _named(item, limit),
            rows.outcome(item, texts),
            rows.steps(item, texts),
            encode.cut(changed, 2 * limit, limit),
            texts(f"compare.short.{item.conclusion}") if item.conclusion else "",
        )

    return table(*(row(item) for item in attempts), head=("#", *heads))


def _named(item: AttemptItem, limit: int) -> Words:
    """An attempt's name, cut at its start: the end of a path tells attempts apart."""
    shown = item.source.reveal()
    shown = shown if len(shown) <= limit else "…" + shown[1 - limit :]
    return Words(LogText(f"{shown} #{item.attempt}"))


def _circumstances(comparison: Comparison, texts: Texts) -> Section:
    items = [
        Words(f"{item.title}: ", encode.shortened(item.from_, 100), " → ", encode.shortened(item.to, 100))
        for item in comparison.circumstances
    ]
    return _bullets("compare.section.circumstances", items, texts, 30)


def _tried(comparison: Comparison, texts: Texts) -> Section:
    """What helped and what was in vain, where there is a history to say so."""
    blocks: list[Block] = []
    for key, tried in (("helped", comparison.helped), ("in_vain", comparison.in_vain)):
        if tried and len(comparison.history) > 2:
            titles = Bullets(tuple(words(item.title) for item in tried[:MAX_ITEMS]))
            blocks += [Heading(Words(texts(f"compare.section.{key}"))), titles]
    return Section(texts("ticket.name.fixes"), (tuple(blocks), ()), (55,))


def _hidden(comparison: Comparison, texts: Texts) -> Section:
    """That names were replaced by labels, where they were."""
    said = comparison.redacted.says if comparison.redacted is not None else None
    return Section(texts("ticket.name.limits"), ((Paragraph((Words(said),)),),) if said else ((),))


def _edits(key: str, items: list[VariableItem], texts: Texts, rank: int) -> Section:
    heading = texts(key)
    blocks = (Heading(Words(heading)), _diff(items, MAX_EDITS, 120)) if items else ()
    return Section(heading, (blocks, ()), (rank,))


def _bullets(key: str, items: list[Words], texts: Texts, rank: int) -> Section:
    heading = texts(key)
    shown = tuple(encode.cut(item, 1000) for item in items[:MAX_ITEMS])
    return Section(heading, ((Heading(Words(heading)), Bullets(shown)) if shown else (), ()), (rank,))


def _diff(items: Iterable[VariableItem], most: int, limit: int) -> Verbatim:
    return diff([_edit(edit) for item in items for edit in item.edits], most, limit)


def _edit(edit: EditItem) -> Edit:
    return Edit(edit.path.reveal(), edit.from_, edit.to)
