"""None of the planted secrets and personal things leaves, in any form that a report has."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from postmortem.cli import common, forms
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis
from postmortem.report import build
from postmortem.report.excerpt import Excerpt, cut
from postmortem.report.redact import Redactor, settings_of
from tests.conftest import Analyse
from tests.redaction import planted

LINES = planted.read("lines.yaml")
VALUES = planted.read("config.yaml")
FORMS = tuple(common.Format)
"""A new form of the report joins by itself."""


def rendered(analysis: Analysis, log: str, knowledge: Knowledge) -> dict[str, str]:
    """The redacted report in every form, and the excerpt as plain text."""
    report = build(analysis, knowledge)
    excerpt = cut(report, lambda name: [log.encode()])
    redactor = Redactor(knowledge)
    redactor.learn(report, settings_of(analysis))
    redactor.learn(excerpt)
    hidden, shown = redactor.document(report), redactor.excerpt(excerpt)
    found = {form.value: forms.rendered(hidden, shown, knowledge, form, to_file=True) for form in FORMS}
    return {**found, "excerpt": plain(shown)}


def plain(excerpt: Excerpt) -> str:
    """An excerpt's characters."""
    return "\n".join(line.text.reveal() for passage in excerpt.passages for line in passage.lines)


def left(item: dict[str, Any], shown: dict[str, str]) -> list[tuple[str, str]]:
    """What should be gone and is not: (form, thing)."""
    return [
        (form, thing) for form, text in shown.items() for thing in item["gone"] if thing.casefold() in text.casefold()
    ]


def test_there_are_enough() -> None:
    assert len(LINES) + sum(len(item["lines"]) + 1 for item in VALUES) >= 200
    assert {item["class"] for item in LINES} >= {"home", "host", "token", "prompt", "trigger", "dataset", "repo", "url"}


@pytest.mark.parametrize("item", LINES, ids=lambda item: f"{item['class']}-{LINES.index(item)}")
def test_a_line_beside_the_evidence(item: dict[str, Any], run: Analyse, knowledge: Knowledge) -> None:
    log = planted.log("before", item["line"], "after")
    shown = rendered(run(log), log, knowledge)
    assert not left(item, shown)
    assert "after" in shown["excerpt"], "the line was not in the excerpt: this proves nothing"
    for kept in item["stays"]:
        assert str(kept).casefold() in shown["excerpt"].casefold()


@pytest.mark.parametrize("item", LINES, ids=lambda item: f"{item['class']}-{LINES.index(item)}")
def test_a_line_as_the_error_itself(item: dict[str, Any], run: Analyse, knowledge: Knowledge) -> None:
    log = planted.log() + f"Traceback (most recent call last):\nRuntimeError: {item['line']}\n"
    log = log.replace(planted.OOM, f"Error running job: {item['line']}\n")
    assert not left(item, rendered(run(log), log, knowledge))


@cache
def _planted(index: int) -> tuple[str, str | None]:
    item = VALUES[index]
    whole = planted.job(item["path"], item["value"])
    name = str(whole["config"]["name"])
    log = planted.log(*item["lines"], settings=whole["config"]["process"][0], name=name)
    return log, planted.text(whole)


@pytest.mark.parametrize("beside", [True, False], ids=["file", "dump"])
@pytest.mark.parametrize("index", range(len(VALUES)), ids=lambda index: f"{VALUES[index]['class']}-{index}")
def test_a_value_of_the_config(index: int, beside: bool, run: Analyse, knowledge: Knowledge) -> None:
    item = VALUES[index]
    if item["path"].startswith("meta.") and not beside:
        pytest.skip("a dump has no meta")
    log, file = _planted(index)
    shown = rendered(run(log, file if beside else None), log, knowledge)
    assert not left(item, shown)


@pytest.mark.parametrize("item", VALUES, ids=lambda item: f"{item['class']}-{VALUES.index(item)}")
def test_a_config_file_as_text(item: dict[str, Any], knowledge: Knowledge) -> None:
    whole = planted.job(item["path"], item["value"])
    redactor = Redactor(knowledge)
    redactor.learn(None, [whole])
    for text in (planted.text(whole), _yaml(whole)):
        assert not left(item, {"config": redactor.text(text)})
        assert (
            '"gradient_checkpointing"' in redactor.text(planted.text(whole))
            or "train" not in whole["config"]["process"][0]
        )


def _yaml(whole: dict[str, Any]) -> str:
    import yaml

    return str(yaml.safe_dump(whole, allow_unicode=True, width=60))
