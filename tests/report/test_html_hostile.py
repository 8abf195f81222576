"""Hostile text in every place of a report that comes from a log: the page has the same elements as with harmless text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from postmortem.report import Report, encode_html, html
from postmortem.report.excerpt import Excerpt
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from postmortem.text import LogText, Words
from tests.pages import Elements, excerpt
from tests.report.test_encode import NASTY
from tests.test_fixtures import report_on

HOSTILE = (
    "<script>alert(1)</script>",
    "</code></bdi></main><h1>gone</h1>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></script><svg onload=alert(1)>",
    "<!-- never closed",
    "]]><![CDATA[",
    "&lt;b&gt; &#60;i&#62; &amp",
    "javascript:alert(1)",
    "\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x1b[2J",
    "\u202etxt.exe\u2066\u200b\u200d\ufeff",
    "{{ 7 * 7 }}{% include 'x' %}${7*7}",
    "`|*_[x](http://evil.example)@here #1 =cmd|' /C calc'!A0",
    "x" * 5000,
    "\x00\x01\x7f\x9b31m\ud800",
)


def replaced(value: Any, raw: str) -> Any:
    """A copy of a document in which every text out of a log is `raw`."""
    if isinstance(value, LogText):
        return LogText(raw)
    if isinstance(value, Words):
        return Words(*(replaced(part, raw) for part in value.parts), LogText(raw))
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(item, raw) for item in value)
    if isinstance(value, dict):
        return {key: replaced(item, raw) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: replaced(getattr(value, name), raw) for name in value.__struct_fields__})
    return value


NAMES = ("folder-second-attempt-skips", "no-memory-disk-full", "sampling-mid-run-checkpointing-off")


@pytest.fixture(scope="module")
def documents(lexicon: Lexicon) -> dict[str, tuple[Report, Excerpt]]:
    reports = {name: report_on(name, lexicon) for name in NAMES}
    return {name: (report, excerpt(name, report)) for name, report in reports.items()}


def elements(document: tuple[Report, Excerpt], raw: str, texts: Texts) -> tuple[Elements, str]:
    text = html.render(replaced(document[0], raw), texts, replaced(document[1], raw))
    return Elements(text), text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("raw", HOSTILE)
def test_hostile_text_makes_no_element(
    name: str, raw: str, documents: dict[str, tuple[Report, Excerpt]], lexicon: Lexicon
) -> None:
    texts = Texts(lexicon.knowledge, "en")
    harmless, _ = elements(documents[name], "harmless", texts)
    hostile, page = elements(documents[name], raw, texts)
    assert hostile.unbalanced == []
    assert hostile.found == harmless.found
    for char in "\x00\x07\x1b\x7f\x9b\u200b\u202e\u2066\ufeff":
        assert char not in page
    for place in ("style", "script", "title"):
        assert hostile.inside(place).count(raw) == harmless.inside(place).count(raw)
    if LogText(raw).reveal().strip():
        # it is there to be read, as text
        assert any(LogText(raw).reveal()[:40] in text for tag, text in hostile.texts if tag == "bdi")


@settings(max_examples=30, deadline=None)
@given(NASTY.filter(lambda raw: LogText(raw).reveal().strip() not in ("", "default")))
def test_any_text_makes_no_element(documents: dict[str, tuple[Report, Excerpt]], lexicon: Lexicon, raw: str) -> None:
    texts = Texts(lexicon.knowledge, "ko")
    document = documents["no-memory-disk-full"]
    assert elements(document, raw, texts)[0].found == elements(document, "harmless", texts)[0].found


@given(NASTY)
def test_log_text_is_isolated_and_escaped(raw: str) -> None:
    shown = encode_html.log(LogText(raw))
    assert isinstance(shown, Markup)
    found = Elements(str(shown))
    assert found.found == [("bdi", {})]
    assert found.inside("bdi") == LogText(raw).reveal() or not LogText(raw).reveal()


@given(st.text())
def test_what_a_template_prints_of_ours_has_nothing_invisible(raw: str) -> None:
    assert not set(encode_html.shown(raw)) & set("\x00\x1b\r\n\t\u202e\u200b")


@pytest.mark.parametrize("value", [None, True, object(), ["a"]])
def test_a_template_prints_no_value_that_is_no_text(value: object) -> None:
    with pytest.raises(TypeError):
        encode_html.shown(value)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (LogText("adamw8bit"), "key: adamw8bit"),
        (LogText("true"), 'key: "true"'),
        (LogText("a: b # c"), 'key: "a: b # c"'),
        (LogText("한국"), 'key: "한국"'),
        ([512, 768], "key: [512, 768]"),
        (None, "key: null"),
        (False, "key: false"),
        (0.5, "key: 0.5"),
        ({"a": LogText("b")}, "key: {a: b}"),
    ],
)
def test_a_copied_line_is_yaml_of_the_same_value(value: Any, line: str) -> None:
    import yaml

    shown = Elements(str(encode_html.config_line("key", value))).inside("bdi")
    assert shown == line
    plain = value.reveal() if isinstance(value, LogText) else {"a": "b"} if isinstance(value, dict) else value
    assert yaml.safe_load(shown) == {"key": plain}
