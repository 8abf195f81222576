"""The knowledge base holds as shipped, and what does not hold is found."""

from __future__ import annotations

import msgspec

from postmortem.knowledge.log_schema import Examples, Pattern, Seen
from postmortem.knowledge.schema import Knowledge
from postmortem.selftest import checks, problems


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


def entry(anchors: tuple[str, ...], example: str) -> Pattern:
    given = {
        "id": "acme.oom",
        "role": "oom",
        "anchors": anchors,
        "regex": "ACME gave up",
        "sets": {"kind": "gpu_oom", "resource": "vram"},
        "examples": {"match": [example]},
        "status": "stable",
        "source": "https://example.org",
    }
    return msgspec.convert(given, Pattern)


def told(knowledge: Knowledge, pattern: Pattern) -> list[str]:
    one = msgspec.structs.replace(knowledge, patterns=(*knowledge.patterns, pattern))
    return [line for line in checks._examples(one) if line.startswith("acme.oom")]


def test_an_anchor_stands_in_what_is_matched(knowledge: Knowledge) -> None:
    """One that just happens to be in the example's line is not in the next: that line would never be tried."""
    assert told(knowledge, entry(("ACME gave",), "ACME gave up on GPU 0")) == []
    assert told(knowledge, entry(("on GPU",), "ACME gave up on GPU 0")) == [
        "acme.oom: what it matches in its example holds none of its anchors: ACME gave up on GPU 0"
    ]
    (nothing,) = told(knowledge, entry(("on GPU",), "ACME gave up"))
    assert "no longer claims its example" in nothing
