"""Hostile log text through every sink: nothing acts, nothing breaks out."""

from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, encode, json_, markdown, terminal
from postmortem.report.texts import Texts
from postmortem.schema import schema
from postmortem.text import LogText, Words
from tests.conftest import Analyse
from tests.report.tickets import parsed
from tests.simulate import config, head, training

NASTY = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(list("`|<>[]()*_\\#@!&~$\x1b\x9b\x07\u202e\u200b\u2066\r\n\t")),
    ),
    max_size=80,
)


def test_log_text_cannot_be_printed_by_accident() -> None:
    text = LogText("x\x1b[31m")
    with pytest.raises(TypeError):
        str(text)
    with pytest.raises(TypeError):
        f"{text}"
    assert repr(text) == "LogText('x')"


@given(NASTY)
def test_no_control_or_invisible_character_survives(raw: str) -> None:
    for shown in (encode.terminal(LogText(raw)), encode.json_hook(LogText(raw))):
        assert not [
            char
            for char in shown
            if ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u200b\u200e\u202e\u2066\u2028\ufeff"
        ]


@settings(max_examples=60, deadline=None)
@given(NASTY)
def test_a_hostile_job_name_through_every_format(run: Analyse, knowledge: Knowledge, raw: str) -> None:
    name = LogText(raw).reveal().strip() or "x"
    settings_ = config(datasets__folder_path=raw)
    analysis = run(head(settings_, name=name) + training(400, {0, 1, 2, 3}, name=name))
    report = build(analysis, knowledge)
    texts = Texts(knowledge, "en")
    json.loads(json_.render(report))
    shown = terminal.render(report, texts)
    assert "\x1b" not in shown
    tokens = parsed(markdown.render(report, texts))
    inline = [child for token in tokens for child in token.children or []]
    assert "image" not in [child.type for child in inline]
    guides = {item.guide.url for item in report.remedies}
    assert {child.attrs["href"] for child in inline if child.type == "link_open"} <= guides


def test_every_report_follows_the_published_schema(run: Analyse, knowledge: Knowledge) -> None:
    published = schema()
    for log in (
        head(config()) + training(400, {0, 1, 2, 3}),
        head(config()),
        "Killed\n",
        head(config()) + training(40, {3}),
    ):
        jsonschema.validate(json.loads(json_.render(build(run(log), knowledge))), published)


def test_the_contracts_keys_come_first_and_in_order(run: Analyse, knowledge: Knowledge) -> None:
    report = json.loads(json_.render(build(run(head(config())), knowledge)))
    assert list(report)[:13] == [
        "schema_version", "tool", "input", "run", "failure", "memory", "oom_events", "buckets", "config", "remedies", "timeline",
        "ledger", "forecast",
    ]  # fmt: skip
    assert list(report["failure"]) == [
        "kind", "resource", "class", "phase", "step", "signature", "confidence", "headline", "evidence", "factors", "error",
    ]  # fmt: skip


@given(NASTY)
def test_values_inside_a_sentence_are_encoded_like_log_text(raw: str) -> None:
    assert encode.plain(Words("a", LogText(raw))).count("\n") == 0
