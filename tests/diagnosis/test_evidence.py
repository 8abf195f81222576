"""The lines that prove a verdict: which, what each proves, in file order, each line once."""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.diagnosis.evidence import collect
from postmortem.model import Frame, Place, Stage, StepTimes
from postmortem.text import LogText
from tests.diagnosis.build import at, attempt, event, oom

TRACEBACK: Any = object()
FRAME = Frame(at(920), LogText("run.py"), "main", LogText("job.run()"), 12)


def stage(line: int, phase: str, name: str = "status", pattern: str | None = "a.status") -> Stage:
    return Stage(at(line), phase, name, LogText(phase), None, None, pattern)


def proofs(of: Any, *, place: Any = None, kind: str = "gpu_oom", phase: str = "training_step") -> Any:
    return [(item.line, item.what) for item in collect(of, place, kind, phase)]


def test_a_line_says_where_it_stands_and_which_entry_claims_it() -> None:
    fatal = event("oom", 900, pattern="torch.oom", text="out")
    found = collect(attempt(event=fatal), fatal.place, "gpu_oom", "training_step")
    assert len(found) == 1
    one = found[0]
    assert (one.line, one.what, one.text.reveal(), one.source) == (900, "oom", "out", "log")
    assert (one.pattern, one.start, one.end) == ("torch.oom", 90_000, 90_050)


def test_bytes_are_told_only_of_the_log_itself_and_where_they_are_known() -> None:
    elsewhere = msgspec.structs.replace(event("oom"), place=at(900, "logs/0_log.txt"))
    unknown = msgspec.structs.replace(event("oom"), place=msgspec.structs.replace(at(900), end=0))
    for one in (elsewhere, unknown):
        found = collect(attempt(event=one), one.place, "gpu_oom", "training_step")[0]
        assert (found.start, found.end) == (None, None)


def test_the_same_line_proves_once_and_of_another_file_again() -> None:
    fatal = event("oom", 900)
    other = msgspec.structs.replace(event("kill", 900), place=at(900, "other"))
    assert proofs(attempt(event=fatal, errors=(other,)), place=other.place) == [(900, "oom"), (900, "kill")]
    assert proofs(attempt(event=fatal, errors=(event("kill", 900),)), place=at(900)) == [(900, "oom")]
    # in the order of files, and of lines in each
    early = event("kill", 100)
    assert proofs(attempt(event=fatal, errors=(early,)), place=at(100)) == [(100, "kill"), (900, "oom")]


def test_skips_at_the_start_and_at_the_end_stand_for_all() -> None:
    skips = tuple(oom(n, caught=True, line=100 + n) for n in range(9))
    assert proofs(attempt(ooms=skips)) == [(line, "skip") for line in (100, 101, 102, 107, 108)]
    mixed = (oom(None, "quantize", caught=True, line=20), oom(4, line=30))
    assert proofs(attempt(ooms=mixed)) == [(20, "swallowed")]
    shown = collect(attempt(ooms=(oom(5, caught=True, by_bar=True),)), None, "gpu_oom", "training_step")[0]
    banner = collect(attempt(ooms=(oom(5, caught=True),)), None, "gpu_oom", "training_step")[0]
    assert (shown.pattern, banner.pattern) == (None, "torch.oom")


def test_an_error_on_which_the_verdict_stands() -> None:
    errors = (event("oom", 700, pattern="torch.oom"), event("oom", 800, pattern="torch.oom"))
    of = attempt(errors=errors)
    assert proofs(of, place=at(700)) == [(700, "oom")]
    assert proofs(of, place=at(701)) == [] == proofs(of)


