"""The evidence of a report, each line by itself: what stands at its bytes, and who claims it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from postmortem.knowledge.fingerprint import fingerprint
from postmortem.model import Event, Traceback
from postmortem.scan import Lexicon, scan
from postmortem.text import printable

MAX_ITEMS = 60
"""Evidence that is looked up; no report has as many."""
MAX_SPAN = 64 * 1024
BEHIND = 4096
"""Bytes behind a span in which a message that was broken goes on."""
_LABEL = re.compile(r"<([a-z][a-z0-9-]*)-\d{1,9}>")
_ANY_NAME = re.compile(r"<[a-z][a-z0-9-]*>:")
_SPACE = re.compile(r"\s+")
_COUNTS = re.compile(r": (\d+/\d+)(?: |$)")


class Cited(msgspec.Struct, frozen=True):
    """One piece of evidence as the report cites it; `index` is its place there."""

    index: int
    line: int
    text: str
    source: str
    start: int
    end: int
    pattern: str | None
    pattern_version: str | None


class Found(msgspec.Struct, frozen=True):
    """What was found out about one: `why` is `stands`, or names what does not hold, at `path`."""

    index: int
    path: str
    why: str
    says: Any = None
    there: Any = None
    line: int | None = None


def cited(report: dict[str, Any]) -> Iterator[Cited]:
    """The evidence of `report` that can be looked up: it has a span and everything else in the right shape."""
    items = report["failure"].get("evidence")
    for index, item in enumerate(items[:MAX_ITEMS] if isinstance(items, list) else ()):
        if not isinstance(item, dict):
            continue
        try:
            one = msgspec.convert({**item, "index": index}, Cited)
        except msgspec.ValidationError:
            continue
        if 0 <= one.start <= one.end:
            yield one


def check(
    items: Iterable[Cited], read: Callable[[str], Iterable[bytes]], lexicon: Lexicon, hide: Callable[[str], str]
) -> Iterator[Found]:
    """Look each up in the log; `hide` redacts a text as the report was redacted."""
    by_source: dict[str, list[Cited]] = {}
    for item in items:
        by_source.setdefault(item.source, []).append(item)
    for source, here in by_source.items():
        windows = _windows(read(source), here)
        for item in here:
            yield from _one(item, *windows[item.index], lexicon, hide)


def _windows(chunks: Iterable[bytes], items: list[Cited]) -> dict[int, tuple[bytes, int]]:
    """The bytes from each start on, to a little behind its end, and the line that the start stands in."""
    held: dict[int, bytearray] = {item.index: bytearray() for item in items}
    lines = {item.index: 1 for item in items}
    at, breaks = 0, 1
    for chunk in chunks:
        for item in items:
            first, last = item.start - at, min(item.end, item.start + MAX_SPAN) + BEHIND - at
            if first < len(chunk) and last > 0:
                if first >= 0:
                    lines[item.index] = breaks + chunk.count(b"\n", 0, first)
                held[item.index] += chunk[max(0, first) : last]
        at += len(chunk)
        breaks += chunk.count(b"\n")
    return {index: (bytes(window), lines[index]) for index, window in held.items()}


def _one(item: Cited, window: bytes, line: int, lexicon: Lexicon, hide: Callable[[str], str]) -> Iterator[Found]:
    path = f"failure.evidence[{item.index}]"
    span = window[: min(item.end - item.start, MAX_SPAN)]
    shown = printable(span.decode("utf-8", "replace"))
    wrong = 0
    if line != item.line:
        wrong += 1
        yield Found(item.index, f"{path}.line", "moved", item.line, line, line)
    if not _holds(item, shown, window, hide):
        wrong += 1
        yield Found(item.index, f"{path}.text", "other_text", item.text, hide(shown)[:300], line)
    if item.pattern is not None:
        entry = lexicon.by_id.get(item.pattern)
        if entry is None:
            wrong += 1
            yield Found(item.index, f"{path}.pattern", "no_such_pattern", item.pattern, None, line)
        elif fingerprint(entry.pattern) != item.pattern_version:
            wrong += 1
            now = fingerprint(entry.pattern)
            yield Found(item.index, f"{path}.pattern_version", "pattern_changed", item.pattern_version, now, line)
        claims = _claims(span, window, lexicon)
        if entry is not None and item.pattern not in claims:
            wrong += 1
            yield Found(item.index, f"{path}.pattern", "not_claimed", item.pattern, ", ".join(claims)[:200], line)
    if not wrong:
        yield Found(item.index, path, "stands")


def _claims(span: bytes, window: bytes, lexicon: Lexicon) -> list[str]:
    """The entries that claim what stands there, read by itself, and with what a message goes on in."""
    found: dict[str, None] = {}
    for text in (span, span.replace(b"\r", b"").replace(b"\n", b""), window):
        for item in scan([text], lexicon).items[:8]:
            event = item.exception if isinstance(item, Traceback) else item
            if isinstance(event, Event) and event.place.offset < max(1, len(span)):
                found[event.pattern] = None
    return list(found)


def _holds(item: Cited, shown: str, window: bytes, hide: Callable[[str], str]) -> bool:
    """Whether the evidence's text is what stands in the span; of a bar its counts, of a frame its function."""
    text, there, plain = _bare(item.text), _bare(hide(shown)), _bare(shown)
    if not text:
        return False
    if text in there or text in plain:
        return True
    if item.pattern is None:
        counts = _COUNTS.search(item.text)
        if counts is None:
            return any(_bare(item.text.partition(":")[0]) in one for one in (there, plain))
        name, postfix = item.text[: counts.start()], item.text[counts.end() :]
        named = any(_bare(name) in one for one in (there, plain))
        # a job called as its dataset is: which kind of label stands there depends on what saw it first
        named = named or bool(_LABEL.fullmatch(name.strip()) and _ANY_NAME.match(there))
        return f" {counts[1]} [" in shown and named and _bare(postfix) in plain
    # an allocator's message that a program broke goes on in the lines below, behind their own prefixes
    rest = window.split(b"\n")[1:12]
    more = "".join(_bare(hide(printable(line.decode("utf-8", "replace")))) for line in rest)
    return 0 <= (there + more).find(text) < len(there)


def _bare(text: str) -> str:
    """Without blanks and the numbers of labels: how lines were joined does not matter."""
    return _SPACE.sub("", _LABEL.sub(r"<\1>", text))


def has_label(value: Any) -> bool:
    """Whether a report that does not say so was redacted: a text in it holds a label."""
    return any(
        _LABEL.search(text)
        for text in (
            *_strings(value.get("failure")),
            *_strings(value.get("config")),
            *_strings(value.get("run")),
            *_strings(value.get("buckets")),
        )
    )


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
