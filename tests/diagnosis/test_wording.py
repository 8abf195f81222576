"""Which words a diagnosis gets: the headline, what the reader should know, what the log lacks."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis import wording
from postmortem.diagnosis.cause import Cause
from postmortem.diagnosis.classify import Classified
from postmortem.diagnosis.codes import meaning_of
from postmortem.model import Attempt, JobConfig, Notice, Pace, StepTimes
from postmortem.text import LogText
from tests.diagnosis.build import at, attempt, event, oom

KERNEL = event("kill", reason="kernel_oom")
NAN = event("note", 300, event="nan")


def headline(cause: Cause, of: Attempt, class_: str | None = None, **known: Any) -> str:
    facts = {f"failure.{key}" if key == "signature" else f"run.{key}": value for key, value in known.items()}
    return wording.headline(cause, Classified(class_, False), of, facts)[0]


@pytest.mark.parametrize(
    ("cause", "of", "class_", "known", "expected"),
    [
        (Cause("gpu_oom", "vram"), attempt(trained=True), "early_step", {}, "gpu_oom.early_step"),
        # no bar: how many steps went before is not known
        (Cause("gpu_oom", "vram"), attempt(), "early_step", {}, "gpu_oom.early_step_unseen"),
        (Cause("host_oom", "host_ram"), attempt(), "early_step", {}, "host_oom.early_step_unseen"),
        (Cause("gpu_oom", "vram"), attempt(), None, {}, "gpu_oom.unknown"),
        (Cause("gpu_oom", "vram", "baseline_sampling"), attempt(), "sampling", {}, "gpu_oom.sampling_baseline"),
        (Cause("gpu_oom", "vram", "mid_sampling"), attempt(), "sampling", {}, "gpu_oom.sampling"),
        (
            Cause("gpu_oom", "vram", "baseline_sampling"),
            attempt(),
            "sampling",
            {"preview_unplaced": True},
            "gpu_oom.sampling_unplaced",
        ),
        (
            Cause("gpu_oom", "vram", "mid_sampling"),
            attempt(),
            "sampling",
            {"last_preview": True, "finished": True},
            "gpu_oom.sampling_finished",
        ),
        (
            Cause("gpu_oom", "vram", "mid_sampling"),
            attempt(),
            "sampling",
            {"last_preview": True, "skips": 1},
            "gpu_oom.sampling_last",
        ),
        (Cause("gpu_oom", "vram", "mid_sampling"), attempt(), "sampling", {"skips": 1}, "gpu_oom.sampling_and_steps"),
        (Cause("host_oom", "host_ram", "baseline_sampling"), attempt(), "sampling", {}, "host_oom.sampling"),
        # killed, and nobody says by whom
        (Cause("host_oom", "host_ram"), attempt("killed"), "startup", {}, "host_oom.killed"),
        (Cause("host_oom", "host_ram", event=KERNEL), attempt("killed"), "startup", {}, "host_oom.startup"),
        (Cause("host_oom", "host_ram"), attempt("failed"), "startup", {}, "host_oom.startup"),
        (Cause("gpu_oom", "vram"), attempt("killed"), "startup", {}, "gpu_oom.startup"),
        # it lived
        (
            Cause("gpu_oom", "vram"),
            attempt("completed_with_skips"),
            "bucket_spike",
            {"skips": 2},
            "gpu_oom.completed_with_skips",
        ),
        (Cause("gpu_oom", "vram"), attempt("completed"), "bucket_spike", {"skips": 2}, "gpu_oom.skips_alive"),
        (Cause("gpu_oom", "vram"), attempt("incomplete"), "bucket_spike", {"skips": 2}, "gpu_oom.skips_alive"),
        (Cause("gpu_oom", "vram"), attempt("stopped"), "bucket_spike", {"skips": 2}, "gpu_oom.skips_alive"),
        (Cause("gpu_oom", "vram"), attempt("stopped"), "bucket_spike", {"skips": 0}, "gpu_oom.bucket_spike"),
        (Cause("gpu_oom", "vram"), attempt("failed"), "bucket_spike", {"skips": 2}, "gpu_oom.bucket_spike"),
        (
            Cause("gpu_oom", "vram", oom=oom(3, "saving", caught=True)),
            attempt("completed"),
            "saving",
            {},
            "gpu_oom.swallowed",
        ),
        (Cause("gpu_oom", "vram", oom=oom(3, "saving")), attempt("failed"), "saving", {}, "gpu_oom.saving"),
        (
            Cause("gpu_oom", "vram", oom=oom(3, caught=True)),
            attempt("failed", trained=True),
            "early_step",
            {},
            "gpu_oom.early_step",
        ),
        # a bare error names no resource
        (
            Cause("gpu_oom", None),
            attempt("failed", trained=True),
            "early_step",
            {"signature": "cuda.bare"},
            "gpu_oom.bare_error",
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt("failed", trained=True),
            "early_step",
            {"signature": "torch.oom"},
            "gpu_oom.early_step",
        ),
        (Cause("gpu_oom", None), attempt("failed", trained=True), "early_step", {}, "gpu_oom.early_step"),
        # nothing failed, or nobody knows what
        (Cause("none"), attempt("completed"), None, {}, "none.completed"),
        (Cause("unknown"), attempt("incomplete"), None, {}, "unknown.incomplete"),
        (Cause("none"), attempt("completed", notes=(NAN,)), None, {}, "none.nan"),
        (Cause("none"), attempt("completed", notes=(event("note"),)), None, {}, "none.completed"),
        (Cause("none"), attempt("stopped", event=event("kill", reason="scheduler")), None, {}, "none.scheduler"),
        (Cause("none"), attempt("stopped", event=event("kill", reason="user")), None, {}, "none.stopped"),
        (Cause("unknown"), attempt("failed", event=event("kill", reason="scheduler")), None, {}, "unknown.failed"),
        (Cause("not_memory"), attempt("failed", notes=(NAN,)), None, {}, "not_memory"),
        (Cause("vram_spill", "vram"), attempt("incomplete"), None, {}, "vram_spill"),
    ],
)
def test_headlines(cause: Cause, of: Attempt, class_: str | None, known: dict[str, Any], expected: str) -> None:
    assert headline(cause, of, class_, **known) == expected


def test_what_a_headline_may_say() -> None:
    times = StepTimes(2.04, 8.4, 60, at(300))
    cause = Cause("gpu_oom", "vram", "training_step", 7)
    of = attempt(step_times=times, good_steps=6, total_steps=400)
    values = {"phase": "training_step", "step": 7, "total": 400, "skips": 3, "good_steps": 6, "resource": "vram"}
    slow = {"factor": 4.1, "before_s": 2.0, "after_s": 8.4}
    assert wording.headline(cause, Classified(None, False), of, {"run.skips": 3})[1] == {**values, **slow}
    without = attempt(good_steps=6, total_steps=400)
    assert wording.headline(cause, Classified(None, False), without, {"run.skips": 3})[1] == {
        **values,
        **dict.fromkeys(slow),
    }


def ids(found: list[Notice]) -> list[str]:
    return [notice.id for notice in found]


def notices(
    cause: Cause,
    of: Attempt,
    *,
    history: tuple[Attempt, ...] = (),
    trainer: str | None = "ai-toolkit",
    can_spill: bool | None = None,
    no_training: bool = False,
) -> list[Notice]:
    return wording.notices(of, cause, history, trainer, {"run.can_spill": can_spill}, no_training=no_training)


def test_nothing_to_say_of_a_plain_failure() -> None:
    assert notices(Cause("gpu_oom", "vram"), attempt(ooms=(oom(5),))) == []


@pytest.mark.parametrize(
    ("earlier", "phase", "memory"),
    [
        (attempt("failed", ooms=(oom(5, caught=True), oom(None, "saving"))), "saving", True),
        (attempt("killed", phase="setup"), "setup", False),
        (attempt("failed", ooms=(oom(5, caught=True),), phase="setup"), "training_step", True),
        (attempt("completed", ooms=(oom(5),)), "training_step", True),
        (attempt("completed", ooms=(oom(5, caught=True),)), None, False),
        (attempt("incomplete"), None, False),
    ],
)
def test_an_earlier_attempt_that_failed_is_history(earlier: Attempt, phase: str | None, memory: bool) -> None:
    found = notices(Cause("none"), attempt("completed"), history=(earlier,))
    values = {"attempt": 1, "file": LogText("log"), "outcome": earlier.end.outcome, "phase": phase, "memory": memory}
    assert found == ([] if phase is None else [Notice("superseded_attempt", 1, values)])


def test_whose_log_it_is() -> None:
    memory, other = Cause("gpu_oom", "vram"), Cause("not_memory")
    assert ids(notices(memory, attempt(), trainer="kohya")) == ["foreign_trainer"]
    assert ids(notices(other, attempt(), trainer="kohya")) == []
    assert ids(notices(memory, attempt(), trainer=None)) == []
    assert notices(other, attempt(), trainer="comfyui", no_training=True) == [
        Notice("not_a_training_run", None, {"trainer": "comfyui"})
    ]


@pytest.mark.parametrize(
    ("cause", "of", "expected"),
    [
        (Cause("none"), attempt("completed", buffered=True), [Notice("buffered_log", None, {})]),
        (
            Cause("gpu_oom", "vram"),
            attempt(ooms=(oom(1, caught=True, implied=True), oom(2, caught=True), oom(3, implied=True))),
            [Notice("skips_by_bar_only", None, {"count": 1})],
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt(excerpt_bars=True, ooms=(oom(1, caught=True),)),
            [Notice("thinned_bars", None, {})],
        ),
        (Cause("gpu_oom", "vram"), attempt(excerpt_bars=True, ooms=(oom(1),)), []),
        (
            Cause("not_memory"),
            attempt(ooms=(oom(1, caught=True), oom(2, caught=True), oom(None, kind="host_oom"))),
            [Notice("skips_before_other_error", None, {"count": 2})],
        ),
        (Cause("not_memory"), attempt(ooms=(oom(None, kind="host_oom"),)), []),
        (
            Cause("none"),
            attempt("completed", notes=(event("note", 200), NAN, event("note", 400, event="nan"))),
            [Notice("nan_loss", 300, {})],
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt(
                ooms=(oom(1, caught=True), oom(None, "quantize", caught=True, line=20), oom(3, "saving", caught=True))
            ),
            [Notice("swallowed_quantize", 20, {})],
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt(ooms=(oom(3, "saving", caught=True, line=20),)),
            [Notice("swallowed_saving", 20, {})],
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt(ooms=(oom(3, "setup", caught=True, line=20),)),
            [Notice("swallowed_setup", 20, {})],
        ),
        (
            Cause("gpu_oom", "vram"),
            attempt(ooms=(oom(3, "model_load", caught=True, line=20),)),
            [Notice("swallowed_other", 20, {})],
        ),
        (Cause("none"), attempt("completed", warnings=(Notice("torn_file"),)), [Notice("torn_file")]),
    ],
)
def test_what_the_reader_should_know(cause: Cause, of: Attempt, expected: list[Notice]) -> None:
    assert notices(cause, of) == expected


def code(value: str, line: int = 900, name: str = "code") -> Any:
    return event("exit", line, groups={name: LogText(value)})


def test_an_exit_code_says_what_it_means() -> None:
    end = attempt(event=code("0xC0000005"))
    assert meaning_of(end) == ("access_violation", "0xC0000005", 900)
    assert meaning_of(attempt(closing=(code("137", 10), code("SIGSEGV", 20, "signal"), code("1", 30)))) == (
        "segfault",
        "SIGSEGV",
        20,
    )
    assert meaning_of(attempt(event=code("1"), closing=(code("-9", 10),))) == ("sigkill", "-9", 10)
    assert meaning_of(attempt(event=event("exit"))) is None
    for kind, outcome, told in (
        ("unknown", "failed", True),
        ("host_oom", "killed", True),
        ("none", "stopped", True),
        ("gpu_oom", "failed", False),
        ("not_memory", "failed", False),
        ("unknown", "incomplete", False),
    ):
        found = notices(Cause(kind), attempt(outcome, event=code("137")))
        assert found == ([Notice("exit_sigkill", 900, {"code": LogText("137")})] if told else [])


def slow(lost_s: float, *, lasting: bool = True) -> StepTimes:
    return StepTimes(2.04, 6.3, 60, at(300), LogText("bar"), 90, lost_s, lasting)


@pytest.mark.parametrize(
    ("given", "kind", "can_spill", "expected"),
    [
        ({"step_times": slow(7200)}, "vram_spill", True, ["spill_cost"]),
        ({"step_times": slow(7200)}, "none", True, ["slowdown", "slowdown_can_spill"]),
        ({"step_times": slow(7200)}, "none", False, ["slowdown", "slowdown_cannot_spill"]),
        ({"step_times": slow(7200)}, "none", None, ["slowdown", "slowdown_may_spill"]),
        ({"slow_stretch": slow(7200, lasting=False)}, "none", None, ["slow_stretch", "slowdown_may_spill"]),
        ({}, "none", None, []),
    ],
)
def test_slow_steps(given: dict[str, Any], kind: str, can_spill: bool | None, expected: list[str]) -> None:
    found = notices(Cause(kind), attempt("completed", **given), can_spill=can_spill)
    assert ids(found) == expected
    if found:
        values = {"factor": 3.1, "step": 60, "to_step": 90, "hours": 2.0, "before_s": 2.0, "after_s": 6.3}
        assert (found[0].line, found[0].values) == (300, values)


@pytest.mark.parametrize(
    ("lost_s", "hours"), [(3600, 1.0), (3_600_000, 1000.0), (4608, 1.3), (3564, 0.99), (470, 0.13)]
)
def test_hours_lost_are_rounded_to_what_is_known(lost_s: float, hours: float) -> None:
    found = notices(Cause("vram_spill"), attempt("incomplete", step_times=slow(lost_s)))
    assert found[0].values["hours"] == hours


@pytest.mark.parametrize(
    ("outcome", "phase", "pace", "expected"),
    [
        # ten minutes of silence, and five steps' worth of it
        ("failed", "training_step", Pace(silent_s=600.0), {"minutes": 10}),
        ("failed", "training_step", Pace(silent_s=3000.0), {"minutes": 50}),
        ("killed", "training_step", Pace(silent_s=660.0, bar_step_s=132.0), {"minutes": 11}),
        ("incomplete", "training_step", Pace(silent_s=660.0, bar_step_s=133.0), None),
        ("failed", "training_step", Pace(silent_s=599.0), None),
        ("failed", "saving", Pace(silent_s=900.0), None),
        ("completed", "training_step", Pace(silent_s=900.0), None),
        ("failed", "training_step", Pace(), None),
    ],
)
def test_a_log_that_stood_still(outcome: str, phase: str, pace: Pace, expected: dict[str, int] | None) -> None:
    of = attempt(outcome, phase=phase, pace=pace, main_bar_place=at(480))
    assert notices(Cause("not_memory"), of) == ([Notice("stood_still", 480, expected)] if expected else [])
    without = attempt(outcome, phase=phase, pace=pace)
    assert notices(Cause("not_memory"), without) == ([Notice("stood_still", None, expected)] if expected else [])


@pytest.mark.parametrize(
    ("bar", "wall", "said"),
    [
        (2.0, 4.0, True),
        (2.04, 4.07, True),
        (2.0, 3.99, False),
        (0.1, 1.15, True),
        (None, 9.0, False),
        (2.0, None, False),
    ],
)
def test_a_wall_clock_that_the_bar_does_not_show(bar: float | None, wall: float | None, said: bool) -> None:
    found = notices(Cause("none"), attempt("completed", pace=Pace(bar_step_s=bar, wall_step_s=wall)))
    assert found == (
        [Notice("wall_slower", None, {"bar_s": round(bar or 0, 1), "wall_s": round(wall or 0, 1)})] if said else []
    )


CONFIG = JobConfig({}, ("log",))


def missing(
    cause: Cause,
    of: Attempt,
    *,
    config: JobConfig = CONFIG,
    sizes: Any = None,
    trainer: str | None = "ai-toolkit",
    **known: Any,
) -> list[str]:
    return wording.missing(of, config, cause, sizes or {"tried_to_allocate": 1.0}, trainer, known)


STEP = Cause("gpu_oom", "vram", "training_step")
LOST = Cause("unknown", phase="training_step")


def test_what_a_log_lacks() -> None:
    none = JobConfig({}, ())
    assert missing(STEP, attempt()) == []
    assert missing(STEP, attempt(), config=none) == ["config"]
    assert missing(STEP, attempt(), config=none, trainer=None) == ["config"]
    assert missing(STEP, attempt(), config=none, trainer="kohya") == []
    for kind in ("not_memory", "none"):
        assert missing(Cause(kind), attempt(buffered=True), config=none, sizes={"free": 1.0}) == []
    for caught, implied, what in (
        (True, False, "sizes_swallowed"),
        (False, True, "sizes_swallowed"),
        (False, False, "sizes"),
    ):
        cause = Cause("gpu_oom", "vram", "saving", oom=oom(5, caught=caught, implied=implied))
        assert missing(cause, attempt(), sizes={"free": 1.0}) == [what]
    assert missing(STEP, attempt(), sizes={"free": 1.0}) == ["sizes"]
    assert missing(Cause("host_oom", phase="setup"), attempt(), sizes={"free": 1.0}) == []
    assert missing(Cause("gpu_oom", "vram"), attempt()) == ["traceback"]
    assert missing(STEP, attempt(buffered=True)) == ["unbuffered"]
    assert missing(STEP, attempt(excerpt_bars=True, ooms=(oom(5, caught=True),))) == ["whole_log"]
    assert missing(STEP, attempt(excerpt_bars=True, ooms=(oom(5), oom(6, "saving", caught=True)))) == []


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((), ["how_it_ended"]),
        (("windows",), ["check_windows"]),
        (("linux",), ["check_linux"]),
        (("linux", "container"), ["check_container"]),
        (("linux", "slurm"), ["check_slurm"]),
        (("linux", "kubernetes", "container"), ["check_kubernetes", "check_container"]),
        (("wsl", "windows", "linux"), ["check_wsl"]),
        (("windows", "linux"), ["check_windows", "check_linux"]),
    ],
)
def test_the_check_that_settles_it(places: tuple[str, ...], expected: list[str]) -> None:
    known: dict[str, Any] = {f"run.on_{place}": place in places for place in wording.SYSTEMS}
    assert missing(LOST, attempt("incomplete"), **known) == expected
    silent = Cause("host_oom", "host_ram", "training_step")
    assert missing(silent, attempt("killed"), **{**known, "run.silent": True}) == (
        expected if places else ["kernel_log"]
    )
    assert missing(silent, attempt("killed"), **known) == []