def test_the_frame_of_an_error_but_not_of_an_abort() -> None:
    died = attempt(event=event("oom", 900), traceback=TRACEBACK, end_frame=FRAME)
    found = collect(died, None, "gpu_oom", "training_step")
    assert [(item.line, item.what, item.text.reveal()) for item in found] == [
        (900, "oom", "oom"),
        (920, "frame", "main: job.run()"),
    ]
    assert proofs(attempt(event=event("abort", 900), traceback=TRACEBACK, end_frame=FRAME)) == [(900, "abort")]
    assert proofs(attempt(traceback=TRACEBACK, end_frame=FRAME)) == [(920, "frame")]
    assert proofs(attempt(end_frame=FRAME)) == [] == proofs(attempt(traceback=TRACEBACK))


def test_the_last_line_that_says_the_phase() -> None:
    stages = (
        stage(10, "setup"),
        stage(20, "training_step"),
        stage(30, "training_step", "bar_main"),
        stage(800, "saving"),
    )
    assert proofs(attempt(stages=stages), place=at(700)) == [(20, "phase")]
    assert proofs(attempt(stages=stages), place=at(20)) == [(20, "phase")]
    assert proofs(attempt(stages=stages), place=at(19)) == []
    assert proofs(attempt(stages=stages), place=at(800)) == []
    assert proofs(attempt(stages=stages), place=at(800), phase="saving") == [(800, "phase")]
    assert proofs(attempt(stages=stages)) == []
    found = collect(attempt(stages=stages), at(700), "gpu_oom", "training_step")[0]
    assert (found.pattern, found.text.reveal()) == ("a.status", "training_step")


def test_the_bar() -> None:
    bar: dict[str, Any] = {"main_bar_place": at(480), "main_bar_text": LogText("mugs: 12%")}
    found = collect(attempt(**bar), None, "gpu_oom", "training_step")
    assert [(item.line, item.what, item.text.reveal(), item.pattern) for item in found] == [
        (480, "bar", "mugs: 12%", None)
    ]
    assert proofs(attempt(**bar), kind="none") == []
    assert proofs(attempt(main_bar_place=at(480))) == []


def test_a_slowdown_is_proof_of_a_spill_alone() -> None:
    of = attempt("stopped", step_times=StepTimes(1.0, 9.0, 60, at(300), LogText("bar")))
    assert proofs(of, kind="vram_spill") == [(300, "slowdown")]
    assert proofs(of, kind="unknown") == []
    assert proofs(attempt("stopped"), kind="vram_spill") == []


def test_nothing_proves_that_nothing_happened() -> None:
    of = attempt("incomplete", ooms=(oom(5, caught=True),))
    assert proofs(of, kind="none") == []
    assert proofs(attempt("stopped", ooms=(oom(5, caught=True),)), kind="none") == [(500, "skip")]
    assert proofs(of, kind="gpu_oom") == [(500, "skip")]


def test_each_line_has_its_own_words_and_entry() -> None:
    stages = tuple(
        Stage(at(n), "training_step", "status", LogText(f"stage {n}"), None, None, f"p.{n}") for n in (1, 2, 3, 4)
    )
    of = attempt(
        event=event("kill", 900, pattern="p.end", text="the end"),
        errors=(event("oom", 700, pattern="p.error", text="an error"),),
        ooms=(oom(5, caught=True, line=500, pattern="p.skip", text=LogText("a skip")),),
        stages=stages,
        step_times=StepTimes(1.0, 9.0, 60, at(300), LogText("slow bar")),
    )
    found = collect(of, at(700), "vram_spill", "training_step")
    assert [(item.line, item.what, item.text.reveal(), item.pattern) for item in found] == [
        (4, "phase", "stage 4", "p.4"),
        (300, "slowdown", "slow bar", None),
        (500, "skip", "a skip", "p.skip"),
        (700, "oom", "an error", "p.error"),
        (900, "kill", "the end", "p.end"),
    ]


def test_the_first_byte_of_a_log_is_a_place() -> None:
    first = msgspec.structs.replace(event("oom"), place=Place(1, 0, "log", None, 1))
    found = collect(attempt(event=first), first.place, "gpu_oom", "training_step")[0]
    assert (found.start, found.end) == (0, 1)
