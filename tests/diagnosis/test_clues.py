"""Which lines date a log, and how their versions are put together; by a history of forty versions, ten days apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from postmortem.diagnosis.dating import MAX_CLUES, MAX_FRAMES, NEWEST, bounds, date, span_of
from postmortem.knowledge.history import History, Range, Version
from postmortem.knowledge.schema import Dating, Knowledge
from postmortem.model import BarSpan, Clue, Dated, Event, Frame, Item, Notice, Traceback
from postmortem.text import LogText
from tests.diagnosis.build import at, attempt, event

DAY = 86_400
FIRST = 1_735_732_800
"""Noon of 2025-01-01."""
COUNT = 40
DAYS = ("2025-01-01", "2025-01-11", "2025-01-21", "2025-01-31", "2025-02-10", "2025-02-20", "2025-03-02", "2025-03-12")


class Past(History):
    """Texts and code lines, each with the versions that have them."""

    def __init__(self, wordings: dict[str, list[Range]], code: dict[tuple[str, int, str], list[Range]]) -> None:
        super().__init__(lambda name: b"")
        self.versions = [Version(FIRST + 10 * DAY * n, f"c{n:06}", n, FIRST + 10 * DAY * n) for n in range(COUNT)]
        self._texts, self._code = wordings, code

    def wording(self, text: str) -> list[Range] | None:
        return self._texts.get(text)

    def path_of(self, path: str) -> str | None:
        name = path.rpartition("/")[2]
        return name if any(known == name for known, *_ in self._code) else None

    def code(self, path: str, questions: Sequence[tuple[int, str]]) -> list[list[Range]]:
        return [self._code.get((path, line, code), []) for line, code in questions]


CODE: dict[tuple[str, int, str], list[Range]] = {
    ("run.py", 7, "x()"): [(1, 4), (6, 8)],
    ("run.py", 9, "y()"): [(3, 7)],
    # an empty line says nothing, nor does one without a number
    ("run.py", 9, ""): [(3, 7)],
    ("run.py", 0, "y()"): [(3, 7)],
    ("job.py", 7, "x()"): [(5, 6)],
}
TEXTS: dict[str, list[Range]] = {
    "two": [(2, 5)],
    "wide": [(0, 30)],
    "four": [(4, 9)],
    "far": [(20, 25)],
    "early": [(0, 3)],
    "late": [(5, COUNT)],
    "split": [(1, 3), (6, 8)],
}
PAST = Past(TEXTS, CODE)


def said(text: str, line: int, role: str = "marker", **given: Any) -> Event:
    return event(role, line, text=text, **given)


def bar(text: str, line: int, **given: Any) -> BarSpan:
    return BarSpan(at(line), at(line), LogText(text), 10, 0, 5, 6, **{"event": "bar_sampling", **given})


def trace(*frames: tuple[str, int, str], line: int = 600, **given: Any) -> Traceback:
    found = (Frame(at(line + n), LogText(path), "f", LogText(code), no) for n, (path, no, code) in enumerate(frames))
    return Traceback(at(line), tuple(found), None, **given)


def dated(
    knowledge: Knowledge, *items: Item, entries: tuple[Dating, ...] = (), past: History = PAST, **given: Any
) -> tuple[Dated | None, Dated | None, tuple[Notice, ...]]:
    return date(items, attempt(**given), msgspec.structs.replace(knowledge, datings=entries), past)


def toolkit(knowledge: Knowledge, *items: Item, **given: Any) -> tuple[Range | None, list[tuple[int, str]]] | None:
    found, _, notices = dated(knowledge, *items, **given)
    assert notices == ()
    return (found.span, [(clue.line, clue.id) for clue in found.clues]) if found is not None else None


def test_nothing_that_dates(knowledge: Knowledge) -> None:
    assert dated(knowledge) == (None, None, ())
    assert dated(knowledge, said("anything", 5), trace(("run.py", 8, "x()"))) == (None, None, ())


def test_what_a_dating_says(knowledge: Knowledge) -> None:
    found, torch, notices = dated(knowledge, said("two", 5))
    assert (torch, notices) == (None, ())
    assert found == Dated(
        from_=DAYS[2],
        until=DAYS[5],
        clues=(Clue(5, "wording"),),
        from_commit="c000002",
        until_commit="c000005",
        span=(2, 5),
    )
    # open at an end
    found = dated(knowledge, said("early", 5))[0]
    assert found is not None
    assert (found.from_, found.from_commit, found.until, found.until_commit) == (None, None, DAYS[3], "c000003")
    found = dated(knowledge, said("late", 5))[0]
    assert found is not None
    assert (found.from_, found.from_commit, found.until, found.until_commit) == (DAYS[5], "c000005", None, None)


@pytest.mark.parametrize(
    ("item", "tells"),
    [
        (said("two", 5), True),
        (said("  two ", 5), True),
        (said("two", 5, "note"), True),
        (said("two", 5, "oom"), False),
        (said("two", 5, quoted=True), False),
        (said("twofold", 5), False),
        (said("job", 5), False),
        # the bar of something that is named, which is not the training's
        (bar("two", 5), True),
        (bar(" two ", 5), True),
        (bar("two", 5, event=None), False),
        (bar("two", 5, event="bar_main"), False),
        (bar("two", 5, postfix=LogText("loss: 1")), False),
        (bar("job", 5), False),
    ],
)
def test_a_fixed_text_as_a_line_or_a_bar_of_its_own(item: Item, tells: bool, knowledge: Knowledge) -> None:
    past = Past({**TEXTS, "job": [(2, 5)]}, CODE)
    found = toolkit(knowledge, item, past=past, job_name=LogText("job"))
    assert found == (((2, 5), [(5, "wording")]) if tells else None)


def test_a_text_counts_where_it_first_stands(knowledge: Knowledge) -> None:
    items = (said("none", 3), event("oom", 4), said("two", 5), said("two", 9), said("four", 12))
    assert toolkit(knowledge, *items) == ((4, 5), [(5, "wording"), (12, "wording")])


def test_lines_of_other_attempts_say_nothing(knowledge: Knowledge) -> None:
    items = (said("far", 9), said("two", 10), said("four", 20), said("far", 21))
    found = toolkit(knowledge, *items, first_line=10, last_line=20)
    assert found == ((4, 5), [(10, "wording"), (20, "wording")])


@pytest.mark.parametrize(
    ("frames", "found"),
    [
        ([("/a/run.py", 7, "x()")], ((1, 8), [(600, "code_line")])),
        ([("/a/run.py", 7, " x() ")], ((1, 8), [(600, "code_line")])),
        ([("/a/run.py", 7, "x()"), ("/a/run.py", 9, "y()")], ((3, 7), [(600, "code_line"), (601, "code_line")])),
        ([("/a/run.py", 7, "x()"), ("/a/job.py", 7, "x()")], None),
        # a line that no version had so
        ([("/a/run.py", 7, "z()"), ("/a/run.py", 9, "y()")], ((3, 7), [(601, "code_line")])),
        ([("/a/run.py", 9, "y()"), ("/a/run.py", 9, "y()")], ((3, 7), [(600, "code_line")])),
        ([("/a/other.py", 9, "y()"), ("/a/run.py", 9, "y()")], ((3, 7), [(601, "code_line")])),
        ([("/a/run.py", 0, "y()"), ("/a/run.py", 9, "")], None),
    ],
)
def test_code_lines(frames: list[tuple[str, int, str]], found: Any, knowledge: Knowledge) -> None:
    if found is None:
        assert dated(knowledge, said("none", 5), trace(*frames))[0] is None
    else:
        assert toolkit(knowledge, said("none", 5), trace(*frames)) == found


def test_frames_of_all_tracebacks_up_to_a_bound(knowledge: Knowledge) -> None:
    padding = [("/a/other.py", 1, "z()")] * (MAX_FRAMES - 1)
    last, beyond = ("/a/run.py", 9, "y()"), ("/a/job.py", 7, "x()")
    found = toolkit(knowledge, trace(*padding), trace(last, line=2100), trace(beyond, line=2200), last_line=9999)
    assert found == ((3, 7), [(2100, "code_line")])


def test_the_sharpest_are_named_and_only_those_that_narrow(knowledge: Knowledge) -> None:
    assert toolkit(knowledge, said("wide", 3), said("four", 5), said("two", 9)) == (
        (4, 5),
        [(5, "wording"), (9, "wording")],
    )
    # equally sharp: the earlier line
    past = Past({"a": [(2, 5)], "b": [(2, 5)]}, CODE)
    assert toolkit(knowledge, said("b", 3), said("a", 9), past=past) == ((2, 5), [(3, "wording")])
    assert toolkit(knowledge, said("a", 3), said("b", 9), past=past) == ((2, 5), [(3, "wording")])
    # several stretches: from the first to the last, less those that another excludes
    assert toolkit(knowledge, said("split", 3)) == ((1, 8), [(3, "wording")])
    assert toolkit(knowledge, said("split", 3), said("late", 4)) == ((6, 8), [(3, "wording"), (4, "wording")])
    # sharp is what allows few versions, however far these lie apart
    past = Past({"two": [(0, 2), (30, 32)], "six": [(0, 6)]}, CODE)
    assert toolkit(knowledge, said("six", 3), said("two", 4), past=past) == ((0, 2), [(3, "wording"), (4, "wording")])
    # a text that every version has dates nothing
    assert toolkit(knowledge, said("all", 3), past=Past({"all": [(0, COUNT)]}, CODE)) is None


def test_no_more_clues_than_a_reader_takes_in(knowledge: Knowledge) -> None:
    texts: dict[str, list[Range]] = {f"t{n}": [(n, 20 + 2 * n)] for n in range(MAX_CLUES + 3)}
    items = [said(f"t{n}", 100 - n) for n in range(MAX_CLUES + 3)]
    found = toolkit(knowledge, *items, past=Past(texts, CODE))
    assert found is not None
    assert found[0] == (MAX_CLUES + 2, 20)
    assert found[1] == [(100 - n, "wording") for n in reversed(range(MAX_CLUES))]


def test_clues_that_contradict_each_other(knowledge: Knowledge) -> None:
    found = dated(knowledge, said("two", 5), said("late", 3))
    assert found == (None, None, (Notice("dating_contradiction", 3, {"program": "ai-toolkit"}),))
    # touching is no common version
    past = Past({"a": [(2, 5)], "b": [(5, 9)]}, CODE)
    assert dated(knowledge, said("a", 5), said("b", 6), past=past)[0] is None


def entry(ident: str = "e", program: Any = "ai-toolkit", **given: Any) -> Dating:
    return Dating(ident, program, "mine", **{"from_commit": "c000003", "until_commit": "c000006", **given})


@pytest.mark.parametrize(
    ("given", "item", "line"),
    [
        ({"patterns": ("a.b",)}, event("oom", 5, pattern="a.b"), 5),
        ({"patterns": ("x", "a.b")}, event("oom", 5, pattern="a.b"), 5),
        ({"patterns": ("a.b",)}, event("oom", 5, pattern="a.c"), None),
        ({"patterns": ("a.b",)}, event("oom", 5, pattern="a.b", quoted=True), None),
        ({"patterns": ("a.b",), "contains": "some"}, event("oom", 5, pattern="a.b", text="a something"), 5),
        ({"patterns": ("a.b",), "contains": "some"}, event("oom", 5, pattern="a.b", text="nothing"), None),
        ({"patterns": ("a.b",), "exception": "E"}, event("oom", 5, pattern="a.b", exception="E"), 5),
        ({"patterns": ("a.b",), "exception": "E"}, event("oom", 5, pattern="a.b", exception="F"), None),
        ({"patterns": ("a.b",), "exception": "E"}, event("oom", 5, pattern="a.c", exception="E"), None),
        # an exception whoever's line it is
        ({"exception": "E"}, event("oom", 5, pattern="a.c", exception="E"), 5),
        ({"exception": "E"}, event("oom", 5, pattern="a.c"), None),
        ({"exception": "E", "contains": "x"}, event("oom", 5, pattern="a.c", exception="E", text="y"), None),
        ({}, event("oom", 5, pattern="a.c"), None),
        ({"observed": "stderr_doubled"}, trace(doubled=True), 600),
        ({"observed": "stderr_doubled"}, trace(), None),
    ],
)
def test_an_entry_of_the_knowledge_base(
    given: dict[str, Any], item: Item, line: int | None, knowledge: Knowledge
) -> None:
    # another entry knows the pattern too: it takes nothing away
    others = (entry("all", from_commit=None, until_commit=None, patterns=("a.b", "a.c")),)
    found = toolkit(knowledge, bar("none", 2), trace(line=3), item, entries=(*others, entry(**given)))
    assert found == (((3, 6), [(line, "e")]) if line is not None else None)


def test_an_entry_counts_where_it_first_holds(knowledge: Knowledge) -> None:
    items = [event("oom", n, pattern="a.b", text=text) for n, text in ((5, "x"), (7, "some"), (8, "some"))]
    given = entry(patterns=("a.b",), contains="some"), entry("f", exception="E", until_commit="c000005")
    assert toolkit(knowledge, *items, entries=given) == ((3, 6), [(7, "e")])
    other = event("oom", 9, pattern="a.b", exception="E", text="some")
    assert toolkit(knowledge, *items, other, entries=given) == ((3, 5), [(9, "f")])


@pytest.mark.parametrize(
    ("observed", "completed", "given", "tells"),
    [
        ("bar_completed", True, {}, True),
        ("bar_completed", False, {}, False),
        ("bar_last_step", False, {}, True),
        ("bar_last_step", True, {}, False),
        ("bar_completed", True, {"bar_proves_count": False}, False),
        ("bar_completed", True, {"main_bar_place": None}, False),
        ("bar_completed", True, {"notes": (event("note", 20, event="nan"),)}, False),
        ("bar_completed", True, {"notes": (event("note", 20, event="other"),)}, True),
    ],
)
def test_how_the_bar_counts_dates_where_it_is_proven(
    observed: str, completed: bool, given: dict[str, Any], tells: bool, knowledge: Knowledge
) -> None:
    proven = {"bar_proves_count": True, "bar_counts_completed": completed, "main_bar_place": at(30), **given}
    found = toolkit(knowledge, entries=(entry(observed=observed),), **proven)
    assert found == (((3, 6), [(30, "e")]) if tells else None)


def test_a_release_of_torch(knowledge: Knowledge) -> None:
    def of(start: str | None, end: str | None, ident: str = "e", line: int = 5) -> tuple[Dating, Event]:
        given: dict[str, Any] = {"from_": start, "until": end, "from_commit": None, "until_commit": None}
        return entry(ident, "torch", patterns=(ident,), **given), event("oom", line, pattern=ident)

    def torch(*told: tuple[Dating, Event]) -> Any:
        found = dated(knowledge, *(item for _, item in told), entries=tuple(one for one, _ in told))
        assert found[0] is None
        return found[1:]

    assert torch(of("2.1", "2.10")) == (Dated("2.1", "2.10", (Clue(5, "e"),), span=(2001, 2010)), ())
    assert torch(of("2.9", None)) == (Dated("2.9", None, (Clue(5, "e"),), span=(2009, NEWEST)), ())
    assert torch(of(None, "2.0")) == (Dated(None, "2.0", (Clue(5, "e"),), span=(0, 2000)), ())
    assert torch(of(None, "2.2")) == (Dated(None, "2.2", (Clue(5, "e"),), span=(0, 2002)), ())
    both = torch(of("2.1", "2.10"), of("2.5", None, "f", 7))
    assert both == (Dated("2.5", "2.10", (Clue(5, "e"), Clue(7, "f")), span=(2005, 2010)), ())
    apart = torch(of("2.1", "2.5"), of("2.5", None, "f", 7))
    assert apart == (None, (Notice("dating_contradiction", 7, {"program": "torch"}),))


def test_a_habit_of_the_bar_can_tell_of_torch_too(knowledge: Knowledge) -> None:
    given = entry("t", "torch", observed="bar_completed", from_="2.9", from_commit=None, until_commit=None)
    proven: dict[str, Any] = {"bar_proves_count": True, "bar_counts_completed": True, "main_bar_place": at(30)}
    found = dated(knowledge, entries=(given,), **proven)[1]
    assert found is not None and found.clues == (Clue(30, "t"),)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the clock's zone cannot be changed")
def test_days_are_those_of_utc_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch, request: Any) -> None:
    request.addfinalizer(time.tzset)
    for zone in ("UTC", "Pacific/Kiritimati", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        # a version at noon of the 21st; each history asks anew
        assert bounds("2025-01-21", None, "2025-01-20", None, Past({}, {})) == (1, 2)
        assert bounds("2025-01-22", None, "2025-01-21", None, Past({}, {})) == (2, 3)
    monkeypatch.undo()


def test_each_program_has_its_own_clues(knowledge: Knowledge) -> None:
    torch = entry("t", "torch", patterns=("a.b",), from_="2.9", from_commit=None, until_commit=None)
    found = dated(knowledge, event("oom", 5, pattern="a.b"), said("two", 9), entries=(torch, entry(patterns=("a.b",))))
    assert found[0] is not None and found[1] is not None
    assert [(clue.line, clue.id) for clue in found[0].clues] == [(5, "e"), (9, "wording")]
    assert [(clue.line, clue.id) for clue in found[1].clues] == [(5, "t")]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ((None, None, None, None), (0, COUNT)),
        ((None, "c000003", None, "c000006"), (3, 6)),
        # a commit that is not known is none; the date beside it counts
        (("2025-01-21", "cffffff", "2025-01-21", "cffffff"), (1, 3)),
        # the day may belong to either side: the version that stood when it began, and those of the day
        (("2025-01-21", None, None, None), (1, COUNT)),
        (("2025-01-22", None, None, None), (2, COUNT)),
        ((None, None, "2025-01-21", None), (0, 3)),
        ((None, None, "2025-01-20", None), (0, 2)),
        (("2024-01-01", None, "2099-01-01", None), (0, COUNT)),
    ],
)
def test_the_versions_between_dates_or_commits(given: tuple[str | None, ...], found: Range) -> None:
    start, start_commit, end, end_commit = given
    assert bounds(start, start_commit, end, end_commit, PAST) == found
    named = entry(patterns=("a.b",), from_=start, from_commit=start_commit, until=end, until_commit=end_commit)
    assert span_of(named, PAST) == found
