"""The knowledge base: valid as shipped, and refusing what is not."""

from __future__ import annotations

import contextlib
from pathlib import Path
from time import process_time

import msgspec
import pytest
import yaml

from postmortem.knowledge import kept, yaml_loader
from postmortem.knowledge import load as loading
from postmortem.knowledge.load import KnowledgeError, load
from postmortem.knowledge.schema import Examples, Knowledge, Seen
from postmortem.selftest import problems


def test_the_shipped_knowledge_holds(knowledge: Knowledge) -> None:
    assert problems(knowledge) == []


def broken(knowledge: Knowledge, **changes: object) -> list[str]:
    """The problems of a knowledge base whose `torch.cuda_oom` entry is changed."""
    patterns = tuple(
        msgspec.structs.replace(item, **changes) if item.id == "torch.cuda_oom" else item for item in knowledge.patterns
    )
    return problems(msgspec.structs.replace(knowledge, patterns=patterns))


def test_an_example_that_stops_matching_is_found(knowledge: Knowledge) -> None:
    assert any("no longer claims" in problem for problem in broken(knowledge, regex="nothing like it"))


def test_missing_examples_and_sources_are_found(knowledge: Knowledge) -> None:
    assert any("no example" in problem for problem in broken(knowledge, examples=Examples(match=())))
    assert any("no source" in problem for problem in broken(knowledge, source=" "))


def test_a_wording_of_the_toolkit_says_when_it_was_seen(knowledge: Knowledge) -> None:
    toolkit = next(item for item in knowledge.patterns if item.id == "toolkit.oom_skip")
    assert toolkit.seen is not None

    def with_seen(seen: Seen | None) -> list[str]:
        changed = msgspec.structs.replace(toolkit, seen=seen)
        patterns = tuple(changed if item is toolkit else item for item in knowledge.patterns)
        return problems(msgspec.structs.replace(knowledge, patterns=patterns))

    assert with_seen(None) == ["toolkit.oom_skip: is AI Toolkit's and has no `seen`"]
    backwards = Seen(toolkit.seen.since, toolkit.seen.since.replace(year=2020))
    assert with_seen(backwards) == ["toolkit.oom_skip: seen until before it was seen from"]


def test_two_entries_that_claim_one_line_are_found(knowledge: Knowledge) -> None:
    twin = next(item for item in knowledge.patterns if item.id == "torch.cuda_oom")
    copy = msgspec.structs.replace(twin, id="torch.twin")
    found = problems(msgspec.structs.replace(knowledge, patterns=(*knowledge.patterns, copy)))
    assert any("claim(s) the same line" in problem for problem in found)


def test_a_missing_text_is_found(knowledge: Knowledge) -> None:
    texts = {lang: dict(entries) for lang, entries in knowledge.texts.items()}
    del texts["ko"]["signature.torch.cuda_oom"]
    found = problems(msgspec.structs.replace(knowledge, texts=texts))
    assert found == ["text/ko: signature.torch.cuda_oom is missing"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("patterns:\n- id: x\n", "missing required field"),
        ("patterns:\n- {id: x, role: oom, regex: y, source: z, examples: {match: [y]}, colour: red}\n", "colour"),
        ("paterns: []\n", "expected a list under"),
        ("patterns: [\n", "pack.yaml:"),
        ("patterns: !!python/object:os.system []\n", "pack.yaml:1"),
        ("a: 1\na: 2\n", "twice"),
    ],
)
def test_a_pack_that_is_not_valid_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pack.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(KnowledgeError, match=says):
        load(tmp_path, cache=False)


def test_yaml_bombs_are_refused() -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for index in range(8):
        name, before = chr(ord("b") + index), chr(ord("a") + index)
        bomb += f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    with pytest.raises(yaml_loader.YamlProblem):
        yaml_loader.load(bomb)
    with pytest.raises(yaml_loader.YamlProblem):
        yaml_loader.load("[" * 5000 + "]" * 5000)
    with pytest.raises(yaml_loader.YamlProblem):
        yaml_loader.load("a: &a [*a]\n")


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
    with pytest.raises(yaml_loader.YamlProblem, match=says):
        yaml_loader.load(text)


def test_refusing_takes_little_memory() -> None:
    import tracemalloc

    deep = "\n".join(" " * depth + "k" * 1000 + ":" for depth in range(38))
    for text in ("[" + "[]," * 600_000 + "]", deep + " [" + "1," * 150_000 + "]"):
        tracemalloc.start()
        with contextlib.suppress(yaml_loader.YamlProblem):
            yaml_loader.load(text)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60 << 20


def test_aliases_stand_for_what_they_name() -> None:
    text = "a: &x {b: [1, ~], c: &y yes}\nd: *x\ne: [*x, *y]\nf:\n  <<: *x\n  c: 2\n&k g: 1\nh: *k\n"
    value, lines, duplicates = yaml_loader.load(text)
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
        assert yaml_loader.load(text)[0]["c"] == merged
        # PyYAML's own way with `<<` that stands twice has changed: before, the last counted
        if listed.count("<<") == 1 or yaml.__version__ > "6.0.1":
            assert yaml.safe_load(text)["c"] == merged


