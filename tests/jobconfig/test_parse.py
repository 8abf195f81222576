"""What is a job config, and what is none."""

from __future__ import annotations

import json

import pytest

from postmortem.jobconfig.parse import ConfigProblem, parse
from postmortem.knowledge.schema import Knowledge
from tests.jobconfig.job import config_of


def test_the_ui_writes_json(knowledge: Knowledge) -> None:
    job = {"job": "extension", "config": {"name": "x", "process": [{"train": {"batch_size": 3}}]}}
    assert config_of(json.dumps(job), knowledge)["train.batch_size"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "a: [1",
        "- 1\n- 2\n",
        '{"a": ',
        "config: {process: []}",
        "job: x\n",
        "{" * 100,
        '{"train": ' + "[" * 90 + "]" * 90 + "}",
    ],
)
def test_what_is_no_config_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ConfigProblem):
        parse(text)


@pytest.mark.parametrize("depth", [61, 100_000])
def test_json_nested_too_deep(depth: int) -> None:
    with pytest.raises(ConfigProblem, match="nested deeper"):
        parse('{"a":' * depth + "1" + "}" * depth)
