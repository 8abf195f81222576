"""Which versions of AI Toolkit and of torch a log can be of: each clue is a set of versions, all must agree.

A clue comes from the program alone: a code line in a traceback, a fixed text that an entry of the knowledge
base claims, a habit of the bar. What a path, a caption or a job's name quotes is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import lru_cache

import msgspec

from postmortem.knowledge.history import History, Range
from postmortem.knowledge.schema import Dating, Knowledge
from postmortem.model import Attempt, BarSpan, Clue, Dated, Event, Item, Notice, Traceback

TOOLKIT = "ai-toolkit"
MAX_FRAMES = 400
MAX_CLUES = 12
NEWEST = 1 << 30
"""The end of an open range of torch releases."""
_SPOKEN = ("marker", "note")


class _Told(msgspec.Struct, frozen=True):
    clue: Clue
    ranges: list[Range]

    @property
    def width(self) -> int:
        return sum(end - start for start, end in self.ranges)


def date(
    items: Sequence[Item], attempt: Attempt, knowledge: Knowledge, history: History
) -> tuple[Dated | None, Dated | None, tuple[Notice, ...]]:
    """The versions of AI Toolkit and of torch that `attempt` can be of, None where its lines (`items` are those of
    its log) say nothing or contradict each other; and what the reader should know of that."""
    own = [item for item in items if attempt.first_line <= item.place.line <= attempt.last_line]
    notices: list[Notice] = []
    told = [*_known(own, attempt, knowledge, history, TOOLKIT), *_wordings(own, attempt, history)]
    told += _code_lines(own, history)
    toolkit = _toolkit(told, history, notices)
    torch = _torch(list(_known(own, attempt, knowledge, history, "torch")), notices)
    return toolkit, torch, tuple(notices)


def span_of(entry: Dating, history: History) -> Range:
    """The versions of AI Toolkit that `entry` names, by commit where it names one, else generously by date."""
    return bounds(entry.from_, entry.from_commit, entry.until, entry.until_commit, history)


@lru_cache(maxsize=1024)
def bounds(
    from_: str | None, from_commit: str | None, until: str | None, until_commit: str | None, history: History
) -> Range:
    """The same for any two dates or commits. A date is a day: the whole of it may belong to either side."""
    versions = history.versions
    start, end = 0, len(versions)
    at = history.index_of(from_commit) if from_commit else None
    if at is not None:
        start = versions[at].since
    elif from_:
        first = _second(from_)
        start = max((n for n, version in enumerate(versions) if version.at < first), default=0)
    at = history.index_of(until_commit) if until_commit else None
    if at is not None:
        end = at
    elif until:
        last = _second(until) + 86400
        end = next((n for n, version in enumerate(versions) if version.at >= last), len(versions))
    return start, end


@lru_cache(maxsize=256)
def release(text: str) -> int:
    """A torch release as a number that orders as releases do: ``2.10`` is 2010."""
    major, minor = (int(part) for part in text.split(".")[:2])
    return major * 1000 + minor


def _known(
    items: Iterable[Item], attempt: Attempt, knowledge: Knowledge, history: History, program: str
) -> Iterator[_Told]:
    """The clues of the knowledge base, each where it first holds."""
    entries, by_pattern = _entries(knowledge, program)
    of_any = by_pattern.get("", [])
    found: dict[str, int] = {}
    for item in items:
        if isinstance(item, Event):
            for entry in by_pattern.get(item.pattern, of_any):
                if entry.id not in found and _holds(entry, item):
                    found[entry.id] = item.place.line
    for entry in entries:
        line = found.get(entry.id) or _observed(entry, items, attempt)
        if line:
            if program == TOOLKIT:
                ranges = [span_of(entry, history)]
            else:
                ranges = [(release(entry.from_) if entry.from_ else 0, release(entry.until) if entry.until else NEWEST)]
            yield _Told(Clue(line, entry.id), ranges)


@lru_cache(maxsize=4)
def _entries(knowledge: Knowledge, program: str) -> tuple[list[Dating], dict[str, list[Dating]]]:
    """A program's entries, and those of them that an event of a pattern can show (of any other one: ``""``)."""
    entries = [entry for entry in knowledge.datings if entry.program == program]
    by_pattern: dict[str, list[Dating]] = {}
    for entry in entries:
        for pattern in entry.patterns or (("",) if entry.exception else ()):
            by_pattern.setdefault(pattern, []).append(entry)
    of_any = by_pattern.get("", [])
    return entries, {name: [*own, *of_any] if name else own for name, own in by_pattern.items()}


