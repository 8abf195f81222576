"""The card's memory, drawn to scale: what held it when the request failed, and what the phase needs by the forecast.

Both pictures are a bar of parts over a second bar that must fit beside or below it, so that what is missing shows as
what sticks out over the card's edge. Positions and widths are percentages of the picture's width.
"""

from __future__ import annotations

from math import fsum

import msgspec

from postmortem.report.document import ForecastItem, LedgerPart, Report, Span
from postmortem.report.html.geometry import percent
from postmortem.report.outlook import between
from postmortem.report.texts import Texts, size

PARTS = ("other_processes", "non_pytorch", "allocated", "reserved_unallocated", "unexplained", "free")
SHOWN_FROM = 0.6
"""Percent of the width from which a part can be seen; a smaller one is drawn so wide."""

Row = tuple[str, float, str, str, "str | None"]
"""A part before it is placed: key of its name, MiB, size in words, look, what the figure stands on."""


class Piece(msgspec.Struct, frozen=True):
    """One part of a bar: its number in the picture, its name and size in words, where it stands and how it looks."""

    number: int
    name: str
    size: str
    look: str
    x: float
    width: float
    basis: str | None = None

    @property
    def middle(self) -> float:
        """Where its number stands."""
        return round(self.x + self.width / 2, 1)

    @property
    def numbered(self) -> bool:
        """Whether there is room for its number."""
        return self.width >= 4.5


class Bar(msgspec.Struct, frozen=True):
    """A bar by itself: from `x`, so wide."""

    x: float
    width: float


class Total(msgspec.Struct, frozen=True):
    """A line below the parts: the request, the card, their difference."""

    look: str
    name: str
    size: str


class Picture(msgspec.Struct, frozen=True):
    """A bar of pieces; the second bar below it; the card's edge and how far the bars stick out over it."""

    pieces: list[Piece]
    totals: list[Total]
    below: Bar | None
    edge: float | None
    edge_label: str | None
    over: Bar | None
    over_label: str | None
    sentence: str
    drawn: bool = True
    reach: Bar | None = None
    """Between the low and the high end of a forecast."""


def at_failure(report: Report, texts: Texts) -> Picture | None:
    """The card at the failure; None where the log holds no sizes, and not drawn where they are no whole."""
    ledger, tried = report.ledger, report.memory.tried_to_allocate
    if ledger.capacity is None and ledger.allocated is None and tried is None:
        return None
    parts = [(name, getattr(ledger, name)) for name in PARTS]
    held = fsum(mib or 0.0 for name, mib in parts if name != "free")
    capacity = ledger.capacity or 0.0
    scale = max(capacity, held + (ledger.free or 0.0), held + (tried or 0.0))
    pieces = _pieces(
        [
            (f"memory.{name}", mib, size(mib), name, None)
            for name, mib in parts
            if mib or (name == "free" and mib is not None)
        ],
        scale,
        texts,
    )
    start = percent(held, scale)
    wanted = Bar(start, max(SHOWN_FROM, round(percent(held + tried, scale) - start, 1))) if tried else None
    edge = percent(capacity, scale)
    over = Bar(edge, round(percent(held + (tried or 0.0), scale) - edge, 1)) if ledger.shortage else None
    totals = [Total("request", texts("memory.request"), size(tried))] if tried else []
    if capacity:
        totals.append(Total("total", texts("memory.capacity"), size(capacity)))
    if ledger.overdrawn:
        totals.append(
            Total("over", texts("memory.overdrawn", {"size": size(ledger.overdrawn)}), size(ledger.overdrawn))
        )
    return Picture(
        drawn=bool(capacity) and ledger.allocated is not None,
        pieces=pieces,
        totals=totals,
        below=wanted,
        edge=edge,
        edge_label=f"{texts('memory.capacity')} {size(capacity)}",
        over=over if over and over.width > 0 else None,
        over_label=texts("memory.short", {"size": size(ledger.shortage)}) if ledger.shortage else None,
        sentence=_sentence(pieces, ledger, tried, texts),
    )


def forecast(report: Report, texts: Texts) -> Picture | None:
    """What the failing phase needs at its largest against the card; None without a forecast."""
    found = report.forecast
    if found is None:
        return None
    scale = max(found.need.high, found.usable or 0.0)
    rows: list[Row] = [
        (
            f"forecast.part.{part.id}",
            part.likely,
            between(Span(low=part.low, likely=part.likely, high=part.high), texts),
            f"part_{part.id}",
            texts(f"forecast.basis.{part.provenance}"),
        )
        for part in found.parts
    ]
    slack = found.need.likely - fsum(part.likely for part in found.parts)
    if slack > 0:
        rows.append(("html.slack", slack, size(slack), "part_slack", None))
    pieces = _pieces(rows, scale, texts)
    low, high = percent(found.need.low, scale), percent(found.need.high, scale)
    card = Bar(0.0, percent(found.usable, scale)) if found.usable is not None else None
    likely = percent(found.need.likely, scale)
    over = Bar(card.width, round(likely - card.width, 1)) if card and likely > card.width else None
    totals = [Total("total", texts("html.in_all"), between(found.need, texts))]
    if found.usable is not None:
        totals.append(Total("card", texts("forecast.usable"), size(found.usable)))
    return Picture(
        pieces=pieces,
        totals=totals,
        below=card,
        edge=card.width if card else None,
        edge_label=None,
        over=over,
        over_label=None,
        reach=Bar(low, round(high - low, 1)),
        sentence=_need(found, pieces, texts),
    )


def _pieces(rows: list[Row], scale: float, texts: Texts) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0.0
    for number, (key, mib, shown, look, basis) in enumerate(rows, start=1):
        start, end = percent(at, scale), percent(at + mib, scale)
        width = max(SHOWN_FROM, round(end - start, 1)) if mib else 0.0
        start = round(min(start, 100.0 - width), 1)
        pieces.append(Piece(number, texts(key), shown, look, start, width, basis))
        at += mib
    return pieces


def _sentence(pieces: list[Piece], ledger: LedgerPart, tried: float | None, texts: Texts) -> str:
    """The picture in words, for those who do not see it."""
    said = [f"{piece.name} {piece.size}" for piece in pieces]
    if tried:
        said.append(f"{texts('memory.request')} {size(tried)}")
    if ledger.shortage:
        said.append(texts("memory.short", {"size": size(ledger.shortage)}))
    return f"{texts('memory.capacity')} {size(ledger.capacity or 0.0)}: " + ", ".join(said)


def _need(found: ForecastItem, pieces: list[Piece], texts: Texts) -> str:
    said = [f"{piece.name} {piece.size}" for piece in pieces]
    said.append(f"{texts('forecast.need')} {between(found.need, texts)}")
    if found.usable is not None:
        said.append(f"{texts('forecast.usable')} {size(found.usable)}")
    return ", ".join(said)
