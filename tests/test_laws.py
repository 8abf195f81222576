"""What must always hold, over generated runs: the report depends on what the log says, on nothing else."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, json_
from tests.conftest import Analyse
from tests.simulate import buckets, config, finished, head, training

SLOW = settings(max_examples=40, deadline=None)
LOGS = st.builds(
    lambda skipped, buffered, off, batch, ends: (
        head(config(train__gradient_checkpointing=not off, train__batch_size=batch))
        + buckets({"512x512": 20, "1024x1024": 5})
        + training(40, skipped, buffered=buffered)
        + (finished() if ends else "")
    ),
    st.sets(st.integers(0, 39), max_size=12),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)


def as_json(run: Analyse, knowledge: Knowledge, log: Any) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(json_.render(build(run(log), knowledge)))
    return report


@SLOW
@given(LOGS, st.lists(st.integers(1, 4000), min_size=1, max_size=8))
def test_chunks_change_nothing(run: Analyse, knowledge: Knowledge, log: str, sizes: list[int]) -> None:
    data = log.encode()
    chunks = []
    at = index = 0
    while at < len(data):
        chunks.append(data[at : at + sizes[index % len(sizes)]])
        at += sizes[index % len(sizes)]
        index += 1
    assert as_json(run, knowledge, chunks) == as_json(run, knowledge, log)


def without_places(report: dict[str, Any]) -> dict[str, Any]:
    report["input"].pop("bytes")
    return report


@SLOW
@given(LOGS)
def test_carriage_returns_before_line_feeds_change_nothing(run: Analyse, knowledge: Knowledge, log: str) -> None:
    windows = log.replace("\n", "\r\n")
    assert without_places(as_json(run, knowledge, windows)) == without_places(as_json(run, knowledge, log))


@SLOW
@given(LOGS)
def test_a_uniform_prefix_changes_no_fact(run: Analyse, knowledge: Knowledge, log: str) -> None:
    stamped = "".join(f"2026-02-03T04:05:06.789Z {line}\n" for line in log.split("\n"))
    plain, other = as_json(run, knowledge, log), as_json(run, knowledge, stamped)
    for part in ("failure", "run", "memory"):
        for key in ("kind", "class", "phase", "step", "outcome", "total_steps", "job_name"):
            assert plain[part].get(key) == other[part].get(key)
    assert [event["step"] for event in plain["oom_events"]] == [event["step"] for event in other["oom_events"]]


@SLOW
@given(
    LOGS,
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\n\r{}%"), max_size=60),
        max_size=5,
    ),
)
def test_unrelated_lines_before_it_change_no_fact(
    run: Analyse, knowledge: Knowledge, log: str, lines: list[str]
) -> None:
    noise = "".join(f"- {line}\n" for line in lines)
    plain, other = as_json(run, knowledge, log), as_json(run, knowledge, noise + log)
    for key in ("kind", "resource", "class", "phase", "step", "signature"):
        assert plain["failure"][key] == other["failure"][key]
    assert [event["step"] for event in plain["oom_events"]] == [event["step"] for event in other["oom_events"]]
    assert [remedy["id"] for remedy in plain["remedies"]] == [remedy["id"] for remedy in other["remedies"]]


@SLOW
@given(LOGS)
def test_the_same_log_gives_the_same_report(run: Analyse, knowledge: Knowledge, log: str) -> None:
    assert json_.render(build(run(log), knowledge)) == json_.render(build(run(log), knowledge))


@SLOW
@given(LOGS)
def test_every_evidence_line_says_what_it_is_cited_for(run: Analyse, knowledge: Knowledge, log: str) -> None:
    lines = log.split("\n")
    for item in as_json(run, knowledge, log)["failure"]["evidence"]:
        cited = lines[item["line"] - 1]
        if item["what"] not in ("bar", "frame", "slowdown"):
            assert item["text"].strip() in cited
