"""The diff turns the old text into the new one, is small, and stays quick on what slows others down."""

from __future__ import annotations

import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.patch.diff import unified

LINES = st.lists(st.sampled_from(["a", "b", "  - c", "", "a\r", "d\x85e"]), max_size=30)
ENDS = st.sampled_from(["", "\n"])


def applied(text: str, diff: str) -> str:
    """What `patch` makes of it, strictly: every context line must be where the diff says."""
    old = re.findall("[^\n]*\n|[^\n]+", text)
    out: list[str] = []
    at = 0
    rows = re.findall("[^\n]*\n", diff)[2:]
    for index, row in enumerate(rows):
        head = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n", row)
        if head:
            start = int(head[1]) - (head[2] != "0")
            out += old[at:start]
            at = start
            assert len(out) == int(head[3]) - (head[4] != "0")
            continue
        if row.startswith("\\"):
            continue
        line = row[1:]
        if index + 1 < len(rows) and rows[index + 1].startswith("\\"):
            line = line.removesuffix("\n")
        if row[0] in " -":
            assert old[at] == line
            at += 1
        if row[0] in " +":
            out.append(line)
    return "".join([*out, *old[at:]])


@settings(max_examples=300, deadline=None)
@given(LINES, LINES, ENDS, ENDS)
def test_the_diff_makes_the_new_text(one: list[str], other: list[str], end: str, other_end: str) -> None:
    before, after = "\n".join(one) + end, "\n".join(other) + other_end
    diff = unified(before, after, "x")
    assert applied(before, diff) == after
    assert (diff == "") == (before == after)


def test_far_places_are_hunks_of_their_own() -> None:
    lines = [f"line {n}\n" for n in range(100)]
    after = [*lines[:10], "new\n", *lines[10:50], "changed\n", *lines[51:99]]
    assert unified("".join(lines), "".join(after), "x") == (
        "--- x\n+++ x\n"
        "@@ -8,6 +8,7 @@\n line 7\n line 8\n line 9\n+new\n line 10\n line 11\n line 12\n"
        "@@ -48,7 +49,7 @@\n line 47\n line 48\n line 49\n-line 50\n+changed\n line 51\n line 52\n line 53\n"
        "@@ -97,4 +98,3 @@\n line 96\n line 97\n line 98\n-line 99\n"
    )


def test_many_like_lines_take_no_time() -> None:
    lines = [f"- prompt {n % 200}\n" for n in range(100_000)]
    after = [f"{line}width: 1\n" if n % 500 == 0 else line for n, line in enumerate(lines)]
    begun = time.perf_counter()
    diff = unified("".join(lines), "".join(after), "x")
    assert time.perf_counter() - begun < 2
    assert diff.count("\n+") == 201
