"""A drift as text for people and as JSON. Whatever came out of the checkout is made harmless first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec

from postmortem.drift.compare import Drift
from postmortem.text import printable

_WIDTH = 200


def as_text(drift: Drift) -> str:
    """Grouped by file, a find a line, with a summary at the end."""
    return "\n".join([*_finds(drift), *_entries(drift), *_summary(drift)]) + "\n"


def _finds(drift: Drift) -> Iterator[str]:
    for path, items in groupby(drift.uncovered, key=lambda item: item.path):
        yield printable(path)
        for item in items:
            more = f" (and {len(item.lines) - 1} more)" if len(item.lines) > 1 else ""
            yield f"  {printable(path)}:{item.lines[0]}{more}  {item.kind}  {_short(item.text)}"
        yield ""


def _entries(drift: Drift) -> Iterator[str]:
    if drift.gone:
        yield "entries that this checkout contradicts"
        yield from (f"  {item.id}  {item.why}  ({printable(item.source)})" for item in drift.gone)
        yield ""
    if drift.defaults:
        yield "defaults that differ"
        for item in drift.defaults:
            where = f"{printable(item.path)}:{item.line}"
            yield f"  {where}  {item.setting}: settings.yaml {item.ours!r}, checkout {_short(repr(item.theirs))}"
        yield ""
    if drift.passed_over:
        yield "files passed over"
        yield from (f"  {_short(item)}" for item in drift.passed_over)
        yield ""


def _summary(drift: Drift) -> Iterator[str]:
    counts = f"{len(drift.gone)} entries contradicted, {len(drift.defaults)} defaults differ"
    rest = f"{sum(drift.excluded.values())} left out on purpose, {drift.outside} outside the watched paths"
    yield f"{len(drift.uncovered)} not covered, {counts}; {drift.covered} covered, {rest}"


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


def as_json(drift: Drift) -> str:
    """The same as one JSON document."""
    document = {"drift": drift.found, **_plain(drift)}
    return json.dumps(document, indent=2, ensure_ascii=False, default=repr) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {printable(str(key)): _plain(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(below) for below in value]
    return value
