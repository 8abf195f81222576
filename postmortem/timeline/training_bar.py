"""The training bar: which of a log's bars it is, its spans, and how it is cited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from postmortem.model import BarSpan, Item
from postmortem.text import LogText


def name_of(items: Sequence[Item], job_name: str | None) -> str | None:
    """The description of the training bar: the job's name, else the bar that no other pattern knows."""
    best: tuple[int, int, int] | None = None
    found: str | None = None
    for item in items:
        if isinstance(item, BarSpan) and item.description:
            name = item.description.reveal()
            if job_name is not None and name == job_name:
                return name
            if item.event not in (None, "bar_main"):
                continue
            key = (int(item.event == "bar_main"), int(bool(item.postfix)), item.total)
            if best is None or key > best:
                best, found = key, name
    return found


def is_span(item: Item, name: str | None) -> TypeGuard[BarSpan]:
    """Whether `item` is a span of the training bar called `name`."""
    return isinstance(item, BarSpan) and name is not None and item.description.reveal() == name


def spans(items: Sequence[Item], name: str | None) -> list[BarSpan]:
    """The spans of the training bar called `name`, in order."""
    return [item for item in items if is_span(item, name)]


def counts(span: BarSpan) -> LogText:
    """A bar as evidence: its name, and where it stood last."""
    return LogText(f"{span.description.reveal()}: {span.last_n}/{span.total}")
