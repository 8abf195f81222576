"""The report at a terminal, over all fixtures: what the first screen holds, widths, encodings, colours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from postmortem.knowledge.schema import Knowledge
from postmortem.report import encode, glyphs, terminal
from postmortem.report.texts import Texts
from tests.hostile import poisoned, whole
from tests.test_fixtures import NAMES

SCREEN = 24
CODE_PAGES = ("cp437", "cp850", "cp1252", "cp949", "ascii")
every_report = pytest.mark.parametrize("name", NAMES)
both = pytest.mark.parametrize("lang", ["en", "ko"])


def shown(knowledge: Knowledge, name: str, lang: str = "en", **how: object) -> str:
    return terminal.render(whole(name, lang), Texts(knowledge, lang), **how)  # type: ignore[arg-type]


def squeezed(text: str) -> str:
    """Without the breaks and blanks of a layout."""
    return re.sub(r"\s+", "", text)


@every_report
@both
def test_the_first_screen_holds_verdict_proof_and_next_action(knowledge: Knowledge, name: str, lang: str) -> None:
    report = whole(name, lang)
    screen = squeezed("\n".join(shown(knowledge, name, lang, width=80).split("\n")[:SCREEN]))
    assert screen.startswith(squeezed(encode.plain(report.failure.headline)))
    decisive = [item for item in report.failure.evidence if item.what not in ("bar", "phase", "frame", "consequence")]
    for item in (decisive or report.failure.evidence)[-1:]:
        assert squeezed(f"{item.line} {encode.terminal(item.text).strip()[:25]}") in screen
    for fix in report.remedies[:1]:
        assert squeezed(fix.title) in screen
        for change in fix.changes[:3]:
            assert squeezed(f"{change.path}: {encode.value(change.from_)} → {encode.value(change.to)}") in screen
        assert squeezed(fix.ui) in screen


@every_report
@both
def test_no_line_is_longer_than_the_terminal(knowledge: Knowledge, name: str, lang: str) -> None:
    for width in (20, 40, 53, 80, 400):
        text = shown(knowledge, name, lang, width=width)
        assert max(cell_len(line) for line in text.split("\n")) <= min(max(width, 40), 100)
        assert "\x1b" not in text


@every_report
def test_narrow_is_complete(knowledge: Knowledge, name: str) -> None:
    """All that a wide terminal shows of fixes and settings, a narrow one shows too."""
    report = whole(name)
    text = squeezed(shown(knowledge, name, width=40))
    for fix in report.remedies[: terminal.MAX_FIXES]:
        assert squeezed(fix.title) in text
        assert squeezed(fix.cost) in text
    for row in report.settings[: terminal.MAX_SETTINGS] if report.remedies else ():
        assert squeezed(row.path) in text


@every_report
def test_no_glyph_of_ours_is_lost_on_a_code_page(knowledge: Knowledge, name: str) -> None:
    asked = shown(knowledge, name).count("?")
    for encoding in CODE_PAGES:
        text = shown(knowledge, name, encoding=encoding)
        text.encode(encoding)
        assert text.count("?") == asked
        assert max(cell_len(line) for line in text.split("\n")) <= 80


def test_korean_on_a_korean_code_page(knowledge: Knowledge) -> None:
    for name in NAMES:
        text = shown(knowledge, name, "ko", encoding="cp949")
        assert text.encode("cp949").count(b"?") == shown(knowledge, name, "ko").count("?")


def test_every_glyph_that_we_print_has_a_stand_in(knowledge: Knowledge) -> None:
    ours = {character for texts in knowledge.texts.values() for text in texts.values() for character in text}
    for path in (Path(__file__).parents[2] / "postmortem").rglob("*.py"):
        if path.name not in ("boxes.py", "pastes.py", "text.py"):  # what logs hold, not what we print
            ours |= set(path.read_text(encoding="utf-8"))
    lost = {c for c in ours if not c.isascii() and not c.isalpha() and glyphs.stand_in(c, "ascii") == "?"}
    assert lost == set()


def test_a_language_is_shown_where_its_letters_are(knowledge: Knowledge) -> None:
    korean = "".join(knowledge.texts["ko"].values())
    assert {page: glyphs.can_show(korean, page) for page in (*CODE_PAGES, "utf-8", "euc-kr")} == {
        **dict.fromkeys(("cp437", "cp850", "cp1252", "ascii"), False),
        **dict.fromkeys(("cp949", "utf-8", "euc-kr"), True),
    }
    assert all(glyphs.can_show("".join(knowledge.texts["en"].values()), page) for page in CODE_PAGES)
    assert glyphs.stand_in("é", "ascii") == "e"


@pytest.mark.parametrize(
    "text",
    ["한국어로 된 아주 긴 경로 " * 9, "日本語" * 60, "e\u0301\u0302" * 60, "👩‍👩‍👧‍👦 🇰🇷 ❤️" * 20, "ｆｕｌｌ" * 30],
)
def test_wide_and_combining_characters_are_measured(knowledge: Knowledge, text: str) -> None:
    report = poisoned(whole("sampling-mid-run-flux-1600"), [text])
    for width in (40, 80):
        lines = terminal.render(report, Texts(knowledge, "en"), width=width).split("\n")
        assert max(cell_len(line) for line in lines) <= width
        rows = lines[lines.index("evidence") + 1 : lines.index("do this") - 1]
        assert len(rows) <= 2 * terminal.MAX_EVIDENCE


def test_colour_is_sixteen_colours_and_changes_no_character(knowledge: Knowledge) -> None:
    for name in NAMES:
        coloured = shown(knowledge, name, colour=True)
        assert "\x1b[1;31m" in coloured or not whole(name).failure.kind.endswith("oom")
        assert not re.search(r"\x1b\[[0-9;]*(38|48);", coloured)
        plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
        assert [line.rstrip() for line in plain.split("\n")] == shown(knowledge, name).split("\n")


def test_the_environment_changes_nothing(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shown(knowledge, NAMES[0], colour=True)
    for key, value in {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200", "LINES": "3", "FORCE_COLOR": "1"}.items():
        monkeypatch.setenv(key, value)
    assert shown(knowledge, NAMES[0], colour=True) == before


def test_a_long_word_of_the_log_takes_one_line(knowledge: Knowledge) -> None:
    report = poisoned(whole("sampling-mid-run-flux-1600"), ["x" * 5000])
    for encoding, dots in (("utf-8", "…"), ("ascii", "...")):
        lines = terminal.render(report, Texts(knowledge, "en"), encoding=encoding).split("\n")
        row = next(line for line in lines if line.startswith("  107 "))
        assert row.endswith(f"x{dots} (allocation failed)")
        assert 78 < len(row) <= 80
