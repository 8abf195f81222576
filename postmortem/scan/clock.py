"""The time that the prefix of a line carries: read by the groups that the prefix entries name, for events only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postmortem.model import Stamp
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText

_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_DAY = 86_400.0
_LEAP_YEAR = 2000


def stamp_of(text: str, lexicon: Lexicon) -> Stamp | None:
    """The time in the prefixes in front of `text`, the outermost that has one; None without one."""
    if lexicon.peel_prefix(text) is text:
        return None
    for _ in range(4):
        found = lexicon.prefix(text)
        if found is None:
            return None
        stamp = _read(found.groupdict(), _printed(found))
        if stamp is not None:
            return stamp
        text = text[found.end() :]
    return None


def _printed(found: Any) -> str:
    """The time as it stands in the line: from the first named group to the last."""
    spans = [found.span(name) for name, value in found.groupdict().items() if value]
    return str(found.string[min(start for start, _ in spans) : max(end for _, end in spans)]) if spans else ""


def _read(groups: Mapping[str, Any], printed: str) -> Stamp | None:
    try:
        if groups.get("epoch"):
            return Stamp(float(groups["epoch"]), "utc", LogText(groups["epoch"]))
        if groups.get("uptime"):
            return Stamp(float(groups["uptime"]), "uptime", LogText(groups["uptime"]))
        if not groups.get("time"):
            return None
        clock = _clock(groups["time"], groups.get("half"))
        day, kind = _day(groups)
        zone = groups.get("zone")
        if kind == "local" and zone:
            kind, clock = "utc", clock - _offset(zone)
    except (ValueError, KeyError, IndexError, TypeError, OverflowError):
        return None  # an impossible number is no time, and a pack may read what is none
    return Stamp(day * _DAY + clock, kind, LogText(printed))


def _clock(text: str, half: str | None) -> float:
    hours, minutes, seconds = text.replace(",", ".").split(":")
    hour = int(hours)
    if half:
        hour = hour % 12 + (12 if half == "PM" else 0)
    if hour > 24 or int(minutes) > 59 or float(seconds) > 61:
        raise ValueError(text)
    return hour * 3600 + int(minutes) * 60 + float(seconds)


def _day(groups: Mapping[str, Any]) -> tuple[int, str]:
    """Days since 1970, and what kind of date it is."""
    if groups.get("date"):
        year, month, day = (int(part) for part in groups["date"].split("-"))
        return _days(year, month, day), "local"
    if groups.get("us_date"):
        month, day, year = (int(part) for part in groups["us_date"].split("/"))
        return _days(year, month, day), "local"
    if groups.get("month"):
        year = int(groups["year"]) if groups.get("year") else _LEAP_YEAR
        kind = "local" if groups.get("year") else "yearless"
        return _days(year, _MONTHS[groups["month"]], int(groups["day"])), kind
    if groups.get("monthday"):
        return _days(_LEAP_YEAR, int(groups["monthday"][:-2]), int(groups["monthday"][-2:])), "yearless"
    return 0, "clock"


def _days(year: int, month: int, day: int) -> int:
    from datetime import date

    return date(year, month, day).toordinal() - 719_163


def _offset(zone: str) -> float:
    if zone == "Z":
        return 0.0
    digits = zone[1:].replace(":", "")
    return (-1.0 if zone[0] == "-" else 1.0) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)
