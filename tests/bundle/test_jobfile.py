"""The settings in a ticket: a job config that can be read again, and that gives away no text."""

from __future__ import annotations

import yaml

from postmortem.bundle import jobfile
from postmortem.knowledge.schema import Knowledge
from postmortem.report import build
from postmortem.report.texts import Texts
from tests.conftest import Analyse
from tests.simulate import training

CONFIG = """
job: extension
config:
  name: "no: #1 [x]"
  process:
  - type: ui_trainer
    trigger_word: zorblax
    training_folder: /home/alice/out
    network: {type: lora, linear: 32}
    train: {steps: 900, batch_size: 2, lr: 0.0002, "on": true}
    model: {arch: flux, quantize: true}
    datasets:
    - {resolution: [512, 768], num_repeats: 3, caption_ext: txt}
    - {resolution: 1024}
"""


def shown(run: Analyse, knowledge: Knowledge, *, texts_too: bool) -> str:
    analysis = run(training(40, {0, 1, 2, 3}), CONFIG)
    report = build(analysis, knowledge)
    return jobfile.render(report.config, analysis.config.others, Texts(knowledge, "en"), texts_too=texts_too)


def test_it_reads_as_the_job_that_ran(run: Analyse, knowledge: Knowledge) -> None:
    text = shown(run, knowledge, texts_too=False)
    process = yaml.safe_load(text)["config"]["process"][0]
    assert process["type"] == "ui_trainer"
    assert process["train"]["batch_size"] == 2 and process["train"]["steps"] == 900
    assert process["train"]["lr"] == 0.0002 and process["train"]["on"] is True
    assert [dataset["resolution"] for dataset in process["datasets"]] == [[512, 768], [1024]]
    assert "batch_size: 2  # config.yaml:10" in text
    assert "# train.gradient_checkpointing: true" in text
    for secret in ("zorblax", "alice"):
        assert secret not in text


def test_texts_are_there_when_nothing_is_hidden(run: Analyse, knowledge: Knowledge) -> None:
    text = shown(run, knowledge, texts_too=True)
    assert yaml.safe_load(text)["config"]["process"][0]["trigger_word"] == "zorblax"


def test_without_a_config_it_says_so(run: Analyse, knowledge: Knowledge) -> None:
    analysis = run(training(40, {0, 1, 2, 3}))
    report = build(analysis, knowledge)
    text = jobfile.render(report.config, analysis.config.others, Texts(knowledge, "en"), texts_too=False)
    assert text.startswith("# No settings are known") and yaml.safe_load(text) is None
