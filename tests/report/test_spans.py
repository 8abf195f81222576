"""The byte spans of evidence, events and timeline: what is cited stands there, in every fixture."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postmortem.intake import open_path
from postmortem.knowledge.fingerprint import fingerprint
from postmortem.knowledge.schema import Knowledge
from postmortem.report import build
from postmortem.scan import Lexicon
from postmortem.text import printable
from tests.conftest import Analyse
from tests.test_fixtures import FIXTURES, NAMES, report_on


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", printable(text))


def logs_of(name: str) -> dict[str, bytes]:
    folder = FIXTURES / name
    whole = (folder / "logs").is_dir() or (folder / "samples").is_dir()
    opened = open_path(folder if whole else folder / "log.txt")
    return {log.name: b"".join(log.chunks()) for log in opened.logs}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_cited_stands_at_its_span(name: str, lexicon: Lexicon) -> None:
    report = report_on(name, lexicon)
    logs = logs_of(name)
    for item in report.failure.evidence:
        log = logs.get(item.source.reveal())
        if log is None:
            assert (item.start, item.end) == (None, None)
            continue
        if item.start is None or item.end is None:
            assert item.pattern is None
            continue
        there = log[item.start : item.end].decode("utf-8", "replace")
        assert log.count(b"\n", 0, item.start) + 1 == item.line
        assert "\n" not in there
        text = item.text.reveal()
        if item.pattern is not None:
            # an allocator's message that goes on in the next line starts in this one
            assert squeezed(text) in squeezed(there) or squeezed(text).startswith(squeezed(there)[-60:])
        elif item.what == "frame":
            assert text.split(":", 1)[0] in there
        else:
            counts = re.search(r": (\d+/\d+)", text)
            assert counts[1] in there if counts is not None else text in there
    for event in report.oom_events:
        assert (event.start is None) == (event.end is None)


@pytest.mark.parametrize("name", NAMES)
def test_cited_entries_are_those_of_the_knowledge_base(name: str, lexicon: Lexicon, knowledge: Knowledge) -> None:
    known = {pattern.id: pattern for pattern in knowledge.patterns}
    for item in report_on(name, lexicon).failure.evidence:
        if item.pattern is None:
            assert item.pattern_version is None
        else:
            assert item.pattern_version == fingerprint(known[item.pattern])


def test_an_entry_that_claims_something_else_has_another_version(knowledge: Knowledge) -> None:
    import msgspec

    one = next(pattern for pattern in knowledge.patterns if pattern.role == "oom")
    assert fingerprint(msgspec.structs.replace(one, source="elsewhere", status="legacy")) == fingerprint(one)
    assert fingerprint(msgspec.structs.replace(one, regex=one.regex + " ")) != fingerprint(one)
    versions = {fingerprint(pattern) for pattern in knowledge.patterns}
    assert len(versions) == len(knowledge.patterns)


def test_spans_count_bytes_of_the_text_as_utf8(run: Analyse, knowledge: Knowledge, tmp_path: Path) -> None:
    log = (FIXTURES / "early-step-first-oom-dies-2025" / "log.txt").read_text(encoding="utf-8")
    korean = "한국어 머리말\r\n" + log
    plain = build(run(korean), knowledge)
    other = tmp_path / "log.txt"
    other.write_bytes(b"\xff\xfe" + korean.encode("utf-16-le"))
    (opened,) = open_path(other).logs
    wide = build(run(opened.chunks()), knowledge)
    assert [(e.start, e.end) for e in wide.failure.evidence] == [(e.start, e.end) for e in plain.failure.evidence]
    one = next(item for item in plain.failure.evidence if item.pattern)
    assert one.start is not None and one.end is not None
    assert squeezed(one.text.reveal()) in squeezed(korean.encode()[one.start : one.end].decode())


def test_spans_of_a_broken_text_cover_the_whole_line(run: Analyse, knowledge: Knowledge) -> None:
    log = (FIXTURES / "early-step-first-oom-dies-2025" / "log.txt").read_text(encoding="utf-8").replace("\r", "\n")
    lines = [line[at : at + 80] for line in log.split("\n") for at in range(0, max(1, len(line)), 80)]
    broken = "\n".join(lines).encode()
    report = build(run(broken), knowledge)
    assert any(item.id == "unwrapped" for item in report.warnings)
    for item in report.failure.evidence:
        if item.pattern is not None:
            there = broken[item.start : item.end].decode()
            assert squeezed(item.text.reveal()) in squeezed(there)
