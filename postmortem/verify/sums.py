"""The arithmetic of a report, from its own figures: what does not add up is wrong whatever the log says."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import Any

import msgspec

from postmortem.verify.compare import Labels, equal

_ENDS = ("low", "likely", "high")
_ROUNDED = 0.05
"""What rounding to one digit can move a figure by, MiB."""


class Sum(msgspec.Struct, frozen=True):
    """A figure that follows from others of the report: what it says, and what follows."""

    path: str
    says: Any
    follows: Any
    holds: bool


def check(report: dict[str, Any]) -> list[Sum]:
    """Every figure of `report` that follows from others. Parts of the wrong shape are passed over."""
    return [
        *_ledger(_part(report, "ledger"), _part(report, "memory")),
        *_forecast(_part(report, "forecast")),
        *_spans(report),
        *_changes(report),
        *_lines(report),
        *_shares(report),
    ]


def _part(report: Any, key: str) -> dict[str, Any]:
    found = report.get(key) if isinstance(report, dict) else None
    return found if isinstance(found, dict) else {}


def _items(report: Any, key: str) -> list[dict[str, Any]]:
    found = report.get(key) if isinstance(report, dict) else None
    return [item if isinstance(item, dict) else {} for item in found] if isinstance(found, list) else []


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _near(path: str, says: Any, follows: float, within: float) -> Sum:
    number = _number(says)
    rounded = round(follows, 2)
    return Sum(path, says, rounded, number is not None and abs(number - follows) <= within)


def _ledger(ledger: dict[str, Any], memory: dict[str, Any]) -> Iterator[Sum]:
    """The card as a sum: capacity = others + non-PyTorch + allocated + reserved + free + unexplained."""
    held = {key: _number(value) for key, value in ledger.items()}
    capacity, allocated, free = (held.get(key) for key in ("capacity", "allocated", "free"))
    parts = [held.get(key) or 0.0 for key in ("other_processes", "non_pytorch", "reserved_unallocated")]
    reserved, overdrawn = held.get("reserved_unallocated") or 0.0, held.get("overdrawn")
    if capacity is not None and allocated is not None and free is not None:
        rest = capacity - free - allocated - fsum(parts)
        yield _near("ledger.unexplained", ledger.get("unexplained"), max(0.0, rest), _ROUNDED)
        if overdrawn is not None:
            yield _near("ledger.overdrawn", overdrawn, allocated + reserved - capacity, _ROUNDED)
    own = _number(memory.get("process_in_use"))
    if own is not None and allocated is not None:
        yield _near("ledger.non_pytorch", ledger.get("non_pytorch"), max(0.0, own - allocated - reserved), _ROUNDED)
    tried = _number(memory.get("tried_to_allocate"))
    if tried is not None and free is not None:
        yield _near("ledger.shortage", ledger.get("shortage"), max(0.0, tried - free + (overdrawn or 0.0)), _ROUNDED)
    for key, same in (
        ("capacity", "gpu_total"),
        ("allocated", "pytorch_allocated"),
        ("free", "free"),
        ("reserved_unallocated", "reserved_unallocated"),
        ("other_processes", "other_processes"),
    ):
        if key in ledger and same in memory:
            yield Sum(f"ledger.{key}", ledger[key], memory[same], equal(ledger[key], memory[same], Labels()))


def _forecast(forecast: dict[str, Any]) -> Iterator[Sum]:
    """The parts add up to the peak; what is missing is the need less what is usable."""
    parts, peak, need = _items(forecast, "parts"), _part(forecast, "peak"), _part(forecast, "need")
    for end in _ENDS:
        figures = [_number(part.get(end)) for part in parts]
        if parts and None not in figures:
            total = fsum(figure for figure in figures if figure is not None)
            yield _near(f"forecast.peak.{end}", peak.get(end), total, _ROUNDED * (len(parts) + 2))
        low, high = _number(peak.get(end)), _number(need.get(end))
        if low is not None and high is not None:
            yield Sum(f"forecast.need.{end}", need.get(end), f"≥ {low}", high >= low)
    usable, likely = _number(forecast.get("usable")), _number(need.get("likely"))
    if usable is not None and likely is not None:
        yield _near("forecast.shortage", forecast.get("shortage"), max(0.0, likely - usable), 4 * _ROUNDED)


def _spans(report: dict[str, Any]) -> Iterator[Sum]:
    """Of a range, the lowest comes first."""
    found = [("forecast." + key, _part(_part(report, "forecast"), key)) for key in ("peak", "need")]
    for index, part in enumerate(_items(_part(report, "forecast"), "parts")):
        found.append((f"forecast.parts[{index}]", part))
    for index, item in enumerate(_items(report, "remedies")):
        found += [(f"remedies[{index}].{key}", _part(item, key)) for key in ("saving", "peak", "need")]
    for index, item in enumerate(_items(report, "ladder")):
        found += [(f"ladder[{index}].{key}", _part(item, key)) for key in ("peak", "need")]
    for path, span in found:
        ends = [_number(span.get(end)) for end in _ENDS]
        if span and None not in ends:
            known = [end for end in ends if end is not None]
            yield Sum(path, ends, sorted(known), ends == sorted(known))


def _changes(report: dict[str, Any]) -> Iterator[Sum]:
    """A fix starts from the setting in force; the settings shown are those in force; ranks count up."""
    values = _part(_part(report, "config"), "values")
    for index, item in enumerate(_items(report, "remedies")):
        yield Sum(f"remedies[{index}].rank", item.get("rank"), index + 1, item.get("rank") == index + 1)
        for at, change in enumerate(_items(item, "changes")):
            yield from _in_force(
                f"remedies[{index}].changes[{at}].from", change.get("path"), change.get("from"), values
            )
    for index, row in enumerate(_items(report, "settings")):
        yield from _in_force(f"settings[{index}].value", row.get("path"), row.get("value"), values)


def _in_force(path: str, setting: Any, says: Any, values: dict[str, Any]) -> Iterator[Sum]:
    held = values.get(setting) if isinstance(setting, str) else None
    if isinstance(held, dict) and "value" in held:
        yield Sum(path, says, held["value"], equal(says, held["value"], Labels()) or says == held["value"])


def _lines(report: dict[str, Any]) -> Iterator[Sum]:
    """No line is cited that the log does not have, and spans lie within it."""
    lines, size = (_number(_part(report, "input").get(key)) for key in ("lines", "bytes"))
    cited = [(f"failure.evidence[{at}]", item) for at, item in enumerate(_items(_part(report, "failure"), "evidence"))]
    cited += [
        (f"{key}[{at}]", item) for key in ("oom_events", "timeline") for at, item in enumerate(_items(report, key))
    ]
    for path, item in cited:
        line, start, end = (_number(item.get(key)) for key in ("line", "start", "end"))
        if start is None and end is None:
            continue
        if line is not None and lines is not None:
            yield Sum(f"{path}.line", item.get("line"), f"1 … {lines:.0f}", 1 <= line <= lines)
        if size is not None:
            inside = start is not None and end is not None and 0 <= start <= end <= size
            yield Sum(f"{path}.start", [item.get("start"), item.get("end")], f"0 … {size:.0f}", inside)


def _shares(report: dict[str, Any]) -> Iterator[Sum]:
    """A bucket's share is its batches of all."""
    rows = _items(report, "buckets")
    counts = [_number(row.get("batches")) for row in rows]
    total = sum(count for count in counts if count is not None)
    if not total or None in counts:
        return
    for index, (row, count) in enumerate(zip(rows, counts, strict=True)):
        yield _near(f"buckets[{index}].share", row.get("share"), round((count or 0.0) / total, 4), 0.0002)
