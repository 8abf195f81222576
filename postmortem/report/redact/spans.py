"""From finds to a text with labels in it: what overlaps becomes one, and what is a label already stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from postmortem.report.redact.labels import LABEL, Hidden
from postmortem.report.redact.shapes import Span


def replaced(raw: str, spans: list[Span], label: Callable[[Hidden], str]) -> str:
    """`raw` with what stands at `spans` replaced by its label."""
    if not spans:
        return raw
    labels = [found.span() for found in LABEL.finditer(raw)]
    out: list[str] = []
    past = 0
    for start, end, thing in _merged(_without(spans, labels), raw):
        out += [raw[past:start], label(thing)]
        past = end
    return "".join([*out, raw[past:]])


def _without(spans: list[Span], labels: list[tuple[int, int]]) -> list[Span]:
    """`spans` less what already is a label: a label stays, and what is left around it is hidden by itself."""
    if not labels:
        return spans
    left: list[Span] = []
    for start, end, rank, thing in spans:
        at = start
        touched = [one for one in labels if one[0] < end and one[1] > start]
        for begin, stop in [*touched, (end, end)]:
            if begin > at:
                whole = not touched
                left.append((at, begin, rank, thing if whole else Hidden(thing.label, "", thing.exact)))
            at = max(at, stop)
    return left


def _merged(spans: list[Span], raw: str) -> Iterator[tuple[int, int, Hidden]]:
    """Spans that overlap become one, so that nothing sticks out; the best one that covers all of it names it."""
    group: list[Span] = []
    end = -1
    for span in [*sorted(spans, key=lambda one: (one[0], -one[1], one[2])), None]:
        if span is not None and group and span[0] < end:
            group.append(span)
            end = max(end, span[1])
            continue
        if group:
            start = group[0][0]
            covering = [one for one in group if one[0] == start and one[1] == end]
            best = min(covering or group, key=lambda one: (one[2] if covering else one[0] - one[1], one[2]))
            thing = best[3] if covering and best[3].original else Hidden(best[3].label, raw[start:end], best[3].exact)
            if any(sign.isalnum() for sign in raw[start:end]):
                yield start, end, thing
        if span is not None:
            group, end = [span], span[1]
