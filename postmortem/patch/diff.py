"""A unified diff of two texts that are alike but for a few places, in time that grows with their length.

The standard library's finds the smallest diff of any two texts and can take minutes for a long list of like lines. Here
the lines are walked side by side: where they part, the nearest place at which they agree again is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

CONTEXT = 3
_WINDOW = 60
"""Lines to look ahead, on both sides together, for the place of agreement; an edit changes a handful."""

_Change = tuple[int, int, int, int]


def unified(before: str, after: str, name: str) -> str:
    """The diff as patch and git take it, empty for equal texts. Line breaks are those of the texts; lines end at LF."""
    old, new = _lines(before), _lines(after)
    hunks = [_hunk(group, old, new) for group in _groups(_changes(old, new))]
    return "".join([f"--- {name}\n+++ {name}\n", *hunks]) if hunks else ""


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """The half-open ranges of lines that differ."""
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            i, j = i + 1, j + 1
            continue
        to_i, to_j = _agreement(old, new, i, j)
        yield i, to_i, j, to_j
        i, j = to_i, to_j


def _agreement(old: Sequence[str], new: Sequence[str], i: int, j: int) -> tuple[int, int]:
    for ahead in range(1, _WINDOW):
        for k in range(ahead + 1):
            at, to = i + k, j + ahead - k
            if at <= len(old) and to <= len(new) and old[at : at + 1] == new[to : to + 1]:
                return at, to
    return len(old), len(new)


def _groups(changes: Iterator[_Change]) -> Iterator[list[_Change]]:
    """Changes that share context lines go into one hunk."""
    group: list[_Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: list[_Change], old: Sequence[str], new: Sequence[str]) -> str:
    start = max(0, group[0][0] - CONTEXT)
    end = min(len(old), group[-1][1] + CONTEXT)
    rows: list[tuple[str, str]] = []
    at = start
    for i, to_i, j, to_j in group:
        rows += [(" ", line) for line in old[at:i]]
        rows += [("-", line) for line in old[i:to_i]]
        rows += [("+", line) for line in new[j:to_j]]
        at = to_i
    rows += [(" ", line) for line in old[at:end]]
    new_start = group[0][2] - (group[0][0] - start)
    new_end = group[-1][3] + (end - group[-1][1])
    body = "".join(
        mark + line + ("" if line.endswith("\n") else "\n\\ No newline at end of file\n") for mark, line in rows
    )
    return f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@\n{body}"


def _range(start: int, end: int) -> str:
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + 1 if count else start},{count}"
