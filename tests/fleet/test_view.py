"""The fleet at a terminal: in both languages, within its width, and nothing in it acts."""

from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from postmortem.fleet import view, words
from postmortem.fleet.groups import fixes_of
from postmortem.fleet.row import Retry, Row
from postmortem.fleet.table import columns, frame
from postmortem.knowledge.schema import Knowledge
from postmortem.report.texts import Texts
from postmortem.text import printable
from tests.fleet.rows import HOSTILE, dead, fine, grouped

FLEET = [
    *(dead(number) for number in range(12)),
    *(fine(number) for number in range(12, 60)),
    Row(run="broken.log", path="/broken.log", status="error", error="a program, not a log"),
]


def shown(rows: list[Row], knowledge: Knowledge, lang: str = "en", width: int = 80) -> str:
    texts = Texts(knowledge, lang)
    fixes = fixes_of(frame(rows), rows)
    return view.render(rows, rows, grouped(rows, knowledge), fixes, texts, width=width, colour=False)


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_window(knowledge: Knowledge, lang: str, width: int) -> None:
    long = [
        Row(
            run="ordner/" * 20 + f"도자기_{number}",
            path="x",
            status="analysed",
            kind="not_memory",
            outcome="failed",
            exception="A" * 80,
            place="b" * 60 + ".py:" + "c" * 60,
            fingerprint=f"{number:016d}",
            family="한국어 모델" * 5,
        )
        for number in range(3)
    ]
    for line in shown([*FLEET, *long], knowledge, lang, width).splitlines():
        assert cell_len(line) <= width, line


def test_no_column_goes_by_its_raw_name(knowledge: Knowledge) -> None:
    for lang in ("en", "ko"):
        text = shown(FLEET, knowledge, lang)
        raw = [name for name in columns() if "_" in name and re.search(rf"\b{name}\b", text)]
        assert raw == [] and "fleet." not in text and "early_step" not in text


def test_one_is_not_many(knowledge: Knowledge) -> None:
    assert shown([dead(1)], knowledge).startswith("1 run, 1 of them ran out of memory, 0.5 GPU hours lost.")
    assert shown([dead(1), dead(2, fingerprint="b" * 16)], knowledge).count("1 run ·") == 2


@pytest.mark.parametrize(
    ("lang", "says"), [("en", "Turn gradient checkpointing on"), ("ko", "Gradient Checkpointing을")]
)
def test_what_would_save_most_is_said_before_the_groups(knowledge: Knowledge, lang: str, says: str) -> None:
    top = " ".join(shown(FLEET, knowledge, lang).split("\n\n")[0].split())
    assert says in top
    texts = Texts(knowledge, lang)
    for some in ([], [fine(99)]):
        none = view.render(FLEET, some, [], [], texts, width=80, colour=False)
        assert texts("fleet.no_groups") not in none, "that none is shown does not mean that none failed"


def test_groups_with_several_fingerprints_have_several_titles(knowledge: Knowledge) -> None:
    startup = {"class_": "startup", "cause": None}
    rows = [
        dead(1, **startup, phase="model_load", fingerprint="1" * 16),
        dead(2, **startup, phase="quantize", fingerprint="2" * 16),
        dead(3, **{**startup, "class_": "sampling"}, phase="baseline_sampling", fingerprint="3" * 16),
        dead(4, **{**startup, "class_": "sampling"}, phase="mid_sampling", fingerprint="4" * 16),
        dead(5, **startup, phase="model_load", trainer="kohya", fingerprint="5" * 16),
        dead(6, **startup, phase="model_load", trainer="musubi-tuner", fingerprint="6" * 16),
    ]
    for lang in ("en", "ko"):
        titles = {words.title(group, Texts(knowledge, lang)) for group in grouped(rows, knowledge)}
        assert len(titles) == len(rows)
    assert "Out of memory at start-up: quantising" in {
        words.title(group, Texts(knowledge, "en")) for group in grouped(rows, knowledge)
    }
    ended = dead(8, kind="unknown", class_=None, cause="incomplete", outcome="incomplete")
    assert words.title(grouped([ended], knowledge)[0], Texts(knowledge, "en")) == "The log just ends: training step"
    own = dead(7, **startup, phase="model_load", trainer="ai-toolkit")
    assert words.title(grouped([own], knowledge)[0], Texts(knowledge, "en")).startswith("Out of memory at start-up")


