"""Which expressions can be made slow: judged by how they are built, never by a clock."""

from __future__ import annotations

import re

import pytest

from postmortem.knowledge import safety
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
