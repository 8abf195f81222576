"""What a limit leaves out is said, with how much it is; at the limit nothing is said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from postmortem import pipeline
from postmortem.compare import build as compare
from postmortem.intake import IntakeError, folders, jobdb, open_path, outputs
from postmortem.jobconfig import ConfigText, effective
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Notice
from postmortem.pipeline import Analysis, Beside, Source
from postmortem.scan import Lexicon, scan, traceback
from tests.conftest import Analyse
from tests.intake.test_folders import LOG, run_folder
from tests.intake.test_jobdb import database
from tests.intake.test_outputs import weights
from tests.simulate import config, head, training

RUN = head(config()) + training(400, {0, 1, 2, 3})


def told(notices: tuple[Notice, ...], ident: str) -> list[Mapping[str, Any]]:
    """The values of the notices with that id."""
    return [notice.values for notice in notices if notice.id == ident]


def each(text: str, lexicon: Lexicon) -> tuple[Analysis, ...]:
    return pipeline.analyse_each("-", [Source("log", "utf-8", [text.encode()])], [], lexicon)


def test_attempts_of_a_history(lexicon: Lexicon, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_ATTEMPTS", 3)
    assert not told(each(RUN * 3, lexicon)[-1].warnings, "attempts_left_out")
    found = each(RUN * 5, lexicon)
    assert len(found) == 3
    assert told(found[-1].warnings, "attempts_left_out") == [{"count": 2, "read": 3}]
    (note,) = [note for note in compare(found, knowledge).notes if note.id == "attempts_left_out"]
    assert note.text.reveal() == "2 older attempts are not looked at: only the newest 3 are."
    logs = [Source("log", "utf-8", [(RUN * 5).encode()])]
    chosen, history = pipeline.analyse_run("-", logs, [], lexicon, Beside())
    assert not told(chosen.warnings, "attempts_left_out")
    assert told(history[-1].warnings, "attempts_left_out") == [{"count": 2, "read": 3}]


def test_other_jobs(run: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "MAX_OTHERS", 2)
    others = [RUN.replace("mugs", f"other_{number}") for number in range(3)]
    assert not told(run("".join(others[:2]) + RUN).warnings, "other_jobs_left_out")
    found = run("".join(others) + RUN)
    assert len(told(found.warnings, "other_job")) == 2
    assert told(found.warnings, "other_jobs_left_out") == [{"count": 1}]


def test_entries_of_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MAX_ENTRIES", 4)
    run = run_folder(tmp_path / "mugs")
    (run / "logs").mkdir()
    for number in range(4):
        (run / "logs" / f"{number}_log.txt").write_text(LOG)
    assert not told(open_path(run).notices, "entries_left_out")
    (run / "logs" / "notes").write_text("x")
    assert told(open_path(run).notices, "entries_left_out") == [{"read": 4}]
    assert told(open_path(tmp_path).notices, "entries_left_out") == [{"read": 4}]
    empty = tmp_path / "many"
    empty.mkdir()
    for number in range(5):
        (empty / f"{number}.jpg").write_bytes(b"x")
    with pytest.raises(IntakeError, match=r"no log\.txt in the first 4 entries of this folder"):
        open_path(empty)


def test_datasets_and_processes_of_a_job(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(datasets: int, processes: int) -> tuple[Notice, ...]:
        process = "{train: {steps: 3}, datasets: [" + "{folder_path: /a}, " * datasets + "]}, "
        text = "config: {name: a, process: [" + process * processes + "]}"
        return effective(None, [ConfigText("config.yaml", text)], knowledge).warnings

    assert of(200, 1) == of(1, 50) == ()
    assert told(of(203, 1), "datasets_left_out") == [{"count": 3, "read": 200}]
    assert told(of(1, 52), "processes_left_out") == [{"count": 2, "read": 50}]


def test_jobs_of_the_database(run: Analyse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lexicon: Lexicon) -> None:
    monkeypatch.setattr(jobdb, "MAX_ROWS", 2)
    assert jobdb.read(database(tmp_path / "two" / jobdb.NAME, *({"id": str(n)} for n in range(2)))).whole
    found = jobdb.read(database(tmp_path / "three" / jobdb.NAME, *({"id": str(n)} for n in range(3))))
    assert ([row.id.reveal() for row in found.rows], found.whole, found.damaged) == (["2", "1"], False, False)
    logs = [Source("log", "utf-8", [RUN.encode()])]
    (values,) = told(pipeline.analyse("-", logs, [], lexicon, database=found).warnings, "db_jobs_left_out")
    assert values["read"] == 2


def test_frames_of_a_traceback(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traceback, "MAX_FRAMES", 5)
    frames = "".join(f'  File "/a/b.py", line {n}, in f{n}\n    g()\n' for n in range(1, 9))
    text = f"Traceback (most recent call last):\n{frames}ValueError: x\n"
    short = text.replace(frames, frames[: frames.index("  File", 200)])
    assert not told(scan([short.encode()], lexicon).warnings, "frames_left_out")
    assert told(scan([(text * 2).encode()], lexicon).warnings, "frames_left_out") == [{"count": 6}]


def test_what_is_read_of_a_line(lexicon: Lexicon) -> None:
    for size, count in ((16 * 1024, 0), (16 * 1024 + 1, 1), (32 * 1024, 1), (100_000, 1)):
        text = ("x" * size + "\n").encode() * 2
        expected = [{"count": 2 * count}] if count else []
        assert told(scan([text], lexicon).warnings, "long_lines_cut") == expected
        pieces = [text[at : at + 1000] for at in range(0, len(text), 1000)]
        assert told(scan(pieces, lexicon).warnings, "long_lines_cut") == expected


def test_text_of_an_event(lexicon: Lexicon) -> None:
    line = "Error running job: CUDA error: out of memory "
    for size, count in ((2000, 0), (2001, 1)):
        found = scan([f"{head(config())}{line}{'x' * (size - len(line))}\n".encode()], lexicon)
        assert [one["count"] for one in told(found.warnings, "events_cut")] == [count] * bool(count)


def test_processes_that_write_one_log(lexicon: Lexicon) -> None:
    def begun(ranks: int) -> bytes:
        return "".join(f"[rank{n}]: Traceback (most recent call last):\n" for n in range(ranks)).encode()

    assert not told(scan([begun(63)], lexicon).warnings, "writers_left_out")
    assert told(scan([begun(65)], lexicon).warnings, "writers_left_out") == [{"read": 64}]


def test_checkpoints_of_a_name(tmp_path: Path, lexicon: Lexicon) -> None:
    for step in range(12):
        weights(tmp_path / f"mugs_{step:09d}.safetensors")
    assert not _of_folder(tmp_path, lexicon)
    weights(tmp_path / "mugs_000000012.safetensors")
    assert _of_folder(tmp_path, lexicon) == [{"count": 1}]


def _of_folder(folder: Path, lexicon: Lexicon) -> list[Mapping[str, Any]]:
    logs = [Source("log", "utf-8", [RUN.encode()])]
    found = pipeline.analyse("-", logs, [], lexicon, folder=outputs.witness(folder))
    return told(found.warnings, "checkpoints_left_out")