def _holds(entry: Dating, event: Event) -> bool:
    if entry.exception is not None and event.exception != entry.exception:
        return False
    return not event.quoted and (entry.contains is None or entry.contains in event.text.reveal())


def _observed(entry: Dating, items: Iterable[Item], attempt: Attempt) -> int | None:
    if entry.observed is None:
        return None
    if entry.observed == "stderr_doubled":
        return next((item.place.line for item in items if isinstance(item, Traceback) and item.doubled), None)
    if not attempt.bar_proves_count or attempt.main_bar_place is None:
        return None
    if any(note.event == "nan" for note in attempt.notes):
        return None
    completed = attempt.bar_counts_completed
    return attempt.main_bar_place.line if completed == (entry.observed == "bar_completed") else None


def _wordings(items: Iterable[Item], attempt: Attempt, history: History) -> Iterator[_Told]:
    """Fixed texts that an entry of the knowledge base claims as a whole line, or as the name of a bar of its own."""
    seen: set[str] = set()
    name = attempt.job_name.reveal() if attempt.job_name else None
    for item in items:
        if isinstance(item, Event) and item.role in _SPOKEN and not item.quoted:
            text = item.text.reveal().strip()
        elif isinstance(item, BarSpan) and item.event not in (None, "bar_main") and not item.postfix:
            text = item.description.reveal().strip()
        else:
            continue
        if text in seen or text == name:
            continue
        seen.add(text)
        ranges = history.wording(text)
        if ranges:
            yield _Told(Clue(item.place.line, "wording"), ranges)


def _code_lines(items: Iterable[Item], history: History) -> Iterator[_Told]:
    """Frames of AI Toolkit's own files, whose code line the log shows.

    A line that no version had so (a patched or newer file, a paste that damaged it) says nothing.
    """
    asked: dict[str, dict[tuple[int, str], int]] = {}
    frames = [frame for item in items if isinstance(item, Traceback) for frame in item.frames]
    for frame in frames[:MAX_FRAMES]:
        code = frame.code.reveal().strip()
        path = history.path_of(frame.path.reveal()) if code and frame.number else None
        if path is not None:
            asked.setdefault(path, {}).setdefault((frame.number, code), frame.place.line)
    for path, questions in asked.items():
        for line, ranges in zip(questions.values(), history.code(path, list(questions))):
            if ranges:
                yield _Told(Clue(line, "code_line"), ranges)


def _toolkit(told: list[_Told], history: History, notices: list[Notice]) -> Dated | None:
    if not told:
        return None
    versions = history.versions
    found = _agree(told, len(versions), TOOLKIT, notices)
    if found is None:
        return None
    (start, end), clues = found
    return Dated(
        from_=_day(versions[start].since_at) if start else None,
        until=_day(versions[end].at) if end < len(versions) else None,
        from_commit=versions[start].commit if start else None,
        until_commit=versions[end].commit if end < len(versions) else None,
        clues=clues,
        span=(start, end),
    )


def _torch(told: list[_Told], notices: list[Notice]) -> Dated | None:
    found = _agree(told, NEWEST, "torch", notices)
    if found is None:
        return None
    (start, end), clues = found
    return Dated(
        from_=f"{start // 1000}.{start % 1000}" if start else None,
        until=f"{end // 1000}.{end % 1000}" if end < NEWEST else None,
        clues=clues,
        span=(start, end),
    )


def _agree(told: list[_Told], size: int, program: str, notices: list[Notice]) -> tuple[Range, tuple[Clue, ...]] | None:
    """What all clues allow, and those that say so; the sharpest first, so that few are named."""
    left: list[Range] = [(0, size)]
    used: list[Clue] = []
    for one in sorted(told, key=lambda item: (item.width, item.clue.line, item.clue.id)):
        both = [(max(a, c), min(b, d)) for a, b in left for c, d in one.ranges if max(a, c) < min(b, d)]
        if not both:
            notices.append(Notice("dating_contradiction", one.clue.line, {"program": program}))
            return None
        if sum(b - a for a, b in both) < sum(b - a for a, b in left):
            used.append(one.clue)
        left = sorted(both)
    if not used:
        return None
    clues = tuple(sorted(used[:MAX_CLUES], key=lambda clue: clue.line))
    return (left[0][0], left[-1][1]), clues


def _second(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=timezone.utc).timestamp())


@lru_cache(maxsize=1024)
def _day(second: int) -> str:
    return datetime.fromtimestamp(second, timezone.utc).strftime("%Y-%m-%d")
