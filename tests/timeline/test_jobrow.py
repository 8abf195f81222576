"""The UI's database as a second witness of how a run ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from postmortem.jobconfig import ConfigText
from postmortem.model import JobDatabase, JobRow
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.report import build, json_
from postmortem.scan import Lexicon
from postmortem.text import LogText
from tests.simulate import config, finished, head, training

ID = "0b7e2d51-1f3c-4c8e-9a60-2f4d7c1e8b35"
SIZES = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free. "
    "Including non-PyTorch memory, this process has 22.00 GiB memory in use. Of the allocated memory 20.00 GiB is "
    "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
PINNED = "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported at some other API call"
EXIT = "\nJob process terminated with exit code 1.\n"
LOAD = head(config()).replace("# Running job", f'Job ID: "{ID}"\n# Running job')
CUT = LOAD + training(400, set(), until=40)
FAILED = LOAD + training(400, {5, 6, 7, 8})


def row(**changes: Any) -> JobRow:
    value = {"id": LogText(ID), "name": LogText("mugs"), "status": "error", "step": 0, "total_steps": 400, **changes}
    return JobRow(**{"info": "", "config": None, **value})


def look(log: str, lexicon: Lexicon, *rows: JobRow, configs: tuple[ConfigText, ...] = ()) -> Analysis:
    database = JobDatabase("aitk_db.db", rows)
    return analyse("-", [Source("log", "utf-8", [log.encode()])], configs, lexicon, database=database)


def notices(found: Analysis) -> list[str]:
    return [notice.id for notice in found.warnings if notice.id.startswith("db_")]


def test_a_message_that_the_log_lost_is_the_verdict(lexicon: Lexicon) -> None:
    found = look(LOAD + EXIT, lexicon, row(info=SIZES)).diagnosis
    assert (found.kind, found.resource, found.phase, found.class_) == ("gpu_oom", "vram", "setup", "startup")
    assert found.confidence == "medium"
    assert found.memory_mib["tried_to_allocate"] == 2048
    assert [(item.source, item.line, item.what) for item in found.evidence if item.source != "log"] == [
        ("aitk_db.db", 1, "oom")
    ]


def test_of_a_log_that_was_cut_off_the_message_says_neither_phase_nor_step(lexicon: Lexicon) -> None:
    found = look(CUT, lexicon, row(info=SIZES))
    assert (found.diagnosis.kind, found.diagnosis.phase, found.diagnosis.step) == ("gpu_oom", "unknown", None)
    assert (found.diagnosis.class_, found.diagnosis.confidence) == (None, "low")
    assert notices(found) == ["db_message"]
    report = json.loads(json_.render(build(found, lexicon.knowledge)))
    assert [event["line"] for event in report["oom_events"]] == [None]


def test_an_abort_tells_its_phase_itself(lexicon: Lexicon) -> None:
    abort = "OOM during training step 3 times in a row, aborting training"
    found = look(CUT, lexicon, row(info=abort)).diagnosis
    assert (found.kind, found.phase, found.step, found.confidence) == ("gpu_oom", "training_step", None, "medium")
    short = look(LOAD + training(400, set(), until=3), lexicon, row(info=abort)).diagnosis
    assert (short.kind, short.phase, short.class_) == ("gpu_oom", "unknown", None)


def test_a_bare_error_of_cuda_stays_without_a_resource(lexicon: Lexicon) -> None:
    assert look(CUT, lexicon, row(info=PINNED)).diagnosis.resource is None


def test_host_memory_is_told_apart(lexicon: Lexicon) -> None:
    info = "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes."
    assert look(LOAD + EXIT, lexicon, row(info=info)).diagnosis.kind == "host_oom"


@pytest.mark.parametrize("log", [FAILED, LOAD + training(400, set()) + finished()])
@pytest.mark.parametrize("info", [SIZES, "", "'exp_avg'", "Job stopped"])
@pytest.mark.parametrize("status", ["error", "completed", "running", "stopped"])
def test_where_the_log_names_the_end_the_database_changes_no_verdict(
    lexicon: Lexicon, log: str, info: str, status: str
) -> None:
    plain = look(log, lexicon).diagnosis
    found = look(log, lexicon, row(info=info, status=status, step=250)).diagnosis
    for name in ("kind", "resource", "class_", "phase", "step", "confidence", "outcome", "evidence"):
        assert getattr(found, name) == getattr(plain, name)


def test_without_an_error_in_the_row_nothing_is_concluded(lexicon: Lexicon) -> None:
    for info, status in ((SIZES, "running"), ("Training", "error"), ("division by zero", "error")):
        assert look(CUT, lexicon, row(info=info, status=status)).diagnosis.kind == "unknown" or status == "running"
    found = look(CUT, lexicon, row(info="division by zero"))
    assert notices(found) == ["db_info"]


@pytest.mark.parametrize(
    ("log", "status", "expected"),
    [
        (CUT, "running", ["db_running"]),
        (CUT, "completed", ["db_completed"]),
        (CUT, "stopped", ["db_stopped"]),
        (FAILED, "completed", ["db_status_differs"]),
        (FAILED, "error", []),
        (FAILED, "queued", []),
    ],
)
def test_how_it_ended_by_both(lexicon: Lexicon, log: str, status: str, expected: list[str]) -> None:
    assert notices(look(log, lexicon, row(status=status))) == expected


def test_a_log_shorter_than_the_database_is_noted(lexicon: Lexicon) -> None:
    assert notices(look(CUT, lexicon, row(status="queued", step=250))) == ["db_step_ahead"]
    assert notices(look(CUT, lexicon, row(status="queued", step=40))) == []


def test_another_error_is_noted(lexicon: Lexicon) -> None:
    info = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12 (Cannot allocate memory)"
    assert notices(look(FAILED, lexicon, row(info=info))) == ["db_error_differs"]


def test_the_row_is_found_by_id_else_by_name(lexicon: Lexicon) -> None:
    other = row(id=LogText("another"), status="running")
    assert notices(look(CUT, lexicon, other)) == []  # the log prints an id, and it is not this one
    assert notices(look(CUT, lexicon, other, row(status="stopped"))) == ["db_stopped"]
    unnamed = CUT.replace(f'Job ID: "{ID}"\n', "")
    assert notices(look(unnamed, lexicon, other)) == ["db_running"]
    assert notices(look(unnamed, lexicon, other, row())) == []  # two of that name: neither


def test_its_config_is_the_least_trusted(lexicon: Lexicon) -> None:
    job = json.dumps({"job": "extension", "config": {"name": "mugs", "process": [config(train__batch_size=4)]}})
    found = look(CUT, lexicon, row(status="queued", config=job))
    assert found.config.sources == ("log",)
    assert [notice.id for notice in found.warnings if notice.id == "config_differs"] == ["config_differs"]
    bare = CUT[: CUT.index("{")] + CUT[CUT.rindex("}") + 1 :]
    assert look(bare, lexicon, row(status="queued", config=job)).config.get("train.batch_size") == 4
    mine = ConfigText("config.yaml", "config: {process: [{train: {batch_size: 2}}]}")
    assert look(bare, lexicon, row(status="queued", config=job), configs=(mine,)).config.get("train.batch_size") == 2


def test_a_damaged_database_is_only_noted(lexicon: Lexicon) -> None:
    plain = look(CUT, lexicon)
    broken = JobDatabase("aitk_db.db", damaged=True)
    found = analyse("-", [Source("log", "utf-8", [CUT.encode()])], (), lexicon, database=broken)
    assert notices(found) == ["db_damaged"]
    assert found.diagnosis == plain.diagnosis
