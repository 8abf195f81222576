"""What a fix saves and leaves, in the words and figures that people read."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report import outlook
from postmortem.report.document import RungItem, Span
from postmortem.report.texts import Texts


@dataclass
class Fix:
    saving: Span | None
    need: Span | None
    fits: str | None


def gib(low: float, high: float) -> Span:
    return Span(low=low * 1024, likely=(low + high) * 512, high=high * 1024)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0, 30 / 1024, "up to 30 MiB"),
        (0.5 / 1024, 2, "up to 2.0 GiB"),
        (2.96, 3.1, "3 GiB"),
        (2.9, 3.1, "2.9–3 GiB"),
        (0.7, 3, "717 MiB–3 GiB"),
        (4, 8, "4–8 GiB"),
    ],
)
def test_a_range_reads_as_a_person_would_write_it(low: float, high: float, shown: str, knowledge: Knowledge) -> None:
    assert outlook.between(gib(low, high), Texts(knowledge, "en")) == shown


@pytest.mark.parametrize(
    ("lang", "shown"),
    [
        ("en", "saves up to 30 MiB · then needs 19–20 GiB"),
        ("ko", "최대 30 MiB 절약 · 적용 후 19–20 GiB 필요"),
    ],
)
def test_a_saving_that_may_be_nothing_has_one_end(lang: str, shown: str, knowledge: Knowledge) -> None:
    fix = Fix(Span(low=0.0, likely=10.0, high=30.0), gib(19, 20), "unknown")
    assert outlook.effect(fix, Texts(knowledge, lang)) == shown


def test_what_is_left_is_the_need_and_no_verdict_is_said_without_a_card(knowledge: Knowledge) -> None:
    texts = Texts(knowledge, "en")

    def rung(fits: str) -> RungItem:
        return RungItem(id="a", title="Do this", changes=[], peak=gib(4, 6), need=gib(6, 9), fits=fits)

    lines = outlook.ladder_lines([rung("unknown"), rung("borderline")], None, texts)
    assert lines == ["1. Do this: then needs 6–9 GiB", "2. Do this: then needs 6–9 GiB, borderline"]
