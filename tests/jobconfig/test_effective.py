"""Which settings were in force, and who says so."""

from __future__ import annotations

import json

import pytest

from postmortem.jobconfig import ConfigText, each, effective
from postmortem.jobconfig.parse import ConfigProblem, parse
from postmortem.knowledge.schema import Knowledge
from postmortem.text import LogText

YAML = """job: extension
config:
  name: mug_v1
  process:
    - type: sd_trainer
      train:
        batch_size: 2
        gradient_accumulation_steps: 4
      datasets:
        - folder_path: /data/a
          resolution: [512, 1024]
          batch_size: 1
        - folder_path: /data/b
      model:
        arch: "zimage:turbo"
        quantize: true
        qtype: "uint3|ostris/x.safetensors"
        auto_memory: true
"""


def config_of(text: str, knowledge: Knowledge, name: str = "config.yaml") -> dict[str, object]:
    return {path: value.value for path, value in effective(None, [ConfigText(name, text)], knowledge).values.items()}


def test_defaults_are_ai_toolkits_own(knowledge: Knowledge) -> None:
    values = config_of(YAML, knowledge)
    assert values["train.gradient_checkpointing"] is True
    assert values["train.dtype"] == "fp32"
    assert values["datasets[1].resolution"] in (512, [512])
    assert values["sample.width"] == 512
    assert values["datasets[0].num_workers"] == 2
    assert values["model.low_vram"] is False


def test_what_follows_another_setting(knowledge: Knowledge) -> None:
    values = config_of(YAML, knowledge)
    assert values["model.quantize_te"] is True
    assert values["model.layer_offloading"] is True
    assert values["model.arch"] == "zimage"


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


@pytest.mark.parametrize(
    "process",
    [
        {"train": [], "datasets": {}, "model": 5, "sample": None},
        {"train": {"batch_size": "x", "steps": "1e999", "gradient_checkpointing": "no"}},
        {"datasets": [None, 3, {"resolution": {"a": 1}}, {"resolution": [True, "512", 10**30]}]},
        {"train": {"batch_size": -5, "ema_config": []}, "sample": {"samples": [1, {"width": []}]}},
        {"model": {"arch": ["flux"], "qtype": {"a": 1}, "quantize": "false"}},
    ],
)
def test_wrong_types_never_break_it(knowledge: Knowledge, process: dict[str, object]) -> None:
    effective(None, [ConfigText("c", json.dumps({"config": {"process": [process]}}))], knowledge)


@pytest.mark.parametrize(("given", "taken"), [('"false"', True), ('"no"', True), ('""', False), ("no", False)])
def test_a_quoted_flag_is_a_text_and_any_text_is_true(knowledge: Knowledge, given: str, taken: bool) -> None:
    text = YAML.replace("batch_size: 2", f"gradient_checkpointing: {given}", 1)
    assert text != YAML
    assert config_of(text, knowledge)["train.gradient_checkpointing"] is taken


def test_numbers_that_mean_nothing_stay_text(knowledge: Knowledge) -> None:
    for number in ("1e400", "-.inf", ".nan", "9" * 30, "9" * 5000, '"inf"', '"1e400"', "1:" * 300 + "1"):
        text = YAML.replace("batch_size: 2", f"batch_size: {number}")
        assert isinstance(config_of(text, knowledge)["train.batch_size"], LogText), number


def test_dates_that_no_calendar_has_are_one_warning(knowledge: Knowledge) -> None:
    text = YAML.replace("batch_size: 2", "batch_size: 2001-99-99")
    assert [notice.id for notice in effective(None, [ConfigText("c.yaml", text)], knowledge).warnings] == [
        "config_damaged"
    ]


def test_duplicate_keys_are_told_a_few_times_only(knowledge: Knowledge) -> None:
    text = YAML + "      x: 1\n" * 5000
    warnings = effective(None, [ConfigText("c.yaml", text)], knowledge).warnings
    assert 0 < len(warnings) <= 20


@pytest.mark.parametrize("depth", [61, 100_000])
def test_json_nested_too_deep(depth: int) -> None:
    with pytest.raises(ConfigProblem, match="nested deeper"):
        parse('{"a":' * depth + "1" + "}" * depth)


def test_a_flag_with_a_strange_name_is_no_setting(knowledge: Knowledge) -> None:
    text = YAML + '        "is_`x`|<b>": true\n        is_flux: true\n'
    flags = [path for path in config_of(text, knowledge) if path.startswith("model.is_")]
    assert "model.is_flux" in flags
    assert all(path.replace(".", "").replace("_", "").isalnum() for path in flags)


def test_every_process_has_its_own_settings_and_lines(knowledge: Knowledge) -> None:
    text = "config:\n  name: m\n  process:\n  - train: {batch_size: 2}\n  - train:\n      batch_size: 3\n"
    found = each(ConfigText("c.yaml", text), knowledge)
    assert [(one.values["train.batch_size"].value, one.values["train.batch_size"].line) for one in found] == [
        (2, 4),
        (3, 6),
    ]
    assert [one.job_name for one in found] == [LogText("m")] * 2


def test_a_huge_number_in_the_place_of_a_text_is_text(knowledge: Knowledge) -> None:
    values = config_of("train: {dtype: 1.0e+300}\nmodel: {qtype: 1.0e+300}\n", knowledge)
    assert (values["train.dtype"], values["model.qtype"]) == ("1e+300", "1e+300")
