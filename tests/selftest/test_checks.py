"""What the knowledge base's own test says of an entry that does not hold."""

from __future__ import annotations

import msgspec

from postmortem.knowledge.schema import Knowledge, Pattern
from postmortem.selftest import checks


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


def test_the_knowledge_base_holds(knowledge: Knowledge) -> None:
    assert list(checks._examples(knowledge)) == []
