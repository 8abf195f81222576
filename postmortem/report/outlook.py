"""The forecast, the savings and the ladder as parts of the document, and as lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from postmortem.model import ConfigChange, NotHelping, Range, Rung
from postmortem.report import document as doc
from postmortem.report.texts import Texts, size
from postmortem.text import Words
from postmortem.vram import Forecast, Refusal, next_card_gib

_FITS = "fits"
_NOTHING_MIB = 1.0
"""A range that starts below this may be nothing at all."""


def span(sizes: Range | None) -> doc.Span | None:
    """A range as the document holds it."""
    if sizes is None:
        return None
    return doc.Span(low=round(sizes.low, 1), likely=round(sizes.likely, 1), high=round(sizes.high, 1))


def forecast_item(found: Forecast | Refusal) -> doc.ForecastItem | None:
    """The forecast, where there is one."""
    if isinstance(found, Refusal):
        return None
    peak, need = span(found.peak), span(found.need)
    assert peak is not None and need is not None  # a forecast has both
    return doc.ForecastItem(
        phase=found.phase,
        model=found.model,
        peak=peak,
        need=need,
        usable=None if found.usable is None else round(found.usable, 1),
        shortage=None if found.usable is None else round(max(0.0, found.need.likely - found.usable), 1),
        fits=found.fits,
        parts=[
            doc.ForecastPart(
                id=part.id,
                low=round(part.low, 1),
                likely=round(part.likely, 1),
                high=round(part.high, 1),
                provenance=part.basis,
            )
            for part in found.parts
        ],
        anchor=None if found.anchor_mib is None else round(found.anchor_mib, 1),
    )


def missing(found: Forecast | Refusal, texts: Texts) -> doc.MissingItem | None:
    """Why there is no forecast."""
    if isinstance(found, Forecast):
        return None
    return doc.MissingItem(id=found.id, text=texts.words(f"forecast.missing.{found.id}", found.values))


def change_items(changes: Iterable[ConfigChange]) -> list[doc.ChangeItem]:
    """Edits of the config as the document holds them."""
    return [
        doc.ChangeItem(path=change.path, from_=doc.quoted(change.before), to=doc.quoted(change.after))
        for change in changes
    ]


def rung_item(rung: Rung, texts: Texts) -> doc.RungItem:
    """One rung of the ladder."""
    peak, need = span(rung.peak), span(rung.need)
    assert peak is not None and need is not None  # a rung has both
    return doc.RungItem(
        id=rung.id,
        title=texts(f"remedy.{rung.id}.title"),
        changes=change_items(rung.changes),
        peak=peak,
        need=need,
        fits=rung.fits,
    )


def card_needed_gib(found: Forecast | Refusal, ladder: Sequence[Rung]) -> int | None:
    """The smallest card that surely holds the job when the whole ladder does not fit this one; else None.

    None as well where this card is as large: then it is only that no verdict is certain.
    """
    if isinstance(found, Refusal) or found.usable is None or found.fits == _FITS:
        return None
    if any(rung.fits == _FITS for rung in ladder):
        return None
    left = ladder[-1].peak if ladder else found.peak
    needed = left.high + found.need.high - found.peak.high
    return next_card_gib(needed) if needed > found.usable else None


def why_not(item: NotHelping, texts: Texts, facts: Mapping[str, Any]) -> Words:
    """Why a fix does not help: by its own reason, or by its number."""
    if item.saving is None:
        return texts.words(f"remedy.{item.id}.not.{item.why}", facts)
    if item.saving.likely < 1:
        return texts.words("forecast.nothing")
    return texts.words("forecast.too_small", {"size": rounded(item.saving.likely)})


def between(sizes: doc.Span, texts: Texts) -> str:
    """A range for people, in as many digits as a prediction deserves: ``4.4-4.6 GiB``, ``up to 30 MiB``."""
    low, high = (rounded(mib) for mib in (sizes.low, sizes.high))
    if low == high:
        return low
    if sizes.low < _NOTHING_MIB:
        return texts("forecast.up_to", {"size": high})
    number, _, unit = low.partition(" ")
    return f"{number}–{high}" if high.endswith(" " + unit) else f"{low}–{high}"


def rounded(mib: float) -> str:
    """A predicted size, in as many digits as it deserves."""
    gib = mib / 1024
    if round(gib, 1) < 3:
        return size(mib)
    return f"{gib:.0f} GiB" if gib >= 20 else f"{round(gib * 2) / 2:g} GiB"


class Effect(Protocol):
    """What a fix of any document says of its effect."""

    @property
    def saving(self) -> doc.Span | None:
        """What it takes off the peak."""

    @property
    def need(self) -> doc.Span | None:
        """What is needed then, as the forecast counts it: with CUDA context and slack."""

    @property
    def fits(self) -> str | None:
        """The verdict on that."""


def effect(item: Effect, texts: Texts) -> str | None:
    """What a fix saves and whether that is enough, in one line; None where no figure is known."""
    if item.saving is None:
        return None
    if item.need is None:
        return texts("forecast.frees", {"size": rounded(item.saving.high)})
    saves = "saves_up_to" if item.saving.low < _NOTHING_MIB else "saves"
    size_saved = rounded(item.saving.high) if saves == "saves_up_to" else between(item.saving, texts)
    parts = [
        texts(f"forecast.{saves}", {"size": size_saved}),
        texts("forecast.left", {"size": between(item.need, texts)}),
    ]
    if item.fits and item.fits != "unknown":
        parts.append(texts(f"forecast.fits.{item.fits}"))
    return " · ".join(parts)


def ladder_lines(rungs: Sequence[doc.RungItem], card_needed_gib: int | None, texts: Texts) -> list[str]:
    """The retries, one variable each; nothing where the first fix is enough by itself."""
    if len(rungs) < 2 and card_needed_gib is None:
        return []
    lines = [_rung_line(number, rung, texts) for number, rung in enumerate(rungs, start=1)]
    if card_needed_gib is not None:
        lines.append(texts("forecast.no_rung_fits", {"size": card_needed_gib}))
    return lines


def _rung_line(number: int, rung: doc.RungItem, texts: Texts) -> str:
    line = texts("forecast.rung", {"number": number, "title": rung.title, "size": between(rung.need, texts)})
    return f"{line}, {fits}" if (fits := verdict(rung.fits, texts)) else line


def verdict(fits: str, texts: Texts) -> str:
    """Whether that is enough; nothing where the card is not known, which is said once, beside the forecast."""
    return "" if fits == "unknown" else texts(f"forecast.fits.{fits}")


def forecast_notes(report: doc.Report, texts: Texts) -> list[str]:
    """What to know of the forecast: how much is missing, that the card is unknown, what this run added to it."""
    found = report.forecast
    if found is None:
        return []
    notes: list[str] = []
    if found.usable is None:
        notes.append(texts("forecast.card_unknown"))
    elif found.shortage:
        notes.append(texts("forecast.short", {"size": rounded(found.shortage)}))
    if found.anchor:
        notes.append(texts("forecast.anchored", {"size": rounded(found.anchor)}))
    return notes
