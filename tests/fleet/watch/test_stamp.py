"""The mark on a report: what goes in comes out, and nothing of somebody else's is taken for ours."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from postmortem.fleet.watch.stamp import Stamp, compose, parse

STAMP = Stamp(attempt=2, line=1, bytes=4711, tail="ab", claims="cd", outcome="failed")
PAGE = '<!doctype html>\n<html lang="en"><head><title>x</title></head>\n<body class="a">\n<h1>x</h1>\n</body></html>\n'
MARKDOWN = "**GPU out of memory**\n\n```text\n<!-- /note -->\n<!-- aitk-postmortem watch {} -->\n```\n"


@pytest.mark.parametrize(("suffix", "report"), [(".md", MARKDOWN), (".html", PAGE), (".md", ""), (".html", "")])
def test_what_goes_in_comes_out(suffix: str, report: str) -> None:
    text = compose(suffix, STAMP, ["On attempt 2.", "A <newer> one."], report)
    found = parse(suffix, text)
    assert found is not None
    stamp, body = found
    assert (stamp.attempt, stamp.bytes, body) == (2, 4711, report)
    assert compose(suffix, stamp, ["On attempt 2.", "A <newer> one."], body) == text


@pytest.mark.parametrize(("suffix", "report"), [(".md", MARKDOWN), (".html", PAGE)])
def test_a_file_that_somebody_edited_is_theirs(suffix: str, report: str) -> None:
    text = compose(suffix, STAMP, ["On attempt 2."], report)
    assert parse(suffix, text + "my own words\n") is None
    assert parse(suffix, report) is None


def test_a_damaged_mark_is_none() -> None:
    text = compose(".md", STAMP, [], MARKDOWN)
    assert parse(".md", text.replace('"bytes":4711', '"bytes":"x"')) is None
    assert parse(".md", text.replace('"layout":1', '"layout":9')) is None


def test_the_note_shows_and_the_mark_does_not() -> None:
    text = compose(".md", STAMP, ["This report is on attempt 2 of this run."], "**died**\n")
    tokens = MarkdownIt("commonmark", {"html": True}).parse(text)
    shown = [token.content for token in tokens if token.type == "inline"]
    assert shown == ["This report is on attempt 2 of this run.", "**died**"]


def test_a_page_keeps_its_doctype_first_and_its_note_in_the_body() -> None:
    text = compose(".html", STAMP, ["On attempt <2>."], PAGE)
    assert text.startswith("<!doctype html>\n<!-- aitk-postmortem watch ")
    assert text.index("<body") < text.index("<p><strong>On attempt &lt;2&gt;.</strong></p>") < text.index("<h1>")
