"""What shows nothing hides nothing: words are found in lines as their reader sees them, by each engine."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.model import ConfigDump, Event
from postmortem.scan import Lexicon, hidden, scan
from postmortem.scan.literals import plain
from postmortem.scan.segments import MAX_TEXT
from postmortem.text import seen

DUMP = (
    '{\n    "train": {\n        "batch_size": 1\n    },\n    "model": {\n        "name_or_path": "a\u200db"\n    }\n}\n'
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
MARKS = st.sampled_from(
    ("\x1b[1m", "\x1b]0;x\x07", "\0", "\x7f", "\x9d", "\u200b", "\ufeff", "\u202e", "\u2066", "\u3164", "\U000e0041")
)


def ooms(lexicon: Lexicon, text: str) -> list[tuple[int, str]]:
    found = scan([text.encode()], lexicon).items
    return [(item.place.line, item.pattern) for item in found if isinstance(item, Event) and item.role == "oom"]


def dumped(lexicon: Lexicon, text: str) -> dict[str, Any]:
    (dump,) = [item for item in scan([text.encode()], lexicon).items if isinstance(item, ConfigDump)]
    return dict(dump.value or {})


def test_every_character_that_shows_nothing_is_looked_for() -> None:
    for code in (*range(9), 11, 12, *range(14, 0xD800), *range(0xE000, sys.maxunicode + 1)):
        character = chr(code)
        hides = seen(f"a{character}\x18") != f"a{character}"
        assert bool(hidden.starts(f"x\n  {character}".encode())) == hides, hex(code)


def test_blanks_and_the_ends_of_lines_are_seen() -> None:
    assert hidden.starts("a\tb\nc d\u00a0e\n한글 █ \u2019".encode()) == []
    assert seen("a\tb") == "a\tb"


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(OOM)), MARKS), max_size=12))
def test_a_message_is_read_wherever_something_hidden_stands_in_it(
    lexicon: Lexicon, marks: list[tuple[int, str]]
) -> None:
    text = OOM
    for at, mark in sorted(marks, reverse=True):
        text = text[:at] + mark + text[at:]
    assert ooms(lexicon, f"first\n{text}\nlast\n") == [(2, "torch.cuda_oom")]


def test_what_a_title_holds_is_not_seen(lexicon: Lexicon) -> None:
    assert ooms(lexicon, f"a\n\x1b]0;{OOM}\x07\n") == []


def test_each_line_has_its_own_words() -> None:
    lines = [b"on\x1b[me", b"one", b"tw\xe2\x80\x8bo o\x0fne", b"", b"\x07", b"o\x00ne two"]
    text = b"\n".join(lines)
    at = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    found = sorted(hidden.found(text, plain([b"one", b"two"]), 100))
    assert found == [(at[0], 0), (at[2], 0), (at[2], 1), (at[5], 0), (at[5], 1)]


def test_no_more_of_a_line_is_looked_at_than_is_read() -> None:
    line = b"\x07" + b" " * (MAX_TEXT - 4) + b"one two"
    assert hidden.found(line, plain([b"one", b"two"]), MAX_TEXT) == [(0, 0)]


def test_a_config_keeps_what_shows_nothing_in_its_values(lexicon: Lexicon) -> None:
    assert dumped(lexicon, DUMP) == {"train": {"batch_size": 1}, "model": {"name_or_path": "a\u200db"}}


@pytest.mark.parametrize("mark", ["\ufeff", "\u202a", "\x1b[1m"])
def test_a_config_with_something_hidden_in_front_of_its_lines_is_read(lexicon: Lexicon, mark: str) -> None:
    text = "".join(f"{mark}{line}\n" for line in DUMP.splitlines())
    assert dumped(lexicon, text)["train"] == {"batch_size": 1}


def test_a_number_of_a_config_that_is_longer_than_any_setting_stays_text(lexicon: Lexicon) -> None:
    text = DUMP.replace('"batch_size": 1', f'"batch_size": {"9" * 5000}')
    assert dumped(lexicon, text)["train"] == {"batch_size": "9" * 5000}
