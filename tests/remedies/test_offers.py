"""Which remedies of a knowledge base are offered, in which order, and of which it is said that they will not help."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from postmortem.diagnosis.expected import expected
from postmortem.knowledge.schema import Change, Knowledge, Remedy, Rule
from postmortem.model import ConfigChange, Diagnosis, JobConfig, NotHelping, Range, Value
from postmortem.remedies import plan
from postmortem.remedies.plan import Plan
from postmortem.vram import Forecast

JOB = JobConfig({"train.batch_size": Value(8, "log"), "network.linear": Value(32, "log")}, ("log",))
NONE = JobConfig({}, ())


def remedy(ident: str, *offer: Rule, **given: Any) -> Remedy:
    return Remedy(ident, "mine", offer or (Rule("always"),), **given)


def died(knowledge: Knowledge, **changes: Any) -> Diagnosis:
    facts = {"failure.kind": "gpu_oom", "a": 1, "b": None}
    return msgspec.structs.replace(expected(JOB, "training_step", knowledge), **{"facts": facts, **changes})


def planned(knowledge: Knowledge, *remedies: Remedy, config: JobConfig = JOB, **changes: Any) -> Plan:
    return plan(died(knowledge, **changes), config, msgspec.structs.replace(knowledge, remedies=remedies))


def offered(knowledge: Knowledge, *remedies: Remedy, **given: Any) -> list[tuple[int, str, str]]:
    return [(item.rank, item.id, item.why) for item in planned(knowledge, *remedies, **given).suggestions]


@pytest.mark.parametrize(
    ("kind", "trainer", "some"),
    [
        ("gpu_oom", "ai-toolkit", True),
        ("host_oom", "ai-toolkit", True),
        ("vram_spill", "ai-toolkit", True),
        ("gpu_oom", None, True),
        ("not_memory", "ai-toolkit", False),
        ("unknown", None, False),
        ("gpu_oom", "kohya", False),
        ("not_memory", "kohya", False),
    ],
)
def test_for_memory_in_ai_toolkit_alone(kind: str, trainer: str | None, some: bool, knowledge: Knowledge) -> None:
    useless = remedy("z", Rule("y", ("a = 2",)), will_not_help=(Rule("no"),))
    found = planned(knowledge, remedy("x"), useless, kind=kind, trainer=trainer)
    assert [item.id for item in found.suggestions] == (["x"] if some else [])
    assert [item.id for item in found.not_helping] == (["z"] if some else [])


def test_by_rank_and_at_one_rank_by_name(knowledge: Knowledge) -> None:
    found = offered(
        knowledge, remedy("d"), remedy("c", Rule("r", (), 5)), remedy("b", Rule("r", (), -1)), remedy("a"), remedy("e")
    )
    assert found == [(1, "b", "r"), (2, "a", "always"), (3, "d", "always"), (4, "e", "always"), (5, "c", "r")]


def test_the_first_offer_that_holds_counts(knowledge: Knowledge) -> None:
    first, second, third = Rule("one", ("a = 2",), 1), Rule("two", ("a = 1",), 9), Rule("three", (), 0)
    assert offered(knowledge, remedy("x", first, second, third)) == [(1, "x", "two")]
    # what is not known holds only where the rule says that it may
    asks = Rule("asks", ("b = 1",))
    assert offered(knowledge, remedy("x", asks)) == []
    assert offered(knowledge, remedy("x", msgspec.structs.replace(asks, unknown_ok=True))) == [(1, "x", "asks")]


def test_what_every_offer_requires(knowledge: Knowledge) -> None:
    assert offered(knowledge, remedy("x", requires=("a = 2",))) == []
    assert offered(knowledge, remedy("x", requires=("a = 1",))) == [(1, "x", "always")]
    # the next offer may take what this one does not: that it is unknown
    either = (Rule("sure"), Rule("maybe", (), 0, True))
    assert offered(knowledge, remedy("x", *either, requires=("b = 1",))) == [(1, "x", "maybe")]
    assert offered(knowledge, remedy("x", Rule("sure"), requires=("b = 1",))) == []


def test_what_will_not_help_is_said_once_and_not_of_what_is_offered(knowledge: Knowledge) -> None:
    never = Rule("y", ("a = 2",))
    reasons = (Rule("other", ("a = 3",)), Rule("unknown", ("b = 1",)), Rule("first", ("a = 1",)), Rule("second"))
    found = planned(
        knowledge,
        remedy("silent", never, will_not_help=(Rule("n", ("a = 2",)),)),
        remedy("told", never, will_not_help=reasons),
        remedy("offered", will_not_help=(Rule("n"),)),
        remedy("told_too", never, will_not_help=(Rule("n"),)),
    )
    assert found.not_helping == (NotHelping("told", "first"), NotHelping("told_too", "n"))
    assert [item.id for item in found.suggestions] == ["offered"]


def test_an_edit_that_changes_nothing_is_not_offered(knowledge: Knowledge) -> None:
    done = remedy("done", changes=(Change("train.batch_size", set=8),))
    more = remedy("more", changes=(Change("train.batch_size", op="halve"), Change("network.linear", set=32)))
    bare = remedy("plain")
    found = planned(knowledge, done, more, bare).suggestions
    assert [(item.rank, item.id, item.changes) for item in found] == [
        (1, "more", (ConfigChange("train.batch_size", 8, 4),)),
        (2, "plain", ()),
    ]
    # without a config nobody knows what it would change
    found = planned(knowledge, done, bare, config=NONE).suggestions
    assert [(item.rank, item.id, item.changes) for item in found] == [(1, "done", ()), (2, "plain", ())]


def test_edits_are_those_that_the_failure_asks_for(knowledge: Knowledge) -> None:
    changes = (
        Change("train.batch_size", set=1, when=("a = 2",)),
        Change("network.linear", set=4, when=("a = 1",)),
        Change("train.steps", set=9, when=("b = 1",)),
    )
    (found,) = planned(knowledge, remedy("x", changes=changes)).suggestions
    assert found.changes == (ConfigChange("network.linear", 32, 4), ConfigChange("train.steps", None, 9))


def test_what_a_suggestion_carries(knowledge: Knowledge) -> None:
    full = remedy("x", guide="a guide", url="https://example.org/x")
    diagnosis = died(knowledge)
    (found,) = plan(diagnosis, JOB, msgspec.structs.replace(knowledge, remedies=(full,))).suggestions
    assert (found.why, found.source, found.guide, found.url) == ("always", "mine", "a guide", "https://example.org/x")
    assert found.facts is diagnosis.facts
    assert (found.saving, found.peak, found.need, found.fits) == (None, None, None, None)


def test_figures_come_from_the_forecast(knowledge: Knowledge) -> None:
    """A GiB for each image of the batch; the rank saves too little to be worth a try."""

    def estimate(config: JobConfig) -> Forecast:
        peak = 1024.0 * config.get("train.batch_size") + 0.001 * config.get("network.linear")
        held = Range(peak, peak, peak)
        return Forecast("training_step", "m", (), held, held, 5000.0, "fits" if peak <= 5000 else "does not fit")

    batch = remedy("batch", changes=(Change("train.batch_size", op="halve"),), predict=("training_step",))
    rank = remedy("rank", changes=(Change("network.linear", set=16),), predict=("training_step",))
    useless = remedy("z", Rule("y", ("a = 2",)), will_not_help=(Rule("no"),))
    base = msgspec.structs.replace(knowledge, remedies=(batch, rank, useless))
    found = plan(died(knowledge), JOB, base, estimate)
    (one,) = found.suggestions
    assert one.saving is not None and one.saving.likely == pytest.approx(4096)
    assert (one.fits, one.changes) == ("fits", (ConfigChange("train.batch_size", 8, 4),))
    assert [(item.id, item.why) for item in found.not_helping] == [("z", "no"), ("rank", "too_small")]
    assert [rung.id for rung in found.ladder] == ["batch"]
