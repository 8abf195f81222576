"""Which expressions can be made slow: judged by how they are built, never by a clock."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postmortem.cli.main import run
from postmortem.knowledge import safety
from postmortem.knowledge.load import KnowledgeError, home, load
from postmortem.knowledge.safety import LONGEST, MOST_STEPS, Unjudged, cost, group
from postmortem.knowledge.schema import Knowledge

SLOW = {
    "a repeat in a repeat": ("(a+)+b", False),
    "with something that may be missing between": (r"(?:a+ ?)+b", False),
    "twice the same": ("(?:a|a)*b", False),
    "one way begins the other": ("(?:a|ab)*c", False),
    "nothing between two repeats": ("a*a*b", False),
    "anything between": (".*x.*y", False),
    "three of them": (r"\w+\w+\w+!", False),
    "an optional sign between": (r"\d+:?\d+!", False),
    "blanks before the end": (r"\s+$", True),
    "from anywhere": ("foo .*bar", True),
    "bounds that multiply": (r".{0,300}a.{0,300}b", True),
    "in what must come": (r"(?=.*a.*b)c", False),
    "in what must not come": (r"(?!.*a.*b)c", True),
    "a class and its part": (r"[\w-]+\w+!", False),
    "in any case": ("(?i)[a-z]*A[a-z]*!", False),
    "behind a place": (r"^.*\bx.*y", False),
    "a choice that overlaps": (r"(?:\w|\dx?)*!", False),
    "lazy all the same": (".*?x.*?y!", False),
    "over a group": (r"(?:ab)*(?:ab)*c", False),
}
FAST = {
    "all there is": (".*", False),
    "to the end": (r"a.*\s*$", False),
    "one repeat": (r"foo \d+ bar", False),
    "a sign between": (r"[^:]*: .*x", False),
    "words and blanks": (r"(?:\w+ )*x", False),
    "escapes in a string": (r'"(?:[^"\\]|\\.)*"', False),
    "a name and its end": (r"Caching latents for (?P<path>\S(?:.*\S)?)\s*$", False),
    "from anywhere, stopped by its own start": (r"foo [^f]*bar", True),
    "small bounds": (r"\d{1,3}(?:\.\d{1,3}){3}", True),
    "choices apart": ("(?:ab|cd)*x", False),
    "a group once more": (r"(\w)\1!", False),
}


@pytest.mark.parametrize("name", SLOW)
def test_what_can_be_made_slow(name: str) -> None:
    source, anywhere = SLOW[name]
    found = cost(source, anywhere=anywhere)
    assert found.steps > MOST_STEPS
    assert not found.safe
    assert safety.problem(source, anywhere=anywhere)


@pytest.mark.parametrize("name", FAST)
def test_what_cannot(name: str) -> None:
    source, anywhere = FAST[name]
    assert cost(source, anywhere=anywhere).safe
    assert safety.problem(source, anywhere=anywhere) is None


@pytest.mark.parametrize("name", [name for name in SLOW if name not in ("bounds that multiply",)])
def test_the_line_that_it_names_is_not_matched_fast_by_chance(name: str) -> None:
    """The hostile line leads into the repeats: what is repeated is taken by them, and the whole is no match."""
    source, anywhere = SLOW[name]
    head, unit, end = cost(source, anywhere=anywhere).hostile[0]
    line = head + unit * 8 + end
    assert unit
    assert re.fullmatch(source, line) is None


def test_a_shorter_line_allows_more() -> None:
    assert cost(".*x.*y", anywhere=False, longest=1000).safe
    assert not cost("(a+)+b", anywhere=False, longest=1000).safe


def test_what_cannot_be_read_is_not_called_safe() -> None:
    for source in (r"\p{L}+", "(", "(?P<n>a)(?P=m)", "a" * 30_000, "(?:" * 5_000 + ")" * 5_000):
        with pytest.raises(Unjudged):
            cost(source, anywhere=False)
        assert safety.problem(source, anywhere=False)


def test_a_name_that_stands_twice_is_read() -> None:
    assert cost(r"(?P<pid>\d+)|x(?P<pid>\d+)", anywhere=False).safe


def test_every_expression_of_the_knowledge_base_is_linear(knowledge: Knowledge) -> None:
    for pattern in knowledge.patterns:
        for name, source, anywhere in safety.uses(pattern):
            told = safety.problem(source, anywhere=anywhere, longest=safety.longest(pattern))
            assert told is None, f"{pattern.id}: {name}: {told}"


def test_groups() -> None:
    digits = "0123456789\u0663"
    one = group(r"(?P<n>\d{1,9})/(?P<m>\d+)?", "n", digits)
    assert one == safety.Group(True, True, 9)
    assert group(r"(?P<n>\d{1,9})/(?P<m>\d+)?", "m", digits) == safety.Group(False, True, LONGEST)
    assert group(r"(?:(?P<n>\w)|x)", "n", digits) == safety.Group(False, False, 1)
    assert group("x", "n", digits) is None


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


BEYOND = {
    *("redact.base64.regex", "redact.hub_cache.regex", "redact.ssh_user.regex", "redact.syslog_host.regex"),
    *("redact.image.regex", "redact.prompt_key.regex", "redact.list_text.regex", "redact.yaml_text.regex"),
    *("redact.dataset_line.regex", "redact.config_file.regex", "redact.path.regex", "redact.quoted_path.regex"),
    *("kept.path_parts.5", "kept.model_files.1"),
}
"""What of ours the bound does not show to be linear, though a pack could not have it. None may come to these."""


def test_what_we_hide_by_keeps_the_bound_of_packs_but_for_these(knowledge: Knowledge) -> None:
    found = set()
    for entry in knowledge.redactions:
        for name in ("regex", "parts", "tail"):
            source = getattr(entry, name)
            if source and safety.problem(source, anywhere=True, longest=safety.LONGEST_SHOWN):
                found.add(f"{entry.id}.{name}")
    for words in knowledge.kept_words:
        for number, source in enumerate(words.words, 1):
            if safety.problem(source, anywhere=False, longest=safety.LONGEST_SHOWN):
                found.add(f"{words.id}.{number}")
    assert found == BEYOND
