"""What a person reads: both languages, narrow terminals, names that would act."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.check import json_, terminal
from postmortem.report.texts import Texts
from tests.check.conftest import BASE, checked, stable
from tests.simulate import config

JOBS: list[dict[str, Any]] = [
    {},
    {"train__gradient_checkpointing": False, "train__batch_size": 4, "sample__sample_every": 3},
    {"model__arch": "flux", "model__low_vram": False, "model__quantize": False},
    {"model__arch": "sd3"},
    {"train__disable_sampling": True},
]


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("gpu", [None, 12.0, 24.0, 141.0])
@pytest.mark.parametrize("changes", JOBS)
def test_no_key_and_no_gap_reaches_the_reader(changes: dict[str, Any], gpu: float | None, lang: str) -> None:
    for log in (None, stable()):
        found = checked(config(**changes), gpu_gib=gpu, log=log, lang=lang)
        shown = terminal.render(found, Texts(BASE, lang))
        assert "check." not in shown.replace("check.yaml", "")
        assert "forecast." not in shown and "{" not in shown and "None" not in shown
        assert all(len(line) <= 80 for line in shown.splitlines())
        if lang == "ko":
            assert "가이드" in shown or "예측" in shown


def test_the_worst_stands_on_the_first_line() -> None:
    found = checked(config(train__gradient_checkpointing=False), gpu_gib=24)
    assert terminal.render(found, Texts(BASE, "en")).startswith("Does not fit: training step needs ")


def test_nothing_of_a_config_acts_on_a_terminal_or_in_json() -> None:
    nasty = config(model__arch="\x1b[31mzimage\u202e[bold]")
    found = checked(nasty, gpu_gib=24)
    for shown in (terminal.render(found, Texts(BASE, "en")), json_.render(found)):
        assert "\x1b" not in shown and "\u202e" not in shown and "\\u001b" not in shown


def test_ascii_only_has_no_block_characters() -> None:
    shown = terminal.render(checked(config(), gpu_gib=24), Texts(BASE, "en"), encoding="ascii")
    assert not set(shown) & set("█░▏")
