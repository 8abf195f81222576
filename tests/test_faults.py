"""A room that fails leaves a gap that the report names, with a code; the rest stands, and the status says what it must."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import pytest

from postmortem import faults, pipeline, reading, rooms
from postmortem.cli.main import _without_debug, run
from postmortem.intake import Intake, dataset, jobdb
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Event
from postmortem.patch.job import as_yaml, from_dump
from postmortem.reading import analysis_of
from postmortem.report import build, chronicle, json_, skipped
from postmortem.scan import Lexicon, scan
from postmortem.vram import ledger
from tests.simulate import config, head, training
from tests.ways import CUTTINGS, DOORS

lexicon_module = import_module("postmortem.scan.lexicon")
building = import_module("postmortem.report.build")  # the function of that name hides it
SETTINGS = config(train__gradient_checkpointing=False)
LOG = head(SETTINGS) + training(400, {0, 1, 2, 3})
SECRET = "a secret prompt"


class Broken(Exception):
    """What no code of ours expects."""


def fail(*_: object, **__: object) -> NoReturn:
    value = SECRET
    raise Broken(value)


ROOMS: dict[str, tuple[object, str]] = {
    "database": (rooms, "joined"),
    "config": (pipeline, "effective"),
    "dataset": (rooms, "bucketed"),
    "diagnosis": (rooms, "diagnose"),
    "dating": (rooms, "dated"),
    "forecast": (rooms, "outlook"),
    "remedies": (rooms, "plan"),
    "folder": (pipeline, "kept"),
    "ledger": (pipeline, "ledger"),
    "skips": (skipped, "part"),
    "buckets": (building, "_buckets"),
    "settings": (building, "that_matter"),
    "timeline": (chronicle, "rows"),
    "pace": (chronicle, "steps"),
    "loss_log": (Intake, "skipped_steps"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mugs"
    (made / "samples").mkdir(parents=True)
    (made / "log.txt").write_text(LOG, encoding="utf-8", newline="")
    (made / "config.yaml").write_text(as_yaml(from_dump(SETTINGS, "mugs")), encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / dataset.NAME).write_text(json.dumps({"a.jpg": [512, 512, "x"]}))
    return made


def analyse(folder: Path, capfd: pytest.CaptureFixture[str], *more: str) -> tuple[int, dict[str, Any], str]:
    data = str(folder.parent / "data")
    status = run(["analyze", str(folder), "--dataset", data, "--format", "json", *more])
    out, err = capfd.readouterr()
    return status, json.loads(out), err


GONE = {
    "config": ("config",),
    "diagnosis": ("failure", "remedies", "memory", "forecast", "ledger"),
    "forecast": ("forecast",),
    "remedies": ("remedies",),
    "skips": ("skips",),
    "buckets": ("buckets",),
    "settings": ("settings",),
    "timeline": ("timeline",),
}


@pytest.mark.parametrize("room", ROOMS)
def test_one_room_that_fails_takes_nothing_else_with_it(
    room: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    status, whole, _ = analyse(folder, capfd)
    assert status == 1
    if room == "ledger":
        monkeypatch.setattr(pipeline, "ledger", lambda memory: fail() if memory else ledger(memory))
    elif room == "config":
        monkeypatch.setattr(pipeline, "effective", fail)
    else:
        monkeypatch.setattr(*ROOMS[room], fail)
    status, report, err = analyse(folder, capfd)
    told = [one for one in report["warnings"] if one["id"].startswith("fault_")]
    # to settle which buckets are right, the dataset's room asks for a verdict
    also = ["fault_dataset"] if room == "diagnosis" else []
    assert [one["id"] for one in told] == [*also, f"fault_{room}"]
    code = re.search(rf"{room}-[0-9a-f]{{6}}", told[-1]["text"])
    assert code
    assert SECRET not in json.dumps(report) + err
    if room == "diagnosis":
        assert status == 3
        assert code[0] in err and err.count("\n") == 1
        assert (report["failure"]["kind"], report["failure"]["confidence"]) == ("unknown", "low")
        assert report["run"]["outcome"] == whole["run"]["outcome"] == "failed"
        assert report["oom_events"] == whole["oom_events"]
    else:
        assert (status, err) == (1, "")
        assert report["failure"]["kind"] == whole["failure"]["kind"]
    parts = ("oom_events", "timeline", "input", "pace", "buckets", "config", "remedies", "settings", "steps", "skips")
    depends = {
        "diagnosis": parts[4:],
        "config": parts[4:],
        "remedies": ("settings",),
        "forecast": ("remedies", "settings"),
    }
    depends["dataset"] = ("buckets", "remedies", "settings")
    for part in parts:
        if part not in (*GONE.get(room, (room,)), *depends.get(room, ()), *(("steps",) if room == "pace" else ())):
            assert report[part] == whole[part], part


def test_every_form_names_what_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rooms, "plan", fail)
    for form in ("terminal", "markdown", "html"):
        for lang, says in (("en", "Fixes are missing"), ("ko", "해결책이 빠졌습니다")):
            assert run(["analyze", str(folder), "--format", form, "--lang", lang]) == 1
            shown = " ".join(capfd.readouterr().out.split())
            assert says in shown
            assert re.search(r"remedies-[0-9a-f]{6}", shown)


def test_a_code_stays_while_lines_move() -> None:
    def one() -> None:
        fail()

    codes = set()
    for _ in range(2):
        try:
            one()
        except Broken as error:
            codes.add(faults.fault_of(error, "config").code)
        try:
            fail()
        except Broken as error:
            codes.add(faults.fault_of(error, "config").code)
    assert len(codes) == 1
    with pytest.raises(MemoryError):
        faults.Faults().guard("config", lambda: exhaust(), lambda: None)


def exhaust(*_: object) -> None:
    raise MemoryError


class Failing:
    """An expression that fails whenever it is tried."""

    def match(self, text: str) -> Any:
        return fail()

    search = finditer = match


@pytest.fixture
def broken_pattern(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pattern that fails whenever it is tried."""
    ident = _loading(knowledge)
    break_expressions(monkeypatch, *(item.regex for item in knowledge.patterns if item.id == ident))
    return ident