def test_next_to_no_hours_are_no_line_and_sums_say_of_how_many_runs(knowledge: Knowledge) -> None:
    brief = shown([dead(1, hours=0.001, hours_lost=0.001)], knowledge)
    assert "GPU hours lost" not in brief and "<" not in brief
    text = " ".join(shown([dead(1), dead(2, hours_lost=None)], knowledge).split())
    assert text.startswith("2 runs, 2 of them ran out of memory, 0.5 GPU hours lost in the 1 that tell.")
    assert text.count("0.5 GPU hours lost in the 1 that tell") == 3  # in all, of the group, of the fix


@pytest.mark.parametrize(
    ("passed", "says"),
    [
        ([True], "the one retry that had it got past the failure"),
        ([False], "the one retry that had it did not get past the failure"),
        ([True, False], "1 of 2 retries that had it got past the failure"),
    ],
)
def test_retries_are_told_as_a_sentence(knowledge: Knowledge, passed: list[bool], says: str) -> None:
    tried = [Retry("a" * 16, "enable_gradient_checkpointing", True, one) for one in passed]
    assert says in " ".join(shown([dead(1, retries=tried)], knowledge).split())


def test_a_fact_reads_as_a_sentence(knowledge: Knowledge) -> None:
    text = " ".join(shown(FLEET, knowledge).split())
    assert "shared: gradient checkpointing off: 12 of 12, against 0 of 48 that did not fail" in text
    korean = " ".join(shown(FLEET, knowledge, "ko").split())
    assert "공통점: Gradient Checkpointing 꺼짐: 12개 중 12개, 실패하지 않은 48개 중에서는 0개" in korean


def test_too_few_to_compare_with_is_said(knowledge: Knowledge) -> None:
    assert "too few runs that did not fail" in shown([dead(1), dead(2)], knowledge)
    assert "too few runs that did not fail" not in shown(FLEET, knowledge)


def test_a_long_path_keeps_its_end(knowledge: Knowledge) -> None:
    text = shown([*FLEET, dead(99, run="a/" * 60 + "the_run_itself")], knowledge)
    assert any(line.lstrip().startswith("…") and "the_run_itself" in line for line in text.splitlines())


def test_a_wide_window_shows_more_columns(knowledge: Knowledge) -> None:
    assert not re.search(r"\bhours +first fix", shown(FLEET, knowledge, width=80))
    assert re.search(r"\bhours +first fix", shown(FLEET, knowledge, width=120))


def test_nothing_hostile_acts(knowledge: Knowledge) -> None:
    name = printable(HOSTILE)
    rows = [
        dead(1, run=name, family=name, exception=name, place=name, first_fix=name),
        dead(2, run=name, kind="not_memory", class_=None, exception=name, place=name, fingerprint="b" * 16),
        Row(run=name, path=name, status="error", error=name),
    ]
    text = shown(rows, knowledge)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b]", text)
    assert "[bold]x[/bold]" in text  # markup is text


def test_everything_that_a_cell_may_hold_has_words(knowledge: Knowledge) -> None:
    for lang in ("en", "ko"):
        texts = Texts(knowledge, lang)
        for cause in knowledge.causes:
            assert words.value("cause", cause.id, texts) != cause.id
        reasons = {pattern.sets.reason for pattern in knowledge.patterns if pattern.sets.kind == "not_memory"}
        assert [one for one in reasons if one and words.value("exception", one, texts) == one] == []
        # without an explanation, the reason or the outcome is the cause
        assert [one for one in reasons if one and words.value("cause", one, texts) == one] == []
        if lang == "ko":
            assert not any(words.value("cause", one, texts) == one for one in ("failed", "killed", "incomplete"))
        short = [words.fix_name(remedy.id, texts) for remedy in knowledge.remedies]
        assert not set(short) & {remedy.id for remedy in knowledge.remedies} and max(map(cell_len, short)) <= 30
        for class_ in (entry.id for entry in knowledge.classes if entry.what in ("class", "kind")):
            if class_ not in ("none", "unknown"):
                assert texts.has(f"fleet.short.{class_}"), class_
