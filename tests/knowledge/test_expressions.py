"""Kept codes match what the engine would compile."""

from __future__ import annotations

import re

import msgspec
import pytest

from postmortem.knowledge import expressions
from postmortem.knowledge.expressions import Code, adopt, any_prefix, codes_of, expression
from postmortem.knowledge.schema import Knowledge


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_CODES", {})
    expression.cache_clear()


def test_most_expressions_have_a_code(knowledge: Knowledge) -> None:
    codes = codes_of(knowledge.patterns)
    sources = {item.regex for item in knowledge.patterns}
    assert len(sources & codes.keys()) > 0.95 * len(sources)


def test_a_code_gives_the_same_expression(knowledge: Knowledge) -> None:
    for source, code in codes_of(knowledge.patterns).items():
        made = expressions._made(source, code)
        plain = re.compile(source)
        assert made == plain and made.groupindex == plain.groupindex and made.flags == plain.flags


def test_what_an_expression_matches_does_not_change_by_it(knowledge: Knowledge) -> None:
    plain = {item.id: expression(item.regex) for item in knowledge.patterns}
    adopt(codes_of(knowledge.patterns))
    for item in knowledge.patterns:
        for text in (*item.examples.match, *item.examples.no_match):
            found, expected = expression(item.regex).search(text), plain[item.id].search(text)
            assert (found and found.groupdict()) == (expected and expected.groupdict())


@pytest.mark.parametrize("words", [b"", b"\xff" * 40, b"odd"])
def test_what_is_no_code_is_not_run(words: bytes) -> None:
    adopt({"a(?P<n>b)": Code(32, words, 2, {"n": 1})})
    assert expression("a(?P<n>b)").match("ab")["n"] == "b"


def test_what_the_standard_engine_does_not_take_is_left_to_the_other(knowledge: Knowledge) -> None:
    codes = codes_of([msgspec.structs.replace(knowledge.patterns[0], regex=r"\p{Lu}++", fields={})])
    assert r"\p{Lu}++" not in codes
    assert expression(r"\p{Lu}++").match("ÄÖ")


def test_all_prefixes_as_one_have_no_groups(knowledge: Knowledge) -> None:
    made = re.compile(any_prefix(item for item in knowledge.patterns if item.role == "prefix"))
    assert not made.groupindex
