"""The part of the document on the training's steps, and the defaults beside the settings."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, json_
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.simulate import config, head, training
from tests.test_fixtures import report_on


def test_stretches_are_means_of_twenty_seconds_or_more(lexicon: Lexicon) -> None:
    found = report_on("slow-linux-flux", lexicon).steps
    assert 20 < len(found.stretches) <= 200
    for before, after in pairwise(found.stretches):
        assert after.first_step == before.last_step + 1
    for item in found.stretches:
        steps = item.last_step - item.first_step + 1
        assert steps * (item.step_s + 0.0005) >= 20  # thousandths are shown
    assert found.change is not None and found.change.lasting
    # the bar's counts up to 240 come after 2 to 5 s each, from 241 on after 15 to 35
    assert found.change.from_step == 240
    assert 3 < found.change.before_s < 4
    slow = [item.step_s for item in found.stretches if item.first_step >= 240]
    fast = [item.step_s for item in found.stretches if item.last_step < 240]
    assert min(slow) > 2.5 * max(fast)


def test_a_slow_stretch_that_passed_is_no_lasting_change(lexicon: Lexicon) -> None:
    change = report_on("slow-while-windows-zimage", lexicon).steps.change
    assert change is not None and not change.lasting
    assert change.from_step < change.to_step < 599


def test_previews_and_saves_are_the_runs_own(lexicon: Lexicon) -> None:
    found = report_on("bucket-spike-lived-flux", lexicon).steps
    assert (found.previews, found.saves) == ([22, 44], [22])


def test_a_run_without_training_has_none(lexicon: Lexicon) -> None:
    found = report_on("startup-load-flux-bf16", lexicon).steps
    assert (found.stretches, found.change, found.previews, found.saves) == ([], None, [], [])


@pytest.mark.parametrize(
    ("path", "value", "default"),
    [
        ("train.gradient_checkpointing", False, True),
        ("train.batch_size", 4, 1),
        ("train.optimizer", "adamw8bit", "adamw"),
        ("datasets[0].resolution", [512, 768, 1024], [512]),
        ("model.low_vram", True, False),
        # what follows another key has no default of its own
        ("model.quantize_te", False, True),
    ],
)
def test_settings_stand_beside_what_ai_toolkit_would_take(
    run: Analyse, knowledge: Knowledge, path: str, value: object, default: object
) -> None:
    log = head(config(train__gradient_checkpointing=False, train__batch_size=4, model__quantize_te=False))
    report = json.loads(json_.render(build(run(log), knowledge)))
    item = report["config"]["values"][path]
    assert (item["value"], item["default"]) == (value, default)


def test_a_default_needs_no_default_beside_it(run: Analyse, knowledge: Knowledge) -> None:
    report = json.loads(json_.render(build(run(head(config())), knowledge)))
    values = report["config"]["values"]
    assert "default" not in values["train.unload_text_encoder"]
    assert all(("default" in item) == (item["source"] != "default") for item in values.values())


def test_stretches_are_bounded_however_long_the_log() -> None:
    from postmortem.model import BarSpan, Place
    from postmortem.text import LogText
    from postmortem.timeline.rates import stretches

    place = Place(1, 0)
    spans = [
        BarSpan(
            place=place, last_place=place, description=LogText("x"), total=100_000, first_n=100 * i, last_n=100 * i + 100,
            draws=100, samples=tuple((100 * i + n, 25.0 * (100 * i + n), 1) for n in range(1, 101)),
        )
        for i in range(100)
    ]  # fmt: skip
    found = stretches(spans)
    assert len(found) <= 200
    assert (found[0].first_step, found[-1].last_step) == (0, 9999)
    assert {round(item.step_s, 6) for item in found} == {25.0}


def test_what_the_lists_leave_out_is_said(run: Analyse, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import import_module

    from postmortem.report import build, chronicle

    monkeypatch.setattr(chronicle, "MAX_TIMELINE", 6)
    monkeypatch.setattr(import_module("postmortem.report.build"), "MAX_OOMS", 2)
    report = build(run(head(config()) + training(40, {3, 9, 20, 30})), knowledge)
    told = {one.id: one.text.reveal() for one in report.warnings}
    assert len(report.timeline) == 6
    assert len(report.oom_events) == 2
    assert "4 out-of-memory events" in told["ooms_left_out"]
    assert "timeline_left_out" in told


def test_a_run_that_trained_nothing_is_told_no_checkpoint_is_fine(run: Analyse, knowledge: Knowledge) -> None:
    def says(skipped: set[int], until: int) -> list[str]:
        analysis = run(head(config()) + training(400, skipped, until=until))
        part = json.loads(json_.render(build(analysis, knowledge)))["skips"]
        return [text for text in part["says"] if "dropped" in text]

    assert says({0, 1, 2}, 3) == ["All 3 batches so far were dropped: nothing was trained in this attempt."]
    assert "otherwise fine" in says({4}, 9)[0]
