"""Which known regressions a failure fits, by its facts and by the version that its log can be of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.diagnosis.dating import NEWEST, bounds, release
from postmortem.diagnosis.regressions import fitting, regression_facts
from postmortem.knowledge.history import History
from postmortem.knowledge.schema import Knowledge, Regression
from postmortem.model import Dated

PINNED = {"failure.kind": "host_oom", "failure.resource": "pinned_host", "run.trainer": "ai-toolkit"}
OFFLOAD = {"model.layer_offloading": True, "model.quantize": True}
CONV = {"failure.kind": "gpu_oom", "failure.phase": "cache_latents", "failure.inner_call": "return F.conv3d("}


def between_days(history: History, start: str, end: str | None) -> Dated:
    """A dating of whole days."""
    return Dated(start, end, (), span=bounds(start, None, end, None, history))


def standing(
    knowledge: Knowledge, history: History, facts: dict[str, Any], dated: Dated | None, torch: Dated | None = None
) -> dict[str, bool]:
    return {item.id: item.inside for item in fitting(facts, dated, torch, knowledge, history)}


@pytest.mark.parametrize(
    ("phase", "start", "end", "want"),
    [
        ("quantize", "2025-11-20", "2026-05-01", {"quantize_pins_blocks": True}),
        ("quantize", "2025-08-16", "2026-05-01", {"quantize_pins_blocks": False}),
        ("quantize", "2026-07-20", None, {"offload_pins_inner": True}),
        ("training_step", "2025-10-10", "2025-11-01", {"offload_pin_fails": True}),
        ("training_step", "2025-12-10", "2026-05-01", {}),
        ("training_step", "2026-06-10", "2026-07-01", {"offload_pins_inner": True}),
    ],
)
def test_page_locked_memory(
    knowledge: Knowledge, history: History, phase: str, start: str, end: str | None, want: dict[str, bool]
) -> None:
    facts = {**PINNED, **OFFLOAD, "failure.phase": phase}
    assert standing(knowledge, history, facts, between_days(history, start, end)) == want


def test_an_undated_log_is_of_any_version(knowledge: Knowledge, history: History) -> None:
    facts = {**PINNED, "failure.phase": "quantize"}
    assert standing(knowledge, history, facts, None) == {"quantize_pins_blocks": False}


def test_a_torch_release_that_cannot_be_is_left_out(knowledge: Knowledge, history: History) -> None:
    def of(start: str, end: str) -> Dated:
        return Dated(start, end, (), span=(release(start), release(end)))

    assert standing(knowledge, history, CONV, None, of("2.9", "2.10")) == {"conv3d_workspace": True}
    assert standing(knowledge, history, CONV, None, of("2.5", "2.14")) == {"conv3d_workspace": False}
    assert standing(knowledge, history, CONV, None, of("2.9", "2.11")) == {"conv3d_workspace": False}
    assert standing(knowledge, history, CONV, None, of("2.8", "2.10")) == {"conv3d_workspace": False}
    assert standing(knowledge, history, CONV, None, of("2.8", "2.9")) == {}
    assert standing(knowledge, history, CONV, None, of("2.10", "2.14")) == {}
    # the toolkit's date says nothing of torch
    assert standing(knowledge, history, CONV, of("2.10", "2.14")) == {"conv3d_workspace": False}
    other = {**CONV, "failure.inner_call": "return F.linear("}
    assert standing(knowledge, history, other, None, None) == {}


def test_a_decode_in_one_piece_needs_a_decode(knowledge: Knowledge, history: History) -> None:
    """A preview that fails before its picture is decoded is not what the tiles mended."""
    facts = {
        "failure.kind": "gpu_oom",
        "failure.class": "sampling",
        "run.trainer": "ai-toolkit",
        "run.arch": "qwen_image",
        "model.low_vram": True,
    }
    dated = between_days(history, "2026-01-15", "2026-02-15")
    decoding = {**facts, "failure.functions": "run sample generate_images __call__ decode forward"}
    assert standing(knowledge, history, decoding, dated) == {"preview_untiled": True}
    denoising = {**facts, "failure.functions": "run sample generate_images __call__ forward"}
    assert standing(knowledge, history, denoising, dated) == {}
    assert standing(knowledge, history, facts, dated) == {}


def test_the_sure_one_comes_first(knowledge: Knowledge, history: History) -> None:
    facts = {**PINNED, **OFFLOAD, "failure.phase": "quantize"}
    found = fitting(facts, between_days(history, "2026-06-20", "2026-12-01"), None, knowledge, history)
    assert [(item.id, item.inside) for item in found] == [("offload_pins_inner", True), ("quantize_pins_blocks", False)]
    assert regression_facts(found)["regression.standing"] == "inside"


@pytest.mark.parametrize("changed", [{"failure.kind": "not_memory"}, {"run.trainer": "kohya"}])
def test_no_regression_for_other_failures_or_trainers(
    knowledge: Knowledge, history: History, changed: dict[str, str]
) -> None:
    assert standing(knowledge, history, {**PINNED, "failure.phase": "quantize", **changed}, None) == {}


def test_what_is_told_of_a_regression(knowledge: Knowledge, history: History) -> None:
    entry = next(item for item in knowledge.regressions if item.id == "conv3d_workspace")
    (found,) = fitting({**CONV, "run.trainer": None}, None, None, knowledge, history)
    for name in ("id", "program", "from_", "until", "from_commit", "until_commit", "source", "url"):
        assert getattr(found, name) == getattr(entry, name)
    facts = {
        "standing": "possible",
        "id": entry.id,
        "program": "torch",
        "what": entry.id,
        "when": entry.id,
        "do": entry.id,
    }
    assert regression_facts((found,)) == {f"regression.{key}": value for key, value in facts.items()}
    assert regression_facts(()) == {}


FITS = {"failure.kind": "gpu_oom", "run.trainer": "ai-toolkit", "a": 1}


def made(program: Any, **between: str | None) -> Regression:
    entry = Regression("r", program, (("a = 2",), ("a = 1",)), "mine", "https://example.org/r")
    return msgspec.structs.replace(entry, **between)


@pytest.mark.parametrize(
    ("between", "dated", "inside"),
    [
        # each end by its date or its commit
        ({"from_": "2025-06-10"}, ("2025-07-01", "2025-08-01"), True),
        ({"from_": "2025-06-10"}, ("2025-05-01", "2025-08-01"), False),
        ({"from_": "2025-06-10"}, ("2025-03-01", "2025-05-01"), None),
        ({"until": "2025-06-10"}, ("2025-03-01", "2025-05-01"), True),
        ({"until": "2025-06-10"}, ("2025-05-01", "2025-08-01"), False),
        ({"until": "2025-06-10"}, ("2025-07-01", "2025-08-01"), None),
        ({"from_commit": "8c1a408"}, ("2026-08-20", None), True),
        ({"from_commit": "8c1a408"}, ("2026-01-01", None), False),
        ({"from_commit": "8c1a408"}, ("2025-03-01", "2025-05-01"), None),
        ({"until_commit": "8c1a408"}, ("2025-03-01", "2025-05-01"), True),
        ({"until_commit": "8c1a408"}, ("2026-01-01", None), False),
        ({"until_commit": "8c1a408"}, ("2026-08-20", None), None),
    ],
)
def test_versions_of_a_regression(
    between: dict[str, str], dated: tuple[str, str | None], inside: bool | None, knowledge: Knowledge, history: History
) -> None:
    known = msgspec.structs.replace(knowledge, regressions=(made("ai-toolkit", **between),))
    found = standing(known, history, FITS, between_days(history, *dated))
    assert found == ({} if inside is None else {"r": inside})


@pytest.mark.parametrize(
    ("between", "span", "inside"),
    [
        ({}, (0, 2002), True),
        ({"from_": "2.5"}, (release("2.5"), release("2.6")), True),
        ({"from_": "2.5"}, (release("2.5"), NEWEST), True),
        ({"from_": "2.5"}, (0, NEWEST), False),
        ({"from_": "2.5"}, (0, release("2.5")), None),
        ({"until": "2.5"}, (0, release("2.5")), True),
        ({"until": "2.5"}, (release("2.4"), release("2.6")), False),
        ({"until": "2.5"}, (release("2.5"), release("2.6")), None),
    ],
)
def test_releases_of_a_regression(
    between: dict[str, str], span: tuple[int, int], inside: bool | None, knowledge: Knowledge, history: History
) -> None:
    known = msgspec.structs.replace(knowledge, regressions=(made("torch", **between),))
    found = standing(known, history, FITS, None, Dated(None, None, (), span=span))
    assert found == ({} if inside is None else {"r": inside})


def test_a_symptom_must_hold_and_a_dating_without_versions_excludes_none(
    knowledge: Knowledge, history: History
) -> None:
    known = msgspec.structs.replace(knowledge, regressions=(made("ai-toolkit", until="2025-06-10"),))
    assert standing(known, history, {**FITS, "a": 3}, None) == {}
    assert standing(known, history, FITS, Dated("2026-01-01", None, ())) == {"r": False}
    for kind, some in (("gpu_oom", True), ("host_oom", True), ("vram_spill", True), ("unknown", False)):
        assert bool(standing(known, history, {**FITS, "failure.kind": kind}, None)) is some
