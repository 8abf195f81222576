"""Reports of any content: each is read, or refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.verify import BadReport, read
from tests.verify.conftest import Sent, Verify

NAME = "sizes-old-torch-message"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[]", "no object"),
        (b'"x"', "no object"),
        (b"{", "not JSON"),
        (b"{} {}", "not JSON"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "number"),
        (b'{"a": ' + b"9" * 400 + b"}", "number"),
        (b'{"a":' * 60 + b"1" + b"}" * 60, "nested"),
        (b"[" * 100_000, "nested"),
        (b'{"tool": {"name": "other"}}', "no report of postmortem"),
        (b'{"tool": {"name": "aitk-postmortem"}}', "no text"),
        (b'{"tool": {"name": "aitk-postmortem", "version": "9", "patterns": "x"}, "schema_version": "9"}', "no input"),
    ],
)
def test_what_is_no_report_is_refused_in_one_line(data: bytes, why: str) -> None:
    with pytest.raises(BadReport) as caught:
        read(data)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_report_that_is_too_large_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postmortem.verify.sent.MAX_BYTES", 100)
    with pytest.raises(BadReport, match="larger than"):
        read(b" " * 101)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("failure", "evidence"), {}),
        (("failure", "evidence", 0, "line"), "ten"),
        (("failure", "step"), 1.5),
        (("remedies",), None),
        (("config", "values"), []),
        (("input", "options"), "\x1b[31m"),
        (("memory",), [1]),
    ],
)
def test_wrong_types_are_refused_with_their_place(
    path: tuple[Any, ...], value: Any, honest: Callable[[str], Sent]
) -> None:
    sent = honest(NAME)
    at: Any = sent
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(BadReport) as caught:
        read(json.dumps(sent).encode())
    assert f"$.{path[0]}" in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**62) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=6), below, max_size=4),
    max_leaves=12,
)
KEYS = (
    "failure",
    "config",
    "remedies",
    "ledger",
    "memory",
    "forecast",
    "oom_events",
    "timeline",
    "buckets",
    "settings",
)


@given(data=st.data())
def test_a_report_of_another_schema_may_hold_anything(
    data: st.DataObject, honest: Callable[[str], Sent], verify: Verify
) -> None:
    """Wrong shapes in a report of a version that is not known are no reason to break."""
    sent = honest(NAME)
    sent["schema_version"] = "0.1"
    key = data.draw(st.sampled_from(KEYS))
    part = data.draw(st.sampled_from(sorted(sent[key]) if isinstance(sent[key], dict) else [""]))
    anything = data.draw(JSON)
    if part:
        sent[key][part] = anything
    elif isinstance(sent[key], list) and sent[key]:
        sent[key][0] = anything
    else:
        sent[key] = anything
    try:
        found = verify(NAME, sent)
    except BadReport:
        return
    assert found.verdict in ("unproven", "differs", "same")
