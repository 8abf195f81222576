"""The literal search: each engine finds the same words in the same lines, and reports do not depend on it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.knowledge.schema import Knowledge
from postmortem.scan import Lexicon, literals, scan
from postmortem.scan.literals import Engine, Literals
from tests.test_fixtures import FIXTURES

ENGINES: tuple[Engine, ...] = ("plain", "hyperscan", "numpy", "best")
WORDS = st.lists(st.binary(max_size=12).filter(lambda word: b"\n" not in word), max_size=30)


def lines_of(words: list[bytes], text: bytes, engine: Engine) -> set[tuple[int, int]]:
    """(line, word) for all that is found; each place must hold its word."""
    hits = Literals(words, engine).find(text)
    assert all(text.startswith(words[index], at) for at, index in hits)
    return {(text.count(b"\n", 0, at), index) for at, index in hits}


@st.composite
def texts_with(draw: st.DrawFn, words: list[bytes]) -> bytes:
    """A text that holds some of `words`, whole, torn or side by side."""
    listed = st.sampled_from([b"", *words])
    piece = st.one_of(listed, listed.map(lambda word: word[1:]), st.binary(max_size=6))
    return b"".join(draw(st.lists(st.one_of(piece, st.just(b"\n")), max_size=60)))


@settings(deadline=None)
@given(st.data())
def test_every_engine_finds_the_same(data: st.DataObject) -> None:
    words = data.draw(WORDS)
    text = data.draw(texts_with(words))
    wanted = {
        (number, index)
        for number, line in enumerate(text.split(b"\n"))
        for index, word in enumerate(words)
        if word in line
    }
    for engine in ENGINES:
        assert lines_of(words, text, engine) == wanted, engine


@settings(deadline=None)
@given(st.data())
def test_every_engine_finds_the_same_anchors(lexicon: Lexicon, data: st.DataObject) -> None:
    words = sorted({*lexicon.anchored, *lexicon.carrier_anchors})
    text = data.draw(texts_with(words))
    first, *others = [{(text.count(b"\n", 0, at), index) for at, index in search(text)} for search in built(*words)]
    assert others == [first] * len(others)


@lru_cache(maxsize=1)
def built(*words: bytes) -> list[literals.Search]:
    """The searches for these words; to build one takes longer than to use it."""
    return [build(words) for build in (literals.plain, literals.by_automaton, literals.by_grams)]


@pytest.mark.parametrize("engine", ["hyperscan", "numpy"])
def test_a_log_says_the_same_with_every_engine(knowledge: Knowledge, engine: Engine) -> None:
    plain, other = Lexicon(knowledge, "plain"), Lexicon(knowledge, engine)
    logs = sorted(path for path in FIXTURES.rglob("*") if path.suffix in (".txt", ".log"))
    assert len(logs) > 50
    for path in logs:
        content = path.read_bytes()
        assert scan([content], plain) == scan([content], other), path.parent.name


@pytest.mark.parametrize(
    ("missing", "taken"),
    [((), "by_automaton"), (("hyperscan",), "by_grams"), (("hyperscan", "numpy"), "plain")],
)
def test_the_best_that_is_there_is_taken_up_when_it_pays(
    monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...], taken: str
) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    names = ["plain"]
    for name in ("by_automaton", "by_grams"):
        monkeypatch.setattr(literals, name, noting(getattr(literals, name), names))
    search = literals.Literals([b"Killed", b"out of memory"])
    row = b"Loading the next file\n" * 99 + b"CUDA out of memory\n"
    for _ in range(0, literals.HYPERSCAN_PAYS - len(row), len(row)):
        assert search.find(row) == [(row.index(b"out of"), 1)]
    assert names == ["plain"], "little text loads no engine"
    for _ in range(0, literals.NUMPY_PAYS, len(row)):
        assert search.find(row) == [(row.index(b"out of"), 1)]
    assert names[-1] == taken


def noting(build: Callable[[Sequence[bytes]], literals.Search], names: list[str]) -> object:
    """`build`, which notes its name in `names` where it succeeds."""

    def instead(words: Sequence[bytes]) -> literals.Search:
        search = build(words)
        names.append(build.__name__)
        return search

    return instead


def test_an_engine_that_was_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    with pytest.raises(ImportError):
        Literals([b"Killed"], "hyperscan").find(b"Killed")


def test_a_place_for_each_line_in_order(lexicon: Lexicon) -> None:
    text = b"Error running job: CUDA out of memory\nfree words\nKilled\n"
    found = lexicon.found(text)
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert {text.count(b"\n", 0, at) for at, _ in found} == {0, 2}
    assert {item.pattern.id for at, items in found if at >= text.index(b"Killed") for item in items} == {
        item.pattern.id for item in lexicon.anchored[b"Killed"]
    }
