"""Make the spans of bars fewer in the middle of a long attempt: what nobody asks for goes, what goes on is joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from postmortem.model import BarSpan, Item
from postmortem.scan.bars import MAX_RANGES, MAX_SAMPLES

FEW_SAMPLES = 2
"""Samples that a span keeps however many spans there are; a single one keeps MAX_SAMPLES."""


class Main:
    """Which of an attempt's bars is its training bar, by all spans of it so far: the job's, else the likeliest."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._best: tuple[int, int, int] | None = None
        self.name = ""

    def see(self, spans: Iterable[Item]) -> None:
        """Take in further spans."""
        for span in spans:
            if not isinstance(span, BarSpan) or not span.description or (self.job and self.name == self.job):
                continue
            if self.job and span.description.reveal() == self.job:
                self.name = self.job
            elif span.event in (None, "bar_main"):
                key = (int(span.event == "bar_main"), int(bool(span.postfix)), span.total)
                if self._best is None or key > self._best:
                    self._best, self.name = key, span.description.reveal()


def thinned(items: Sequence[Item], main: str, before: int = 0) -> tuple[list[Item], int]:
    """Items with the spans of the bar `main` joined where nothing else stands between them, and how many are gone.

    The more spans are left, with the `before` that were left earlier, the fewer samples each keeps.
    Of another bar a span stays where it is the last to say what the program was doing before something else.
    """
    kept: list[Item] = []
    chains: list[tuple[int, list[BarSpan]]] = []
    dropped = at = 0
    while at < len(items):
        end = at
        while end < len(items) and isinstance(items[end], BarSpan):
            end += 1
        run = [item for item in items[at:end] if isinstance(item, BarSpan)]
        dropped += _sort_out(run, main, kept, chains)
        kept += items[end : end + 1]
        at = end + 1
    room = max(FEW_SAMPLES, MAX_SAMPLES // max(1, before + len(chains)))
    for index, chain in chains:
        kept[index] = _joined(chain, room)
    return kept, dropped


def _sort_out(run: Sequence[BarSpan], main: str, kept: list[Item], chains: list[tuple[int, list[BarSpan]]]) -> int:
    """Put what stays of spans in a row into `kept`, with those to be joined in `chains`; how many are gone."""
    names = [span.description.reveal() == main for span in run]
    said = max((index for index, span in enumerate(run) if names[index] or span.phase), default=-1)
    dropped = 0
    chain: list[BarSpan] = []
    for index, span in enumerate(run):
        if names[index]:
            if not chain or not _continues(chain[-1], span):
                chain = []
                chains.append((len(kept), chain))
                kept.append(span)
            chain.append(span)
        elif index == said:
            kept.append(span)
        else:
            dropped += 1
    return dropped


def _continues(before: BarSpan, span: BarSpan) -> bool:
    return before.total == span.total and before.event == span.event and span.first_n >= before.last_n


def _joined(chain: Sequence[BarSpan], room: int) -> BarSpan:
    """Spans of one bar as one, with up to `room` samples.

    Between the draws of several spans something else took time: the lines' times are not to be measured between.
    """
    first, last = chain[0], chain[-1]
    samples = [sample for span in chain for sample in span.samples]
    kept = _spread([sample[0] for sample in samples], room)
    walls = first.walls if len(chain) == 1 else ()
    return msgspec.structs.replace(
        last,
        place=first.place,
        first_n=first.first_n,
        draws=sum(span.draws for span in chain),
        unproven=tuple(found for span in chain for found in span.unproven)[:MAX_RANGES],
        samples=tuple(samples[index] for index in kept),
        walls=tuple(walls[index] for index in kept) if walls else (),
    )


def _spread(counts: Sequence[int], room: int) -> Sequence[int]:
    """The indexes of up to `room` of ascending counts, evenly spread over them; the first and the last one too."""
    if len(counts) <= room:
        return range(len(counts))
    first, last = counts[0], len(counts) - 1
    width = (counts[last] - first) / (room - 1)
    kept = []
    due = float(first)
    for index, count in enumerate(counts):
        if count >= due:
            kept.append(index)
            due = first + width * ((count - first) // width + 1) if width else float("inf")
    return [*kept[: room - 1], last]
