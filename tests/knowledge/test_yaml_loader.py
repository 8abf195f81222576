"""What is read of YAML and what is refused; libyaml's parser, and PyYAML's own where it is missing, alike."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.knowledge import yaml_loader
from postmortem.knowledge.yaml_loader import YamlProblem, load
from tests.attacks.configs import ATTACKS

ROOT = Path(__file__).parent.parent.parent
LARGE = 20_000
FILES = sorted([*(ROOT / "patterns").rglob("*.yaml"), *(ROOT / "fixtures").rglob("*.yaml")])
NASTY = {
    attack.name: text
    for attack in ATTACKS
    for name, text in attack.files.items()
    # only PyYAML's own takes half of a surrogate pair
    if name.endswith(".yaml") and isinstance(text, str) and len(text) < LARGE and "\\ud800" not in text
}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates()
VALUES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4)
)

needs_libyaml = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")


def by_both(text: str) -> tuple[Any, Any]:
    """What `load` gives with either parser (as text, in which a NaN is equal to itself); None where it refuses."""
    found: list[str | None] = []
    for base in (yaml.CSafeLoader, yaml.SafeLoader):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(yaml_loader, "_Base", base)
            try:
                found.append(repr(load(text)))
            except YamlProblem:
                found.append(None)
    return found[0], found[1]


@needs_libyaml
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_of_every_file_of_ours(file: Path) -> None:
    fast, plain = by_both(file.read_text("utf-8"))
    assert fast is not None
    assert fast == plain


@needs_libyaml
@pytest.mark.parametrize("name", NASTY)
def test_of_what_nobody_means(name: str) -> None:
    fast, plain = by_both(NASTY[name])
    assert fast == plain


@needs_libyaml
@settings(deadline=None)
@given(VALUES, st.sampled_from([True, False, None]))
def test_of_any_values(value: Any, flow: bool | None) -> None:
    fast, plain = by_both(yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True))
    assert fast == plain


@pytest.mark.parametrize("base", ["SafeLoader", "CSafeLoader"])
@pytest.mark.parametrize("text", ["train: {steps: 3\0}\n", "a: \x07\n", "a: \ufffe\n"])
def test_characters_that_no_text_has_are_a_problem_of_the_text(
    monkeypatch: pytest.MonkeyPatch, base: str, text: str
) -> None:
    monkeypatch.setattr(yaml_loader, "_Base", getattr(yaml, base, yaml.SafeLoader))
    with pytest.raises(YamlProblem):
        load(text)


def test_yaml_bombs_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for index in range(8):
        name, before = chr(ord("b") + index), chr(ord("a") + index)
        bomb += f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    with pytest.raises(YamlProblem):
        load(bomb)
    with pytest.raises(YamlProblem):
        load("[" * 5000 + "]" * 5000)
    with pytest.raises(YamlProblem):
        load("a: &a [*a]\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 500_000, "nest"),
        ("- " * 500_000 + "x", "nest"),
        ("? " * 500_000 + "x", "a key must be a plain word"),
        ("\n".join(" " * depth + "a:" for depth in range(300)), "nested deeper"),
        ("[" + "[]," * 600_000 + "]", "more than 200000 values"),
        ("a: &a [1]\nb: &b [" + "*a," * 190_000 + "]\nc: [*b, *b]", "more than 200000 values"),
        ("a: &a {b: *a}", "within what it names"),
        ("a: *b", "not named before"),
        ("a: &x 1\nb: &x 2", "given twice"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("a: !!python/object/apply:os.system ['id']", "tags"),
        ("a: !x 1", "tags"),
        ("!x {a: 1}", "tags"),
        ("a: 2020-99-99", "not a value"),
    ],
)
def test_what_no_config_holds_is_refused(text: str, says: str) -> None:
    with pytest.raises(YamlProblem, match=says):
        load(text)


def test_refusing_takes_little_memory() -> None:
    import tracemalloc

    deep = "\n".join(" " * depth + "k" * 1000 + ":" for depth in range(38))
    for text in ("[" + "[]," * 600_000 + "]", deep + " [" + "1," * 150_000 + "]"):
        tracemalloc.start()
        with contextlib.suppress(YamlProblem):
            load(text)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60 << 20


def test_aliases_stand_for_what_they_name() -> None:
    text = "a: &x {b: [1, ~], c: &y yes}\nd: *x\ne: [*x, *y]\nf:\n  <<: *x\n  c: 2\n&k g: 1\nh: *k\n"
    value, lines, duplicates = load(text)
    x = {"b": [1, None], "c": True}
    assert value == {"a": x, "d": x, "e": [x, True], "f": {"b": [1, None], "c": 2}, "g": 1, "h": "g"}
    assert value["d"] is not value["a"]
    assert duplicates == []
    assert (lines["d.b[1]"], lines["f.c"], lines["h"]) == (1, 6, 8)


def test_of_merges_the_first_counts_and_what_is_given_counts_before_all() -> None:
    head = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\n"
    for listed, merged in (
        ("{<<: *a, <<: *b}", {"x": 1, "y": 1, "z": 2}),
        ("{<<: [*b, *a]}", {"x": 2, "y": 1, "z": 2}),
        ("{z: 3, <<: *b, x: 4}", {"x": 4, "z": 3}),
    ):
        text = f"{head}c: {listed}\n"
        assert load(text)[0]["c"] == merged
        # PyYAML's own way with `<<` that stands twice has changed: before, the last counted
        if listed.count("<<") == 1 or yaml.__version__ > "6.0.1":
            assert yaml.safe_load(text)["c"] == merged


def test_merges_cost_what_they_hold() -> None:
    def seconds(count: int) -> float:
        text = "a: {" + ", ".join(f"<<: {{k{n}: 1}}" for n in range(count)) + "}\n"
        start = process_time()
        assert len(load(text)[0]["a"]) == count
        return process_time() - start

    # what is copied for each merge would take sixteen times as long
    assert min(seconds(16_000) for _ in range(3)) < 9 * min(seconds(4_000) for _ in range(3))
    once = "".join(f"k{n}: 1, " for n in range(20_000))
    with pytest.raises(YamlProblem, match="more than 200000 values"):
        load("a: " + "{<<: " * 30 + "{" + once + "}" + "}" * 30)


@pytest.mark.parametrize(("text", "line"), [("a: \ud800", 1), ("a: 1\n# \udfff\nb: 2", 2), ("\ud83d: 1", 1)])
def test_half_a_character_is_refused(text: str, line: int) -> None:
    with pytest.raises(YamlProblem, match="half a character") as problem:
        load(text)
    assert problem.value.line == line


def test_yaml_knows_its_lines() -> None:
    value, lines, duplicates = load("train:\n  steps: 5\n  steps: 6\nlist:\n- a: 1\n")
    assert value == {"train": {"steps": 6}, "list": [{"a": 1}]}
    assert lines["train.steps"] == 3
    assert lines["list[0].a"] == 5
    assert duplicates == [("steps", 3)]
