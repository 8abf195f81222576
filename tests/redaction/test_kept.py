"""What the diagnosis needs is never lost: every fixture's report, redacted, still says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postmortem.cli import inputs
from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, json_
from postmortem.report.redact import Redactor, settings_of

FIXTURES = sorted(path for path in (Path(__file__).parents[2] / "fixtures").iterdir() if path.is_dir())
LABEL = re.compile(r"<[a-z]+-\d+>")
PRIVATE = re.compile(
    r"datasets\[\d+\]\.(?:folder_path|control_path\w*|inpaint_path|mask_path|unconditional_path|clip_image_path)"
    r"|sample\.(?:prompts|samples)(?:\[\d+\]\.ctrl_img\w*)?|model\.(?:name_or_path|\w+_path|refiner_name_or_path)"
)
"""Settings whose value may be hidden; those of all others must stand as they are."""
SAME = (
    *(
        "memory",
        "oom_events",
        "ledger",
        "forecast",
        "forecast_missing",
        "ladder",
        "card_needed_gib",
        "suspects",
        "skips",
    ),
    *("pace", "capture", "regressions", "lang", "tool", "schema_version", "remedies", "will_not_help"),
)
"""Parts of a report that hold nothing private."""


def numbers(text: str) -> list[str]:
    """The numbers in a text, those of labels left out."""
    return re.findall(r"\d+(?:\.\d+)?", LABEL.sub("", text))


@pytest.fixture(scope="module", params=FIXTURES, ids=lambda path: path.name)
def pair(request: pytest.FixtureRequest, knowledge: Knowledge) -> tuple[dict[str, Any], dict[str, Any]]:
    """A fixture's report, and the same redacted, as read from JSON."""
    folder = request.param
    analysis = inputs.analysed(inputs.open_input(str(folder)), str(folder), None, knowledge)
    report = build(analysis, knowledge)
    redactor = Redactor(knowledge)
    redactor.learn(report, settings_of(analysis))
    hidden = redactor.document(report)
    return msgspec.json.decode(json_.render(report)), msgspec.json.decode(json_.render(hidden))


def test_the_verdict_is_the_same(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    plain, hidden = pair
    for part in SAME:
        assert hidden[part] == plain[part]
    assert {**hidden["run"], "job_name": None, "safe_checkpoint": None} == {
        **plain["run"],
        "job_name": None,
        "safe_checkpoint": None,
    }
    for key in ("kind", "resource", "class", "phase", "step", "signature", "confidence"):
        assert hidden["failure"][key] == plain["failure"][key]
    # a headline has values of the log in it, but no private one
    assert hidden["failure"]["headline"] == plain["failure"]["headline"]
    assert [item["id"] for item in hidden["failure"]["factors"]] == [item["id"] for item in plain["failure"]["factors"]]


def test_the_settings_are_the_same(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    plain, hidden = pair
    assert list(hidden["config"]["values"]) == list(plain["config"]["values"])
    for path, item in plain["config"]["values"].items():
        if not PRIVATE.fullmatch(path):
            assert hidden["config"]["values"][path]["value"] == item["value"], path
    base = plain["config"]["values"].get("model.name_or_path")
    if base is not None and "/" in str(base["value"]) and not str(base["value"]).startswith(("/", ".")):
        assert hidden["config"]["values"]["model.name_or_path"]["value"] == base["value"]
    for one, other in zip(plain["settings"], hidden["settings"], strict=True):
        assert PRIVATE.fullmatch(one["path"]) or one["value"] == other["value"]


def test_buckets_lines_and_figures_are_the_same(pair: tuple[dict[str, Any], dict[str, Any]]) -> None:
    plain, hidden = pair
    assert [{**item, "dataset": ""} for item in hidden["buckets"]] == [
        {**item, "dataset": ""} for item in plain["buckets"]
    ]
    for one, other in zip(plain["failure"]["evidence"], hidden["failure"]["evidence"], strict=True):
        assert (one["line"], one["what"], one["says"]) == (other["line"], other["what"], other["says"])
        if re.search(r"memory|alloc|step|batch", one["text"], re.IGNORECASE) and "/" not in one["text"]:
            assert [n for n in numbers(one["text"]) if n not in numbers(other["text"])] == []
    for one, other in zip(plain["timeline"], hidden["timeline"], strict=True):
        assert {**one, "text": ""} == {**other, "text": ""}
    assert [item["id"] for item in plain["warnings"]] == [item["id"] for item in hidden["warnings"]]


def test_the_knowledge_base_s_own_lines_keep_what_they_say(knowledge: Knowledge) -> None:
    """Wordings of memory errors and status lines: what they say of memory, phase and step is no secret."""
    redactor = Redactor(knowledge)
    sizes = re.compile(r"\d+(?:\.\d+)? (?:[KMG]i?B|bytes)|\bstep \d+|\d+/\d+|exit code \d+")
    for pattern in knowledge.patterns:
        if pattern.role not in ("oom", "skip", "abort", "host_oom", "kill", "exit"):
            continue
        for example in pattern.examples.match:
            shown = redactor.text(example)
            assert sizes.findall(shown) == sizes.findall(example)
            if not re.search(r"[\\/@]|\d{12}|\b[\w-]+\[\d+\]:|containerID=", example):
                assert shown == example, pattern.id