def test_merges_cost_what_they_hold() -> None:
    def seconds(count: int) -> float:
        text = "a: {" + ", ".join(f"<<: {{k{n}: 1}}" for n in range(count)) + "}\n"
        start = process_time()
        assert len(yaml_loader.load(text)[0]["a"]) == count
        return process_time() - start

    # what is copied for each merge would take sixteen times as long
    assert min(seconds(16_000) for _ in range(3)) < 9 * min(seconds(4_000) for _ in range(3))
    once = "".join(f"k{n}: 1, " for n in range(20_000))
    with pytest.raises(yaml_loader.YamlProblem, match="more than 200000 values"):
        yaml_loader.load("a: " + "{<<: " * 30 + "{" + once + "}" + "}" * 30)


@pytest.mark.parametrize(("text", "line"), [("a: \ud800", 1), ("a: 1\n# \udfff\nb: 2", 2), ("\ud83d: 1", 1)])
def test_half_a_character_is_refused(text: str, line: int) -> None:
    with pytest.raises(yaml_loader.YamlProblem, match="half a character") as problem:
        yaml_loader.load(text)
    assert problem.value.line == line


def test_yaml_knows_its_lines() -> None:
    value, lines, duplicates = yaml_loader.load("train:\n  steps: 5\n  steps: 6\nlist:\n- a: 1\n")
    assert value == {"train": {"steps": 6}, "list": [{"a": 1}]}
    assert lines["train.steps"] == 3
    assert lines["list[0].a"] == 5
    assert duplicates == [("steps", 3)]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("patterns: [{id: 'a b', role: oom, regex: x, TAIL}]", "an id may hold"),
        ("patterns: [{id: a, role: oom, regex: '(', TAIL}]", "not an expression"),
        ("patterns: [{id: a, role: oom, regex: x, fields: {free: 'y'}, TAIL}]", "no group named value"),
        ("patterns: [{id: a, role: bar, regex: x, sets: {event: bar_syntax}, TAIL}]", "needs the groups"),
        ("patterns: [{id: a, role: oom, regex: '[[a-z]--[aeiou]]', TAIL}]", "possible nested set"),
        ("patterns: [{id: a, role: oom, regex: x, anchors: [''], TAIL}]", "an empty one is in every line"),
        ("patterns: [{id: a, role: oom, regex: x, sets: {kind: oom}, TAIL}]", "Invalid enum value 'oom'"),
        ("patterns: [{id: a, role: oom, regex: x, sets: {resource: gpu}, TAIL}]", "Invalid enum value 'gpu'"),
        ("redactions: [{id: a, regex: '[', label: x, TAIL}]", "not an expression"),
        ("redactions: [{id: a, regex: 'x', label: x, TAIL}]", "no group named secret"),
    ],
)
def test_a_pack_that_cannot_work_is_refused(tmp_path: Path, entry: str, says: str) -> None:
    content = entry.replace("TAIL", "source: s, examples: {match: [x]}")
    (tmp_path / "pack.yaml").write_text(content + "\n", encoding="utf-8")
    with pytest.raises(KnowledgeError, match=says):
        load(tmp_path, cache=False)


@pytest.mark.parametrize("field", ["anchors: ['⚠\ufe0f gave up']", "anchors: [gave up]\n  regex: '⚠\ufe0f gave up'"])
def test_an_entry_that_names_what_shows_nothing_is_refused(field: str, tmp_path: Path) -> None:
    regex = "" if "regex" in field else "\n  regex: gave up"
    (tmp_path / "mine.yaml").write_text(
        f"patterns:\n- id: acme.oom\n  role: oom\n  source: here\n  examples: {{match: [gave up]}}\n  {field}{regex}\n",
        encoding="utf-8",
    )
    with pytest.raises(KnowledgeError, match=r"acme\.oom: (anchors|regex): a character that shows nothing"):
        load(tmp_path, cache=False)


def test_a_pack_of_too_many_files_or_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, most: int) -> str:
        with monkeypatch.context() as less:
            less.setattr(loading, name, most) if name != "MAX_ENTRIES" else less.setattr(kept, name, most)
            with pytest.raises(KnowledgeError) as raised:
                loading._listed(tmp_path)
        return str(raised.value).removeprefix(f"{tmp_path}: ")

    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("patterns: []\n")
    assert len(loading._listed(tmp_path)) == 4
    assert refused("MAX_FILES", 3) == "more than 3 files or 16000000 bytes; give a folder of patterns"
    assert refused("MAX_TOTAL", 51) == "more than 500 files or 51 bytes; give a folder of patterns"
    assert refused("MAX_ENTRIES", 3) == "more than 3 files and folders; give a folder of patterns"
