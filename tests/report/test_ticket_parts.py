"""The parts that tickets are made of: config diffs, the budget, and plain text's columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from postmortem.report.ticket import plain
from postmortem.report.ticket.blocks import Block, Paragraph, Section, Verbatim, table
from postmortem.report.ticket.budget import fitted
from postmortem.report.ticket.edits import Edit, diff, scalar
from postmortem.text import LogText, Words


def lines(*edits: Edit, most: int = 8) -> list[str]:
    return [line.reveal() for line in diff(edits, most).lines]


def test_a_diff_has_the_nesting_of_the_config() -> None:
    assert lines(
        Edit("train.batch_size", 4, 2),
        Edit("train.gradient_accumulation", None, 2, "default: 1"),
        Edit("train.ema_config.use_ema", True, False),
        Edit("datasets[0].resolution", [512, 1024], [512]),
        Edit("datasets[1].resolution", [512, 1024], None),
    ) == [
        " train:",
        "-  batch_size: 4",
        "+  batch_size: 2",
        "+  gradient_accumulation: 2  # default: 1",
        "   ema_config:",
        "-    use_ema: true",
        "+    use_ema: false",
        " datasets:",
        "   - # datasets[0]",
        "-    resolution: [512, 1024]",
        "+    resolution: [512]",
        "   - # datasets[1]",
        "-    resolution: [512, 1024]",
    ]  # fmt: skip


def test_a_list_and_a_path_that_is_none() -> None:
    assert lines(Edit("sample.prompts[2]", LogText("a"), LogText("b c"))) == [
        " sample:", "   prompts:", "-    - a", '+    - "b c"',
    ]  # fmt: skip
    assert lines(Edit("odd key. [x", 1, 2)) == ["-odd key. [x: 1", "+odd key. [x: 2"]
    assert lines(Edit("a.b", 1, 2), Edit("a.c", 1, 2), most=1) == [" a:", "-  b: 1", "+  b: 2"]


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["train", "model", "sample"]), st.dictionaries(st.sampled_from("abc"), st.integers())
    )
)
def test_either_side_of_a_diff_is_yaml(config: dict[str, dict[str, int]]) -> None:
    edits = [Edit(f"{room}.{key}", value, value + 1) for room, keys in config.items() for key, value in keys.items()]
    shown = lines(*edits, most=20)
    for side, by in (("-", 0), ("+", 1)):
        text = "\n".join(line[1:] for line in shown if line[0] in f" {side}")
        want = {room: {key: value + by for key, value in keys.items()} for room, keys in config.items() if keys}
        assert (yaml.safe_load(text) or {}) == want


@settings(deadline=None)
@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=30),
    )
)
@example("...")  # the end of a YAML document
def test_a_scalar_reads_back_as_it_is(value: Any) -> None:
    shown = scalar(LogText(value) if isinstance(value, str) else value)
    want = LogText(value).reveal() if isinstance(value, str) else value
    assert yaml.safe_load(shown) == want


def test_long_values_are_cut() -> None:
    assert len(scalar(LogText("x" * 999), 40)) <= 42
    assert len(scalar(list(range(999)), 40)) <= 40


def joined(blocks: Sequence[Block]) -> str:
    return "\n".join(line.reveal() for block in blocks if isinstance(block, Paragraph) for line in block.lines)


def paragraph(text: str) -> tuple[Block, ...]:
    return (Paragraph((Words(text),)),)


def left_out(names: list[str]) -> Block:
    return Paragraph((Words("left " + ",".join(names)),))


def test_the_least_important_goes_first_and_comes_back_where_it_fits() -> None:
    sections = [
        Section("core", (paragraph("C" * 20),)),
        Section("large", (paragraph("L" * 200), paragraph("l" * 20), ()), (20, 40)),
        Section("small", (paragraph("S" * 30), ()), (10,)),
    ]
    assert fitted(sections, joined, 0, left_out) == joined([b for s in sections for b in s.forms[0]])
    assert fitted(sections, joined, 240, left_out) == "C" * 20 + "\n" + "L" * 200 + "\nleft small"
    assert fitted(sections, joined, 100, left_out) == "C" * 20 + "\n" + "l" * 20 + "\n" + "S" * 30 + "\nleft large"
    assert fitted(sections, joined, 60, left_out) == "C" * 20 + "\n" + "l" * 20 + "\nleft large,small"
    assert fitted(sections, joined, 40, left_out) == "C" * 20 + "\nleft large,small"


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(0, 40))
def test_wrapped_text_keeps_its_columns_and_words(text: str, indent: int) -> None:
    text = LogText(text).reveal()
    shown = plain.wrapped(text, " " * indent, " " * indent)
    assert all(cell_len(line) <= plain.WIDTH for line in shown)
    assert "".join("".join(shown).split()) == "".join(text.split())


@settings(deadline=None)
@given(st.text(max_size=300))
def test_a_broken_line_keeps_its_columns_and_characters(text: str) -> None:
    line = LogText(LogText(text).reveal())
    shown = plain.write([Verbatim((line,))])
    assert all(cell_len(part) <= plain.WIDTH for part in shown.split("\n"))
    kept = re.sub(r"@(?=\w)", "＠", line.reveal())
    assert "".join(shown.split()) == "".join(kept.split())


def test_a_plain_table_is_aligned_by_columns_of_the_screen() -> None:
    shown = plain.write([table(("설정", "a"), ("run", LogText("b")))])
    assert shown == "설정  a\nrun   b\n"
    wide = plain.write([table(("x" * 50, "y" * 20, "z"), ("1", "2", "3"))])
    assert wide == "x" * 50 + " · " + "y" * 20 + " ·\n  z\n1 · 2 · 3\n"


@pytest.mark.parametrize("url", ["https://example.org/" + "a" * 90])
def test_a_plain_address_is_never_broken(url: str) -> None:
    from postmortem.report.ticket.blocks import Links

    assert url in plain.write([Links((("guide", url),))])


def test_a_bar_that_is_wider_than_a_mail_is_not_drawn_over_several_lines() -> None:
    bar = "120  my_style:   5%|" + "█" * 9 + " " * 90 + "| 1/20 [00:00<00:07,  2.59it/s]"
    shown = plain.write([Verbatim((LogText(bar), LogText("12%|###   | 1/8")))])
    assert shown == "    120  my_style:   5%|…| 1/20 [00:00<00:07,  2.59it/s]\n    12%|###   | 1/8\n"
