"""The page's colours are readable in both schemes, by the formula of WCAG 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postmortem.report import html
from postmortem.report.shell import styled

STYLE = styled((Path(html.__file__).parent / "style.css").read_text(encoding="utf-8"))
TEXT = (
    *(("ink", "paper"), ("ink", "wash"), ("soft", "paper"), ("soft", "wash"), ("soft", "accent-wash")),
    *(
        ("ink", "accent-wash"),
        ("accent", "paper"),
        ("accent", "wash"),
        ("accent", "accent-wash"),
        ("on-accent", "accent"),
    ),
    *(("link", "paper"), ("link", "wash"), ("link", "accent-wash"), ("paper", "ink")),
    *((f"on-p{number}", f"p{number}") for number in range(1, 6)),
)
"""Text on its ground: 4.5 to 1."""
DRAWN = (
    ("strong", "paper"),
    ("accent", "paper"),
    ("ink", "paper"),
    ("p1", "paper"),
    ("p2", "paper"),
    ("link", "paper"),
    ("accent", "p4"),
)
"""Lines, marks and shapes without which a picture says nothing: 3 to 1."""


def scheme(name: str) -> dict[str, str]:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    if name == "dark":
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_the_formula() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize(("front", "ground"), TEXT)
def test_text_is_readable(name: str, front: str, ground: str) -> None:
    colours = scheme(name)
    assert contrast(colours[front], colours[ground]) >= 4.5


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize(("front", "ground"), DRAWN)
def test_what_is_drawn_can_be_seen(name: str, front: str, ground: str) -> None:
    colours = scheme(name)
    assert contrast(colours[front], colours[ground]) >= 3


def test_every_colour_is_one_of_the_schemes() -> None:
    rules = re.sub(r"(?s):root \{.*?\}", "", STYLE)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsl", rules) == []
    assert set(scheme("dark")) == set(scheme("light"))


def test_the_sheet_asks_for_what_readers_ask_for() -> None:
    assert "@media print" in STYLE
    assert "screen and (prefers-color-scheme: dark)" in STYLE  # and so never on paper
    assert "prefers-reduced-motion" in STYLE
    assert ":focus-visible" in STYLE
    assert not re.search(r"url\(|@import|@font-face|expression\(", STYLE)
    assert not re.search(r"outline:\s*(0|none)", STYLE)
    motion = STYLE[STYLE.index("prefers-reduced-motion: no-preference") :].split("}")[0]
    assert "smooth" in motion
    assert not re.search(r"animation|transition", STYLE)