def break_expressions(monkeypatch: pytest.MonkeyPatch, *sources: str) -> None:
    """Let these expressions fail, alone and in what they are a part of."""
    parts = [re.sub(r"\(\?P<\w+>", "(?:", source) for source in sources]
    real = lexicon_module.expression

    def expression(source: str) -> Any:
        return Failing() if source in sources or any(f">{part})" in source for part in parts) else real(source)

    monkeypatch.setattr(lexicon_module, "expression", expression)


def _loading(knowledge: Knowledge) -> str:
    return next(
        item.id
        for item in knowledge.patterns
        if item.anchors and any(anchor in LOG for anchor in item.anchors) and item.sets.phase == "model_load"
    )


def test_one_pattern_that_fails_is_left_out_and_named(
    broken_pattern: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, report, _ = analyse(folder, capfd)
    assert status == 1
    [told] = [one for one in report["warnings"] if one["id"] == "fault_pattern"]
    assert broken_pattern in told["text"]
    assert report["failure"]["kind"] == "gpu_oom"
    assert all(row["pattern"] != broken_pattern for row in report["timeline"])


@pytest.mark.parametrize("door", DOORS)
def test_a_pattern_that_fails_is_left_out_in_the_same_way_however_the_log_comes(
    door: str, broken_pattern: str, knowledge: Knowledge, tmp_path: Path
) -> None:
    def reported(name: str, lexicon: Lexicon) -> str:
        with contextmanager(DOORS[name])(LOG.encode(), tmp_path) as opened:
            analysis = analysis_of(msgspec.structs.replace(opened, source="-"), lexicon)
            return json_.render(build(analysis, knowledge))

    lexicon = Lexicon(knowledge)
    whole = reported("file", lexicon)
    assert [one["id"] for one in json.loads(whole)["warnings"]].count("fault_pattern") == 1
    # and again with the same lexicon: what is kept between logs hides nothing
    assert reported(door, lexicon) == whole
    assert reported(door, Lexicon(knowledge)) == whole


def test_a_log_in_pieces_loses_what_the_whole_loses(broken_pattern: str, knowledge: Knowledge) -> None:
    lexicon = Lexicon(knowledge)
    whole = scan([LOG.encode()], lexicon)
    for cutting in CUTTINGS.values():
        lexicon.broken.clear()
        assert scan(cutting(LOG.encode()), lexicon) == whole
        assert [fault.subject for fault in lexicon.broken.faults] == [broken_pattern]


def test_the_next_log_is_told_of_its_own_patterns_only(broken_pattern: str, knowledge: Knowledge) -> None:
    lexicon = Lexicon(knowledge)
    oom = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    subjects = []
    for text in (LOG.encode(), oom, LOG.encode()):
        analysis = pipeline.analyse("-", [pipeline.Source("log", "utf-8", [text])], [], lexicon)
        subjects.append([notice.values.get("subject") for notice in analysis.warnings if notice.id == "fault_pattern"])
    assert subjects == [[broken_pattern], [], [broken_pattern]]


def test_a_field_that_fails_takes_its_sizes_only(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = next(item for item in knowledge.patterns if item.id == "torch.cuda_oom")
    break_expressions(monkeypatch, entry.fields["tried_to_allocate"])
    lexicon = Lexicon(knowledge)
    (event,) = scan([b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"], lexicon).items
    assert isinstance(event, Event)
    assert (event.pattern, event.sizes_mib) == ("torch.cuda_oom", {})
    assert "torch.cuda_oom" in [fault.subject for fault in lexicon.broken.faults]


def test_a_decoration_that_fails_leaves_the_others(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = next(item for item in knowledge.patterns if item.id == "prefix.quoted")
    break_expressions(monkeypatch, broken.regex)
    lexicon = Lexicon(knowledge)
    assert lexicon.peel_prefix("[rank0]: Model Loaded") == "Model Loaded"
    assert lexicon.peel_prefix("> Model Loaded") == "> Model Loaded"
    assert [fault.subject for fault in lexicon.broken.faults] == ["prefix.quoted"]


def test_a_fault_that_no_room_holds_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "build", fail)
    assert run(["analyze", str(folder)]) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert re.fullmatch(
        r"postmortem: internal error \(Broken, fault analyze-[0-9a-f]{6}\); please report it\. .*\n", err
    )
    monkeypatch.setattr(pipeline, "build", exhaust)
    assert run(["analyze", str(folder)]) == 3
    assert capfd.readouterr().err == "postmortem: not enough memory on this machine for this input\n"


def test_debug_tells_places_and_no_values(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(faults, "listener", None)
    monkeypatch.setattr(rooms, "outlook", fail)
    arguments = ["analyze", str(folder), "--", "--debug"]
    assert _without_debug(arguments) == arguments
    assert faults.listener is None
    assert _without_debug(["analyze", "--debug", str(folder)]) == ["analyze", str(folder)]
    assert run(["analyze", str(folder)]) == 1
    err = capfd.readouterr().err
    assert re.search(r"postmortem: fault forecast-[0-9a-f]{6}: Broken: ", err)
    assert re.search(r"postmortem:   postmortem\.rooms:\d+ forecast\n", err)
    assert "value =" not in err


def test_what_depends_on_a_part_that_failed_is_not_done(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    run(["analyze", str(folder), "--format", "json", "-o", str(report)])
    before = (folder / "config.yaml").read_bytes()
    capfd.readouterr()
    monkeypatch.setattr(pipeline, "effective", fail)
    ticket = tmp_path / "ticket.zip"
    for arguments, says in (
        (["fix", str(folder), "--in-place"], "internal error"),
        (["compare", str(folder), str(folder)], "internal error"),
        (["verify", str(report), str(folder)], "internal error"),
        (["bundle", str(folder), "-o", str(ticket)], "not redacted"),
        (["analyze", str(folder), "--format", "markdown"], "not redacted"),
    ):
        assert run(arguments) == 3, arguments
        out, err = capfd.readouterr()
        assert out == ""
        assert says in err and re.search(r"fault config-[0-9a-f]{6}", err)
    assert (folder / "config.yaml").read_bytes() == before
    assert not ticket.exists()
    assert run(["analyze", str(folder), "--format", "markdown", "--no-redact"]) == 1


def test_a_row_of_a_fleet_without_a_verdict_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rooms, "diagnose", fail)
    assert run(["batch", str(folder), "--no-cache", "--workers", "1", "--format", "jsonl"]) == 0
    row = json.loads(capfd.readouterr().out)
    assert row["status"] == "error"
    assert re.search(r"fault diagnosis-[0-9a-f]{6}", row["error"])


def test_a_database_on_which_we_fail_is_as_a_damaged_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / jobdb.NAME).write_bytes(b"SQLite format 3\0")
    monkeypatch.setattr(jobdb, "_opened", fail)
    status, report, _ = analyse(folder, capfd)
    assert status == 1
    assert "db_damaged" in [one["id"] for one in report["warnings"]]


def test_the_witnesses_beside_the_log_are_no_reason_to_say_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reading, "history", fail)
    monkeypatch.setattr(Intake, "witness", fail)
    status, report, _ = analyse(folder, capfd)
    assert status == 1
    assert [one["id"] for one in report["warnings"]][:2] == ["fault_folder", "fault_dating"]
