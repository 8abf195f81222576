"""Expressions that cannot be used are refused when they are read, never met in the middle of a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.cli.main import run
from postmortem.knowledge.load import KnowledgeError, home, load


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
        ("redactions: [{id: a, regex: '', label: x, TAIL}]", "no group named secret"),
        ("redactions: [{id: a, regex: '(?P<secret>x)', label: x, tail: '(', TAIL}]", "tail is not an expression"),
        ("kept_words: [{id: a, words: [x, '('], source: s}]", "word 2 is not an expression"),
        ("exclusions: [{id: a, what: [print], reason: r, unless: ['(']}]", "expression 2 is not an expression"),
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


PACK = """patterns:
- id: my.entry
  role: {role}
  anchors: ['no room']
  anywhere: {anywhere}
  regex: '{regex}'
  sets: {sets}
  source: mine
  examples: {{match: ['no room']}}
"""


def pack(
    tmp_path: Path, regex: str, *, role: str = "oom", anywhere: str = "false", sets: str = "{kind: gpu_oom}"
) -> Path:
    (tmp_path / "mine.yaml").write_text(PACK.format(role=role, regex=regex, anywhere=anywhere, sets=sets), "utf-8")
    return tmp_path


@pytest.mark.parametrize("regex", ["no room (.+)+!", "no room .*x.*y", r"no room \p{L}+"])
def test_a_pack_with_an_expression_that_is_not_linear_is_refused(
    tmp_path: Path, regex: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pack(tmp_path, regex)
    with pytest.raises(KnowledgeError, match=r"mine\.yaml:2: my\.entry: regex can"):
        load(tmp_path, cache=False)
    assert run(["analyze", "nothing.log", "--patterns", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    assert "my.entry" in shown.err


def test_a_pack_that_is_linear_or_repeats_what_is_built_in_is_taken(tmp_path: Path) -> None:
    assert any(entry.id == "my.entry" for entry in load(pack(tmp_path, "no room [^x]*x!"), cache=False).patterns)
    load(home(), cache=False)


@pytest.mark.parametrize(
    ("regex", "sets"),
    [
        ("no room", "{event: frame}"),
        (r"(?P<path>x)(?P<line>\w)(?P<function>y)", "{event: frame}"),
        (r"(?P<path>x)(?P<line>\d)?(?P<function>y)", "{event: frame}"),
        (r"(?P<path>x)(?P<line>\d+)(?P<function>y)", "{event: frame}"),
        ("no room", "{event: code_boxed}"),
        (r"(?P<n>\d)/(?P<total>\d)(?P<elapsed>\d)(?P<postfix>x)", "{event: bar_syntax}"),
        (r"(?P<n>\w)/(?P<total>\d)(?P<elapsed>\d)(?P<postfix>x)(?P<remaining>x)(?P<rate>x)", "{event: bar_syntax}"),
    ],
)
def test_what_the_scan_reads_out_of_a_match_must_be_in_it(tmp_path: Path, regex: str, sets: str) -> None:
    with pytest.raises(KnowledgeError, match="group"):
        load(pack(tmp_path, regex, role="bar", sets=sets), cache=False)


def test_flags_in_the_middle_are_refused(tmp_path: Path) -> None:
    """Expressions become parts of others, where flags for all of it cannot stand."""
    with pytest.raises(KnowledgeError, match="regex is not an expression"):
        load(pack(tmp_path, "(?i)no room", role="prefix"), cache=False)
    with pytest.raises(KnowledgeError, match="regex can"):
        load(pack(tmp_path, "no (?i)room"), cache=False)
