"""Kept codes match what the engine would compile."""

from __future__ import annotations

import re

import msgspec
import pytest

from postmortem.knowledge import expressions
from postmortem.knowledge.expressions import (
    Code,
    adopt,
    any_of,
    codes_of,
    expression,
    ignores_digits,
    prefixes,
    with_any_digits,
)
from postmortem.knowledge.schema import Knowledge


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "_CODES", {})
    expression.cache_clear()


def test_most_expressions_have_a_code(knowledge: Knowledge) -> None:
    codes = codes_of(knowledge.patterns)
    sources = {item.regex for item in knowledge.patterns}
    assert len(sources & codes.keys()) > 0.95 * len(sources)


def test_none_of_ours_needs_the_engine_that_is_slow_to_load(knowledge: Knowledge) -> None:
    """`regex` takes longer to import than a small log to read, and any line may hold a literal of such an expression."""
    sources = {item.regex for item in knowledge.patterns}
    sources |= {source for item in knowledge.patterns for source in item.fields.values()}
    assert sources == {source for source in sources if isinstance(expression(source), re.Pattern)}


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


def test_all_prefixes_as_one_say_which_it_is(knowledge: Knowledge) -> None:
    items = prefixes(knowledge.patterns)
    made = re.compile(any_of(items))
    assert len(made.groupindex) == len(items) > 20
    for item in items:
        for line in item.examples.match:
            found = made.match(line)
            first = next(one for one in items if re.match(one.regex, line))
            assert found is not None
            assert found.lastgroup == f"e{items.index(first)}"
    assert re.match(any_of([]), "") is None


@pytest.mark.parametrize(
    ("source", "blind"),
    [
        (r"step \d{3,4} of [\w.]+", True),
        (r"[^0-9a-f]x{12}", True),
        (r"(?P<n1>\S+) (?:a|b)+?(?=c).$", True),
        (r"exit code 137", False),
        (r"[0-7]+", False),
        (r"[13]x", False),
        (r"[^5]x", False),
        (r"(?:a|b|c0)", False),
        (r"x(?!1)", False),
        (r"(\w+) \1", False),
        (r"(?P<a>\d)(?P=a)", False),
        (r"\x31", False),
    ],
)
def test_whether_an_expression_names_a_digit(source: str, blind: bool) -> None:
    assert ignores_digits(source) is blind


def test_an_expression_of_any_digits_matches_wherever_the_first_does() -> None:
    wider = with_any_digits(r"(?P<e1>1\d{9}(?:\.\d{1,9})?) [a-f]7")
    assert wider.match("1730000000.25 b7") and wider.match("9830000000.1 b3")
    assert not wider.match("173000000.25 b7")
    assert with_any_digits(r"exit (?!0|(?:1[(]\)))\d(?<!7)x").match("exit 0x")
    assert with_any_digits(r"[1-3]x") is None
