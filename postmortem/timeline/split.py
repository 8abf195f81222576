"""Tell the attempts in one log apart: appended runs, several jobs of one run, rotated files."""

from __future__ import annotations

from collections.abc import Iterator

from postmortem.model import BarSpan, ConfigDump, Event, Item, ScanResult

_STARTS = frozenset({"job_count", "job_banner", "process_count"})


def split(scan: ScanResult) -> Iterator[list[Item]]:
    """The items of `scan`, one list per attempt, in file order.

    An attempt starts at the program's first lines. Where those are missing (a pasted or filtered log), a
    model that loads again after training or after a fatal error starts one.
    """
    current: list[Item] = []
    seen: set[str] = set()
    for item in scan.items:
        mark = _mark(item)
        if mark and current and _begins(mark, seen):
            yield current
            current, seen = [], set()
        current.append(item)
        if mark:
            seen.add(mark)
    if current:
        yield current


def _mark(item: Item) -> str | None:
    if isinstance(item, ConfigDump):
        return "dump"
    if isinstance(item, BarSpan):
        return "trained" if item.event in (None, "bar_main") and item.description else None
    if isinstance(item, Event):
        if item.event in _STARTS:
            return item.event
        if item.event == "load_model":
            return "load"
        if item.role in ("abort", "result", "stop", "exit", "kill") or (
            item.role in ("oom", "host_oom") and not item.caught
        ):
            return "ended"
    return None


def _begins(mark: str, seen: set[str]) -> bool:
    if mark == "job_count":
        return bool(seen - {"dump"}) or "job_count" in seen
    if mark == "dump":
        # a job of several processes prints the config of each, one after another
        return bool(seen & {"job_banner", "process_count", "trained", "ended"})
    if mark == "job_banner":
        return bool(seen & {"job_banner", "process_count", "trained", "ended"})
    if mark == "process_count":
        return bool(seen & {"process_count", "trained", "ended"})
    if mark == "load":
        return bool(seen & {"trained", "ended"})
    return False
