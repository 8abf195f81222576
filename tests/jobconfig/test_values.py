"""The settings of a process as AI Toolkit takes them."""

from __future__ import annotations

import json

import pytest

from postmortem.jobconfig import ConfigText, effective
from postmortem.jobconfig.values import keys_of, place, settings_of
from postmortem.knowledge.schema import Knowledge
from postmortem.text import LogText
from tests.jobconfig.job import YAML, config_of


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


def test_a_flag_with_a_strange_name_is_no_setting(knowledge: Knowledge) -> None:
    text = YAML + '        "is_`x`|<b>": true\n        is_flux: true\n'
    flags = [path for path in config_of(text, knowledge) if path.startswith("model.is_")]
    assert "model.is_flux" in flags
    assert all(path.replace(".", "").replace("_", "").isalnum() for path in flags)


def test_a_huge_number_in_the_place_of_a_text_is_text(knowledge: Knowledge) -> None:
    values = config_of("train: {dtype: 1.0e+300}\nmodel: {qtype: 1.0e+300}\n", knowledge)
    assert (values["train.dtype"], values["model.qtype"]) == ("1e+300", "1e+300")


def test_an_older_name_counts_where_only_that_is_given(knowledge: Knowledge) -> None:
    old = {"network": {"rank": 64}}
    assert settings_of(old, knowledge)["network.linear"].value == 64
    assert place("network.linear", old, knowledge) == "network.rank"
    both = {"network": {"rank": 64, "linear": 16}}
    assert settings_of(both, knowledge)["network.linear"].value == 16
    assert place("network.linear", both, knowledge) == "network.linear"


def test_a_path_is_keys_and_indexes() -> None:
    assert keys_of("datasets[12].resolution[0]") == ("datasets", 12, "resolution", 0)
    assert keys_of("train.steps") == ("train", "steps")
