"""What one log says: lines that an entry of the knowledge base claims, bars, tracebacks, the config dump."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from postmortem.text import LogText

_MAX_DIGITS = 12


class Stamp(msgspec.Struct, frozen=True):
    """A time that a line's prefix carries. `seconds` count from 1970 (`utc`, `local`), from 1 January (`yearless`),
    from midnight (`clock`) or from boot (`uptime`): only stamps of one `kind` can be compared."""

    seconds: float
    kind: str
    text: LogText


class Place(msgspec.Struct, frozen=True):
    """Where something stands: 1-based physical line, which file; when, if printed.

    `offset` and `end` are the bytes of the segment (between cuts and bars, its prefix included; of a bar its last
    draw) in the log's text as UTF-8; `end` is 0 where only the line is known.
    """

    line: int
    offset: int
    source: str = ""
    stamp: Stamp | None = None
    end: int = 0


class Event(msgspec.Struct, frozen=True):
    """One line (or part of one) that an entry of the knowledge base claims."""

    place: Place
    pattern: str
    role: str
    text: LogText
    groups: Mapping[str, LogText] = msgspec.field(default_factory=dict)
    sizes_mib: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    others_mib: tuple[float, ...] = ()
    event: str | None = None
    kind: str | None = None
    resource: str | None = None
    phase: str | None = None
    caught: bool = False
    reason: str | None = None
    carriers: tuple[str, ...] = ()
    exception: str | None = None
    device: int | None = None
    quoted: bool = False
    cited: bool = False
    """Whether its line begins as mail and Markdown quote another text."""

    def number(self, group: str) -> int | None:
        """The whole number that `group` holds; None where there is none, or one of more digits than any count has."""
        text = self.groups.get(group)
        digits = text.reveal() if text else ""
        return int(digits) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else None


class BarSpan(msgspec.Struct, frozen=True):
    """Consecutive draws of one progress bar with no other event between them, folded.

    `n` counts as the bar counts. `unproven` holds the half-open ranges of counts that the bar left
    without the sign of a finished step (a redraw at the same count, or a changed postfix). `samples`
    are (n, elapsed seconds, line) at some of the draws, the first and the last few included; `walls` their times by
    the lines' prefixes, empty where not all have one.
    Of the draws at the bar's first
    count, `start_blank` had no postfix, `start_said` had one, `start_proofs` of these a new one.
    """

    place: Place
    last_place: Place
    description: LogText
    total: int
    first_n: int
    last_n: int
    draws: int
    unproven: tuple[tuple[int, int], ...] = ()
    samples: tuple[tuple[int, float, int], ...] = ()
    walls: tuple[Stamp, ...] = ()
    postfix: LogText = LogText("")
    event: str | None = None
    phase: str | None = None
    start_proofs: int = 0
    start_blank: int = 0
    start_said: int = 0
    start_n: int = 0
    last_proven: bool = False
    proven_n: int | None = None
    redrawn: bool = False


class Frame(msgspec.Struct, frozen=True):
    """One frame of a Python traceback, with the code line if the log shows it; `number` is the line in the file."""

    place: Place
    path: LogText
    function: str
    code: LogText
    number: int = 0


class Traceback(msgspec.Struct, frozen=True):
    """One Python traceback: its frames, outermost first, and the place of its exception line, if it came.

    `doubled`: each of its lines came twice, as AI Toolkit's own log writer once did.
    """

    place: Place
    frames: tuple[Frame, ...]
    exception: Event | None
    doubled: bool = False


class ConfigDump(msgspec.Struct, frozen=True):
    """The process config as AI Toolkit prints it; `value` is None when the JSON is damaged or cut off.

    `lines` maps dotted paths (``train.batch_size``, ``datasets[0].resolution``) to physical lines.
    """

    place: Place
    last_line: int
    value: Mapping[str, Any] | None
    lines: Mapping[str, int]


Item = Event | BarSpan | Traceback | ConfigDump


class Notice(msgspec.Struct, frozen=True):
    """Something that the reader of a report should know about the input; `values` fill its text."""

    id: str
    line: int | None = None
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


class ScanResult(msgspec.Struct, frozen=True):
    """All that one log says, in file order, with its size."""

    source: str
    items: tuple[Item, ...]
    bytes: int
    lines: int
    trainers: Mapping[str, tuple[int, Place]]
    warnings: tuple[Notice, ...] = ()
    last_text: LogText = LogText("")
    last_stamp: Stamp | None = None
