"""What a ticket consists of, whatever the tracker's markup: blocks, and sections that may be shortened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from postmortem.text import LogText, Words


@dataclass(frozen=True, slots=True)
class Title:
    """The headline."""

    text: Words


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading inside the ticket, on a line of its own."""

    text: Words


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences, each on a line of its own."""

    lines: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    items: tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of one width; the first cell of a row names it unless there is a `head`."""

    rows: tuple[tuple[Words, ...], ...]
    head: tuple[Words, ...] | None = None


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines as they stand: of a log, or a diff."""

    lines: tuple[LogText, ...]
    diff: bool = False


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses of ours, each with its name. Only ``https`` ones become links."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """Details under a summary, folded away where the tracker can."""

    summary: Words
    blocks: tuple[Block, ...]


Block: TypeAlias = "Title | Heading | Paragraph | Bullets | Table | Verbatim | Links | Fold"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the ticket in its forms, the fullest first. Form n gives way to n+1 when `ranks[n]` comes up, the
    lowest rank of all first; `name` is what the ticket then calls it."""

    name: str
    forms: tuple[tuple[Block, ...], ...]
    ranks: tuple[int, ...] = ()


def table(*rows: tuple[str | LogText | Words, ...], head: tuple[str, ...] | None = None) -> Table:
    """A table of cells of any kind."""
    return Table(tuple(tuple(words(cell) for cell in row) for row in rows), tuple(map(Words, head)) if head else None)


def words(text: str | LogText | Words) -> Words:
    """Anything as a sentence."""
    return text if isinstance(text, Words) else Words(text)


def joined(separator: str, items: list[Words]) -> Words:
    """Sentences in one line."""
    parts: list[str | LogText] = []
    for item in items:
        parts += [separator, *item.parts] if parts else item.parts
    return Words(*parts)
