"""Whole reports whose every log text is hostile, through every sink."""

from __future__ import annotations

import json
import re
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from postmortem.check import Check
from postmortem.check import terminal as check_terminal
from postmortem.compare import Comparison
from postmortem.compare import build as compare_build
from postmortem.compare import markdown as compare_markdown
from postmortem.compare import terminal as compare_terminal
from postmortem.pipeline import Source, analyse_each
from postmortem.report import Report, json_, markdown, terminal
from postmortem.report.texts import Texts
from postmortem.text import printable
from tests.check.conftest import checked, stable
from tests.hostile import FIXTURES, HOSTILE, HUGE, acting, hostile_reports, hostile_texts, lexicon, poisoned, whole
from tests.simulate import config, finished, head, training

SGR = re.compile(r"\x1b\[[0-9;]*m")
many = settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def at_terminal(report: Report, width: int = 80, *, colour: bool = False) -> str:
    return terminal.render(report, Texts(lexicon().knowledge, report.lang), width=width, colour=colour)


@many
@given(hostile_reports(), st.sampled_from([40, 80, 100]))
def test_nothing_acts_on_a_terminal(report: Report, width: int) -> None:
    shown = at_terminal(report, width)
    assert acting(shown) == []
    assert max(cell_len(line) for line in shown.split("\n")) <= width


@many
@given(hostile_reports())
def test_with_colour_only_our_own_sequences_leave(report: Report) -> None:
    coloured = at_terminal(report, colour=True)
    assert acting(SGR.sub("", coloured)) == []
    plain = [line.rstrip() for line in SGR.sub("", coloured).split("\n")]
    assert plain == at_terminal(report).split("\n")  # a text that were markup would have vanished from one
    # Rich, asked for 16 colours, writes attributes and these colours, and resets
    assert {part for found in SGR.findall(coloured) for part in found[2:-1].split(";")} <= {
        *("0", "1", "2", "4", "22"),
        *(str(30 + colour) for colour in range(8)),
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_each_hostile_text_is_shown_as_it_reads(text: str) -> None:
    """Made harmless, not swallowed: every visible word of it is still there, where the report has the room."""
    shown = at_terminal(poisoned(whole("host-docker-137-caching"), [text]), 100)
    assert acting(shown) == []
    seen = re.sub(r"\s+", "", shown)
    for word in printable(text).split():
        assert word[:20] in seen


def test_markup_is_text() -> None:
    report = poisoned(whole("host-docker-137-caching"), ["[red]x[/red] [/usr/bin/x] :smile:"])
    assert "[red]x[/red] [/usr/bin/x] :smile:" in at_terminal(report, colour=True)


@many
@given(hostile_reports())
def test_nothing_acts_in_json(report: Report) -> None:
    text = json_.render(report)
    assert acting(text) == []
    json.loads(text)


@many
@given(hostile_reports())
def test_nothing_acts_in_markdown(report: Report) -> None:
    text = markdown.render(report, Texts(lexicon().knowledge, report.lang))
    assert acting(text) == []


@many
@given(st.text(max_size=200) | hostile_texts())
def test_what_is_printable_does_not_act_and_stays_so(text: str) -> None:
    once = printable(text)
    assert acting(once) == []
    assert "\n" not in once
    assert printable(once) == once


@pytest.mark.parametrize("name", FIXTURES[:3])
def test_a_megabyte_on_a_line_takes_no_more_than_a_line(name: str) -> None:
    report = poisoned(whole(name), ["short"], huge=True)
    small = at_terminal(poisoned(whole(name), ["short"]))
    assert len(at_terminal(report)) < len(small) + 1000
    assert len(HUGE) > 1_000_000


@settings(many, max_examples=10)
@given(st.lists(hostile_texts(), min_size=1, max_size=8), st.booleans(), st.sampled_from(["en", "ko"]))
def test_nothing_acts_in_comparisons_and_checks(texts: list[str], huge: bool, lang: str) -> None:
    words = Texts(lexicon().knowledge, lang)
    for width in (40, 80):
        for shown in (
            compare_terminal.render(poisoned(comparison(lang), texts, huge=huge), words, width=width),
            check_terminal.render(poisoned(check(lang), texts, huge=huge), words, width=width),
        ):
            assert acting(shown) == []
            assert max(cell_len(line) for line in shown.split("\n")) <= width
    markdown_text = compare_markdown.render(poisoned(comparison(lang), texts, huge=huge), words)
    assert acting(markdown_text) == []


@lru_cache
def comparison(lang: str) -> Comparison:
    """Of three attempts whose settings differ in several ways."""
    name = "hostile [name]"
    logs = [
        head(config(train__gradient_checkpointing=False, train__optimizer="adafactor"), name)
        + training(40, {0, 1, 2, 3}),
        head(config(train__batch_size=4), name) + training(40, {0, 1, 2, 3}),
        head(config(), name) + training(40, []) + finished(name),
    ]
    sources = [Source(f"logs/{index}_log.txt", "utf-8", [text.encode()]) for index, text in enumerate(logs)]
    return compare_build(analyse_each("run", sources, [], lexicon()), lexicon().knowledge, lang)


@lru_cache
def check(lang: str) -> Check:
    """Of a job that does not fit, held against the log of another."""
    return checked(config(train__gradient_checkpointing=False), gpu_gib=16, log=stable(), lang=lang)
