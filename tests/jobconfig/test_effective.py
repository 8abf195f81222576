"""Which settings were in force, and who says so."""

from __future__ import annotations

from postmortem.jobconfig import ConfigText, each, effective
from postmortem.knowledge.schema import Knowledge
from postmortem.text import LogText
from tests.jobconfig.job import YAML


def test_lines_and_sources(knowledge: Knowledge) -> None:
    config = effective(None, [ConfigText("config.yaml", YAML)], knowledge)
    assert config.sources == ("config.yaml",)
    assert config.values["train.batch_size"].line == 7
    assert config.values["datasets[0].resolution"].line == 11
    assert config.values["train.gradient_checkpointing"].source == "default"
    assert config.job_name is not None
    assert config.job_name.reveal() == "mug_v1"


def test_the_first_source_wins_and_differences_are_said(knowledge: Knowledge) -> None:
    other = YAML.replace("batch_size: 2", "batch_size: 8")
    config = effective(None, [ConfigText("given.yaml", YAML), ConfigText("config.yaml", other)], knowledge)
    assert config.get("train.batch_size") == 2
    differs = [notice for notice in config.warnings if notice.id == "config_differs"]
    assert {notice.values["path"] for notice in differs} >= {"train.batch_size"}
    assert differs[0].values["other"] == 8


def test_dates_that_no_calendar_has_are_one_warning(knowledge: Knowledge) -> None:
    text = YAML.replace("batch_size: 2", "batch_size: 2001-99-99")
    assert [notice.id for notice in effective(None, [ConfigText("c.yaml", text)], knowledge).warnings] == [
        "config_damaged"
    ]


def test_duplicate_keys_are_told_a_few_times_only(knowledge: Knowledge) -> None:
    text = YAML + "      x: 1\n" * 5000
    warnings = effective(None, [ConfigText("c.yaml", text)], knowledge).warnings
    assert 0 < len(warnings) <= 20


def test_every_process_has_its_own_settings_and_lines(knowledge: Knowledge) -> None:
    text = "config:\n  name: m\n  process:\n  - train: {batch_size: 2}\n  - train:\n      batch_size: 3\n"
    found = each(ConfigText("c.yaml", text), knowledge)
    assert [(one.values["train.batch_size"].value, one.values["train.batch_size"].line) for one in found] == [
        (2, 4),
        (3, 6),
    ]
    assert [one.job_name for one in found] == [LogText("m")] * 2
