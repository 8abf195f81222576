"""What a failure says, in another language: the wordings of the code, each found again by its text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import pytest

import postmortem
from postmortem.cli import told
from postmortem.cli.main import run
from postmortem.knowledge.schema import Knowledge

PLACE = re.compile(r"\{\w+\}")
FAILURES = ("Failure", "IntakeError", "Unreachable")
PARTS = {"¤", "¤: ¤", "¤: ¤: ¤", "¤: ¤; ¤", "¤: neither a file nor a folder; ¤", "¤; did you mean the command `¤`?"}
"""Put together of parts that have texts of their own."""
ENGLISH = {
    # said to who starts a cluster or has a pack of his own
    "patterns: ¤",
    "a data set needs pyarrow: pip install 'aitk-postmortem[parquet]'",
    "--where: a data set holds all rows; ask it afterwards (DuckDB, pandas)",
    "--run: ¤",
}


@lru_cache(maxsize=1)
def wordings() -> frozenset[str]:
    """The messages of all failures in the code, with ¤ for what is filled in."""
    found = {"not enough memory on this machine for this input", "interrupted"}
    for path in Path(postmortem.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and called(node) in FAILURES:
                found.update(shapes(node.args[0]))
    found.add("internal error (¤, fault ¤); please report it. --debug shows where.")
    return frozenset(found)


def called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def shapes(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = (str(part.value) if isinstance(part, ast.Constant) else "¤" for part in node.values)
        yield re.sub("¤+", "¤", "".join(parts))
    elif isinstance(node, ast.IfExp):
        yield from (*shapes(node.body), *shapes(node.orelse))


def says(template: str, wording: str) -> bool:
    """Whether a text is a wording, whose subject another room may put in front, and not just its end."""
    words = len(PLACE.sub("", template))
    close = words >= 0.7 * len(wording.replace("¤", ""))
    return close and any(told.fill(template, one) is not None for one in (wording, f"¤: {wording}"))


def templates(knowledge: Knowledge) -> dict[str, str]:
    return {key: text for key, text in knowledge.texts["en"].items() if key.startswith(told.FAMILY)}


def test_each_text_is_a_wording_of_the_code(knowledge: Knowledge) -> None:
    stale = {key for key, text in templates(knowledge).items() if not any(says(text, one) for one in wordings())}
    assert stale == {"told.pipe", "told.odd_file"}  # made of two parts


def test_each_failure_has_a_text(knowledge: Knowledge) -> None:
    known = templates(knowledge).values()
    assert len(wordings()) > 90
    assert {one for one in wordings() - PARTS - ENGLISH if not any(says(text, one) for text in known)} == set()


@pytest.mark.parametrize(
    ("template", "line", "values"),
    [
        ("{file}: is a folder; give a file name", "x: is a folder; give a file name", {"file": "x"}),
        ("{file}: holds {name}, an archive", "a: holds b: holds c, an archive", {"file": "a: holds b", "name": "c"}),
        ("interrupted", "interrupted", {}),
        ("interrupted", "interrupted: 3", None),
        ("--where: {why}", "--where: x: y", {"why": "x: y"}),
        ("--only {id}: no such fix", "--only : no such fix", {"id": ""}),
        ("{count} inputs; give {limit}", "inputs; give 4", None),
        ("ab{x}ba", "aba", None),
    ],
)
def test_what_stands_in_the_places(template: str, line: str, values: dict[str, str] | None) -> None:
    assert told.fill(template, line) == values


def test_a_name_that_looks_like_words_of_ours_stays_a_name(knowledge: Knowledge) -> None:
    line = "{problem}: is a folder; give a file name: is a folder; give a file name"
    said = told.translated(line, knowledge, "ko")
    assert said == "{problem}: is a folder; give a file name: 폴더입니다. 파일 이름을 주세요"


@pytest.mark.parametrize(
    ("arguments", "lang"),
    [
        (["x", "--lang", "ko"], "ko"),
        (["--lang=ko", "x"], "ko"),
        (["x"], "en"),
        (["--", "--lang", "ko"], "en"),
        (["--lang"], "en"),
    ],
)
def test_the_language_is_the_command_lines(arguments: list[str], lang: str) -> None:
    assert told.asked(arguments) == lang


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["{}/none.log"], 3, "파일이나 폴더 없음"),
        (["{}"], 3, "log.txt가 없습니다"),
        (["{}/odd.txt"], 3, "학습 프로그램이 출력하는 줄이 하나도 없습니다"),
        (["{}/odd.txt", "--gpu", "nan"], 2, "그래픽 카드"),
        (["{}/empty.txt"], 3, "비어 있습니다"),
    ],
)
def test_a_failure_in_korean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, says: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    place = folder if arguments == ["{}"] else tmp_path
    (tmp_path / "odd.txt").write_text("nothing of a training\n" * 9, encoding="utf-8")
    (tmp_path / "empty.txt").write_bytes(b"")
    given = [word.replace("{}", str(place)) for word in arguments]
    assert run(["analyze", *given, "--lang", "ko"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err and len(err.splitlines()) == 1
