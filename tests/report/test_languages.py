"""Languages: complete, equal, none stale; a further one needs files only; the JSON differs in its texts alone."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from postmortem.knowledge.load import home
from postmortem.knowledge.schema import Knowledge
from postmortem.report import json_
from postmortem.selftest.checks import needed_texts
from tests.hostile import whole
from tests.test_fixtures import NAMES

CODE = Path(__file__).parents[2] / "postmortem"
KEY = re.compile(r"[a-z_]+(?:\.[\w.]+)+")

TEXT_CARRYING = {
    "lang": "the language itself",
    "failure.headline": "sentence",
    "failure.evidence[].says": "what a line proves",
    "failure.factors[].text": "sentence",
    "remedies[].title": "sentence",
    "remedies[].why": "sentence",
    "remedies[].cost": "sentence",
    "remedies[].ui": "place in the UI",
    "ladder[].title": "sentence",
    "forecast_missing.text": "sentence",
    "warnings[].text": "sentence",
    "will_not_help[].name": "name of a fix",
    "will_not_help[].why": "sentence",
    "skips.says[]": "sentence",
    "capture[].text": "sentence",
    "regressions[].what": "sentence",
    "regressions[].do": "sentence",
}
"""All that a language may change in the JSON report, by path."""


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The paths at which two documents differ, without the numbers of lists."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        for key in one:
            yield from differences(one[key], other[key], f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other):
            yield from differences(left, right, f"{path}[]")
    elif one != other or type(one) is not type(other):
        yield path


@pytest.mark.parametrize("name", NAMES)
def test_the_json_differs_in_its_texts_alone(name: str) -> None:
    english, korean = (json.loads(json_.render(whole(name, lang))) for lang in ("en", "ko"))
    assert set(differences(english, korean)) <= set(TEXT_CARRYING)


def test_every_text_of_the_list_is_one() -> None:
    seen = {
        path
        for name in NAMES
        for path in differences(*(json.loads(json_.render(whole(name, lang))) for lang in ("en", "ko")))
    }
    assert seen == set(TEXT_CARRYING)


@lru_cache(maxsize=1)
def templates() -> tuple[set[str], list[re.Pattern[str]], set[str]]:
    """Out of the code: whole keys, expressions for keys that are put together, and all words in strings."""
    whole_keys: set[str] = set()
    made: list[re.Pattern[str]] = []
    words: set[str] = set()
    for path in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.update(re.findall(r"\w+", node.value))
                if KEY.fullmatch(node.value):
                    whole_keys.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [str(p.value) if isinstance(p, ast.Constant) else None for p in node.values]
                known_start = parts and parts[0] and re.fullmatch(r"[a-z_]+\.[\w.]*", parts[0])
                if known_start or (parts[:2] == [None, "."] and parts[-1] in (".title", ".explain")):
                    expression = "".join(r"([\w. -]+)" if part is None else re.escape(part) for part in parts)
                    made.append(re.compile(expression))
    for path in CODE.rglob("*.j2"):
        for start, rest in re.findall(r"t\([\"']([\w.]+)[\"']((?: ~ [^),]+)*)", path.read_text(encoding="utf-8")):
            if not rest:
                whole_keys.add(start)
                continue
            pieces = [piece.strip() for piece in rest.split(" ~ ")[1:]]
            shapes = [re.escape(one.strip('"')) if one.startswith('"') else r"([\w. -]+)" for one in pieces]
            made.append(re.compile(re.escape(start) + "".join(shapes)))
    # what the system says of a file is a word that stands nowhere
    words.update(re.sub(r"[^a-z]+", "_", os.strerror(code).lower()) for code in errno.errorcode)
    for path in home().rglob("*.yaml"):
        if path.parent.parent.name != "text":
            words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return whole_keys, made, words


def used(key: str) -> bool:
    """Whether any code asks for the text: by its key, or by one put together of words that code or patterns hold."""
    whole_keys, made, words = templates()
    if key in whole_keys or (key.endswith((".one", ".many")) and used(key.rpartition(".")[0])):
        return True
    family, _, member = key.rpartition(".")
    if family in whole_keys and _known(member, words):
        return True
    for expression in made:
        found = expression.fullmatch(key)
        if found and all(_known(part, words) for group in found.groups() for part in re.findall(r"\w+", group)):
            return True
    return False


def _known(part: str, words: set[str]) -> bool:
    """Whether the word stands somewhere, whole or as the two parts that it is put together of."""
    at = [index for index, character in enumerate(part) if character == "_"]
    return part in words or any(
        {part[: index + 1], part[index + 1 :]} <= words or {part[:index], part[index:]} <= words for index in at
    )


def test_no_text_is_stale(knowledge: Knowledge) -> None:
    needed = set(needed_texts(knowledge))
    # what failures say is found by its wording (tests/cli/test_told.py)
    found = {key for key in knowledge.texts["en"] if key not in needed and not used(key) and key[:5] != "told."}
    code = "".join(path.read_text(encoding="utf-8") for path in CODE.rglob("*.py"))
    texts = knowledge.texts["en"]
    found = {key for key in found if key[:13] != "word.problem." or texts[key].removeprefix("it has ") not in code}
    assert found == set()


def test_the_check_for_stale_texts_can_fail() -> None:
    assert used("section.evidence") and used("warning.config_differs") and used("word.outcome.killed")
    assert not used("section.nobody_asks_for_this")
    assert not used("nothing.at.all")


def _constants(node: ast.AST) -> Iterator[ast.AST]:
    """The constants below `node` that are whole, not parts of a text that is put together."""
    if isinstance(node, ast.JoinedStr):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _constants(child)


def test_every_key_in_the_code_exists(knowledge: Knowledge) -> None:
    """Also those that are chosen before they are asked for (`key = "word.safe.nothing" if …`)."""
    tops = {key.split(".")[0] for key in knowledge.texts["en"]}
    texts = knowledge.texts["en"]
    asked: set[str] = set()
    for path in CODE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args:
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                for value in _constants(node.args[0]) if name in ("texts", "words", "has") else ():
                    if isinstance(value, ast.Constant) and isinstance(value.value, str) and KEY.fullmatch(value.value):
                        asked.add(value.value)
    asked = {key for key in asked if key.split(".")[0] in tops}
    assert len(asked) > 60
    assert sorted(key for key in asked if key not in texts) == []


def test_both_languages_have_the_same_texts_and_placeholders(knowledge: Knowledge) -> None:
    english, korean = knowledge.texts["en"], knowledge.texts["ko"]
    assert set(english) == set(korean)
    places = re.compile(r"\{([\w.]+)\}")
    assert [k for k in english if set(places.findall(english[k])) != set(places.findall(korean[k]))] == []


def test_each_language_is_written_in_its_own_letters(knowledge: Knowledge) -> None:
    """A sentence that was copied and not translated has no Hangul."""
    hangul = re.compile("[가-힣]")
    assert [key for key, text in knowledge.texts["en"].items() if hangul.search(text)] == []
    copied = [
        key
        for key, text in knowledge.texts["ko"].items()
        if not hangul.search(text) and len(re.findall(r"[a-z]{3,}", re.sub(r"\{[\w.]+\}", "", text))) > 3
    ]
    assert [key for key in copied if not key.endswith((".ui", ".sampling_switches"))] == []  # names in the UI
