"""A report altered anywhere is caught, at the place where it was altered."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from postmortem.verify import BadReport, needs
from postmortem.verify.compare import below
from tests.test_fixtures import NAMES
from tests.verify.conftest import Sent, Verify

WHOLE = ("early-step-checkpointing-off", "sizes-allocated-over-capacity")
A_FEW = 8


def leaves(value: Any, path: str, keys: tuple[Any, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, below(path, key), (*keys, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]", (*keys, index))
    else:
        yield path, keys


def other(value: Any) -> Any:
    """A value of the same kind that says something else."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.01 + 1
    if isinstance(value, str):
        return value + "x"
    return [1] if isinstance(value, list) else {"x": 1} if isinstance(value, dict) else 7


def put(sent: Sent, keys: tuple[Any, ...], change: Callable[[Any], Any]) -> None:
    at: Any = sent
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = change(at[keys[-1]])


def is_claim(path: str) -> bool:
    return not needs.under(path, needs.NO_CLAIMS)


def assert_caught(name: str, keys: tuple[Any, ...], path: str, honest: Any, verify: Verify) -> None:
    sent = honest(name)
    put(sent, keys, other)
    try:
        found = verify(name, sent)
    except BadReport:
        return  # a null that became a number where none can be: refused as a whole
    assert found.verdict == "differs", path
    assert any(item.path.reveal() in (path, f"{path}[0]", f"{path}.x") for item in found.differs), (path, found.differs)


@pytest.mark.parametrize("name", WHOLE)
def test_every_kind_of_leaf_counts(name: str, honest: Callable[[str], Sent], verify: Verify) -> None:
    kinds = {re.sub(r"\[[^]]*\]", "[]", path): (path, keys) for path, keys in leaves(honest(name), "", ())}
    every = [(path, keys) for path, keys in kinds.values() if is_claim(path)]
    assert len(every) > 100
    for path, keys in every:
        assert_caught(name, keys, path, honest, verify)


@pytest.mark.parametrize("name", NAMES)
def test_any_leaf_counts(name: str, honest: Callable[[str], Sent], verify: Verify) -> None:
    every = [(path, keys) for path, keys in leaves(honest(name), "", ()) if is_claim(path)]
    for path, keys in random.Random(name).sample(every, A_FEW):
        assert_caught(name, keys, path, honest, verify)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_out_or_added_counts(name: str, honest: Callable[[str], Sent], verify: Verify) -> None:
    sent = honest(name)
    sent["remedies"] = sent["remedies"][1:] or [{**_remedy(), "rank": 1}]
    assert verify(name, sent).verdict == "differs"
    sent = honest(name)
    sent["failure"]["verdict_by"] = "me"
    found = verify(name, sent)
    assert [(item.path.reveal(), item.why) for item in found.differs] == [("failure.verdict_by", "not_in_log")]
    sent = honest(name)
    sent["timeline"].append({**sent["timeline"][0], "event": "invented"} if sent["timeline"] else _event())
    assert verify(name, sent).verdict == "differs"


def _remedy() -> dict[str, Any]:
    nothing = {"section": None, "url": None, "source": ""}
    texts = {"id": "x", "title": "", "why": "", "cost": "", "ui": ""}
    figures = {"saving": None, "peak": None, "need": None, "fits": None}
    return {**texts, **figures, "changes": [], "guide": nothing, "evidence": []}


def _event() -> dict[str, Any]:
    return {"line": 1, "step": None, "phase": "unknown", "event": "invented", "text": ""}


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_report_is_the_same(name: str, honest: Callable[[str], Sent], verify: Verify) -> None:
    found = verify(name, honest(name))
    assert (found.verdict, found.differs, found.unchecked) == ("same", [], [])
    counts = {group.id: group.same for group in found.groups}
    assert counts["analysis"] > 100


def test_a_moved_line_a_renamed_pattern_and_another_text_are_named(
    honest: Callable[[str], Sent], verify: Verify
) -> None:
    name = "early-step-first-oom-dies-2025"
    index = next(at for at, item in enumerate(honest(name)["failure"]["evidence"]) if item["pattern"])

    def reasons(**changed: Any) -> dict[str, str]:
        sent = honest(name)
        sent["failure"]["evidence"][index].update(changed)
        return {item.path.reveal().rpartition(".")[2]: item.why for item in verify(name, sent).differs}

    evidence = honest(name)["failure"]["evidence"][index]
    assert reasons(line=evidence["line"] + 1) == {"line": "moved"}
    assert reasons(text="Killed") == {"text": "other_text"}
    assert reasons(pattern="no.such") == {"pattern": "no_such_pattern"}
    assert reasons(pattern="marker.running_job")["pattern"] in ("not_claimed", "no_such_pattern")
    assert reasons(pattern_version="0" * 12) == {"pattern_version": "pattern_changed"}
    moved = reasons(start=evidence["start"] - 400, end=evidence["end"] - 400)
    assert moved["text"] == "other_text" and moved["start"] == "other_value"


def test_sums_are_checked_without_any_log(honest: Callable[[str], Sent], verify: Verify) -> None:
    name = "sizes-old-torch-message"
    sent = honest(name)
    sent["ledger"]["unexplained"] += 100
    found = verify(name, sent)
    assert {(item.group, item.path.reveal()) for item in found.differs} == {("numbers", "ledger.unexplained")}
    for path in ("remedies", "settings"):
        sent = honest("early-step-checkpointing-off")
        row = sent[path][0]["changes"][0] if path == "remedies" else sent[path][0]
        row["from" if path == "remedies" else "value"] = "something"
        found = verify("early-step-checkpointing-off", sent)
        assert "numbers" in {item.group for item in found.differs}
