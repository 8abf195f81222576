"""Container logs that keep each write as a record: the same text in whatever pieces they come."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.intake import jsonlines
from postmortem.intake.jsonlines import texts

LINES = st.sampled_from(
    [
        json.dumps({"log": "a line\n", "stream": "stdout"}).encode(),
        json.dumps({"log": "half", "stream": "stdout"}).encode(),
        json.dumps({"log": "x" * 60, "stream": "stdout"}).encode(),
        b" " * 70 + json.dumps({"log": "far in", "stream": "stdout"}).encode(),
        b"y" * 50 + json.dumps({"log": "behind", "stream": "stdout"}).encode(),
        b" " * 90,
        b"no record",
        b"",
    ]
)


@settings(deadline=None)
@given(st.lists(LINES, max_size=8), st.booleans(), st.lists(st.integers(0, 900), max_size=20))
def test_long_lines_are_read_the_same_in_any_pieces(lines: list[bytes], ends: bool, cuts: list[int]) -> None:
    text = b"\n".join(lines) + (b"\n" if ends else b"")
    places = sorted(min(cut, len(text)) for cut in cuts)
    pieces = [text[start:stop] for start, stop in zip([0, *places], [*places, len(text)], strict=True)]
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(jsonlines, "MAX_RECORD", 64)
        assert b"".join(texts(pieces)) == b"".join(texts([text]))


def test_what_follows_in_a_line_that_is_too_long_is_no_record() -> None:
    record = json.dumps({"log": "a line\n", "stream": "stdout"}).encode()
    long = b"z" * (jsonlines.MAX_RECORD + 1)
    for pieces in ([long + record + b"\n" + record], [long, record + b"\n", record]):
        assert b"".join(texts(pieces)) == long + record + b"\n" + b"a line\n"
