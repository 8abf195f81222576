"""The encoders of tickets: nothing in a log or a config becomes markup, a link or a mention."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.report import encode_ticket as encode
from postmortem.text import LogText, Words
from tests.report.tickets import ACTING, HOSTILE, parsed, spoken

NASTY = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(
        st.one_of(
            st.characters(), st.sampled_from(list("`|<>[]()*_\\#@!&~$:-+={}/1aA. \x1b\x9b\x07\u202e\u200b\u2066\r\n\t"))
        ),
        max_size=80,
    ),
)


def kinds(text: str) -> list[str]:
    """The inline elements of a text that is one paragraph."""
    tokens = parsed(text)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    found: list[str] = []
    for child in tokens[1].children or ():
        if child.type != "text" or found[-1:] != ["text"]:
            found.append(child.type)
    return found


@settings(deadline=None)
@given(NASTY)
def test_a_code_span_cannot_be_left(raw: str) -> None:
    if LogText(raw).reveal().strip():
        assert kinds(encode.markdown(Words("before ", LogText(raw), " after"))) == ["text", "code_inline", "text"]
        assert kinds(f"a {encode.markdown_code(LogText(raw))} b") == ["text", "code_inline", "text"]


@settings(deadline=None)
@given(NASTY, NASTY)
def test_log_texts_beside_each_other_are_one_span(one: str, other: str) -> None:
    if LogText(one + other).reveal().strip():
        shown = encode.markdown(Words("a ", LogText(one), LogText(other), " z"))
        assert kinds(shown) == ["text", "code_inline", "text"]


@settings(deadline=None)
@given(NASTY)
def test_a_table_cell_stays_one_cell(raw: str) -> None:
    row = encode.markdown(Words(LogText(raw)), cell=True)
    tokens = parsed(f"| a | b |\n|---|---|\n| {row} | end |")
    assert len([token for token in tokens if token.type == "td_open"]) == 2


@settings(deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=6))
def test_a_fence_is_longer_than_any_inside(raw: list[str]) -> None:
    lines = tuple(map(LogText, raw))
    tokens = parsed(encode.markdown_fence(lines, "text"))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == "".join(line.reveal().rstrip() + "\n" for line in lines)
    short = encode.markdown_fence(lines, "text", ticks=False)
    assert short.count("```") == 2


@settings(deadline=None)
@given(NASTY)
def test_our_own_words_act_as_little(raw: str) -> None:
    """A text of ours is escaped: it shows as written, or in code where an escape does not help."""
    text = LogText(raw).reveal().strip()
    if not text:
        return
    tokens = parsed(encode.markdown(Words(text), start=True))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    inline = tokens[1].children or []
    assert {child.type for child in inline} <= {"text", "code_inline"}
    assert not [run for run in spoken(tokens) if ACTING.search(run)]


def test_our_own_words_read_as_written() -> None:
    shown = encode.markdown(Words("1. a_b *c* <user-1> it's 50% of h:mm:ss (see §5 C)"), start=True)
    assert parsed(shown)[1].children is not None
    assert "".join(child.content for child in parsed(shown)[1].children or ()) == (
        "1. a_b *c* <user-1> it's 50% of h:mm:ss (see §5 C)"
    )


@settings(deadline=None)
@given(NASTY)
def test_html_is_shown_not_read(raw: str) -> None:
    shown = encode.markup(Words("a ", LogText(raw)))
    bare = shown.replace("<code>", "").replace("</code>", "")
    assert "<" not in bare
    assert ">" not in bare


def unescaped(text: str) -> str:
    """What Jira is left with to act on: neither escaped by a backslash nor an entity."""
    return re.sub(r"\\[-#*_+?^~|%{}\[\]()!@]|&#\d+;", "", text)


@settings(deadline=None)
@given(NASTY)
def test_jira_finds_no_markup_in_log_text(raw: str) -> None:
    shown = encode.wiki(Words("a ", LogText(raw), " b"))
    inside = unescaped(shown.removeprefix("a ").removesuffix(" b").removeprefix("{{").removesuffix("}}"))
    assert not set(inside) & set("-#*_+?^~|%{}[]()!@\\:;&")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("[~admin] ABC-123", r"\[\~admin\] ABC\-123"),
        (r"C:\Users", "C&#58;&#92;Users"),
        ("http://x", "http&#58;//x"),
        (":) (!)", r"&#58;\) \(\!\)"),
    ],
)
def test_jira_escapes(raw: str, shown: str) -> None:
    assert encode.wiki(Words(LogText(raw))) == "{{" + shown + "}}"


def test_jira_words_of_ours_stay_readable() -> None:
    assert encode.wiki(Words("AI Toolkit between 2025-09-18 and 2025-09-22 (step 3): a-b, 1.5 GiB")) == (
        "AI Toolkit between 2025-09-18 and 2025-09-22 (step 3): a-b, 1.5 GiB"
    )
    assert encode.wiki(Words("h1. no heading")) == "h1&#46; no heading"
    assert encode.wiki(Words("{x} [y] a_b ABC-1 (x) :-) --c")) == r"\{x\} \[y\] a\_b ABC\-1 \(x) &#58;\-) \-\-c"


def test_jira_monospace_beside_a_letter_is_quoted_instead() -> None:
    """Jira reads braces beside a letter as braces, which Korean particles would make them everywhere."""
    assert encode.wiki(Words("설정 ", LogText("a"), "을 끄세요")) == "설정 ‘a’을 끄세요"


@settings(deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=6))
def test_a_jira_block_ends_where_it_should(raw: list[str]) -> None:
    shown = encode.wiki_block(tuple(map(LogText, raw)))
    assert shown.lower().count("{noformat") == 2
    assert shown.endswith("\n{noformat}")


@settings(deadline=None)
@given(NASTY)
def test_plain_text_mentions_nobody(raw: str) -> None:
    shown = encode.text(Words("a ", LogText(raw)))
    assert not re.search(r"@\w", shown)
    assert "\n" not in shown


@settings(deadline=None)
@given(NASTY, st.integers(1, 200))
def test_cut_keeps_kinds_and_limit(raw: str, limit: int) -> None:
    cut = encode.cut(Words("our words ", LogText(raw), " and the end"), limit)
    assert len(cut.reveal()) <= limit
    assert isinstance(cut.parts[0], str)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://github.com/a/b/pull/7", True),
        ("https://x.example/a_b-c?d=e#f", True),
        ("http://x.example/", False),
        ("javascript:alert(1)", False),
        ("https://x.example/)[", False),
        ("https://x.example/|y]", False),
        ("https://x.example/ y", False),
        ("https://user@x.example/", False),
    ],
)
def test_addresses(url: str, kept: bool) -> None:
    assert encode.address(url) == (url if kept else None)


def test_length_is_as_trackers_count() -> None:
    assert encode.length("a😀한") == 4


@pytest.mark.parametrize("shown", ["www.evil.example", "WWW.evil.example", "me@evil.example", "https://evil.example"])
def test_no_address_of_a_log_is_one_in_jira_even_beside_a_letter(shown: str) -> None:
    made = encode.wiki(Words("(", LogText(shown), "은 없습니다"))
    assert not re.search(r"www\.|@|://", made, re.IGNORECASE)
