"""What must always hold of a run folder: the log has the word, and what is not the run's counts for nothing."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postmortem.intake import open_path
from postmortem.pipeline import Source, analyse
from postmortem.report import build, json_, markdown, terminal
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from tests.intake.test_jobdb import database
from tests.intake.test_outputs import weights
from tests.simulate import config, finished, head, training

SAVED = "\nSaving at step 20\nSaved checkpoint to /x/output/mugs/mugs_000000020.safetensors\n"
LOGS = {
    "early": head(config()) + training(400, {5, 6, 7, 8}),
    "later": head(config(save__save_every=20))
    + training(400, set(), until=20)
    + SAVED
    + training(400, {20, 21, 22, 23}, start=20),
    "skips": head(config()) + training(40, {7, 8}) + finished(),
    "done": head(config()) + training(40, set()) + finished(),
    "cut": head(config()) + training(400, set(), until=30),
    "killed": head(config()) + training(400, set(), until=30) + "\nJob process terminated with signal SIGKILL.\n",
}
INFO = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.00 GiB is free."
)


def look(folder: Path, lexicon: Lexicon, lang: str = "en") -> dict[str, Any]:
    opened = open_path(folder)
    logs = [Source(log.name, log.encoding, log.chunks(), log.repairs) for log in opened.logs]
    found = analyse(
        "-",
        logs,
        opened.configs,
        lexicon,
        skipped_steps=opened.skipped_steps(),
        folder=opened.witness(),
        database=opened.database(),
    )
    report = build(found, lexicon.knowledge, lang)
    texts = Texts(lexicon.knowledge, lang)
    for shown in (markdown.render(report, texts), terminal.render(report, texts)):
        assert "word.safe" not in shown
        assert "warning." not in shown
    value: dict[str, Any] = json.loads(json_.render(report))
    return value


def run_folder(path: Path, log: str) -> Path:
    path.mkdir(parents=True)
    (path / "log.txt").write_text(log, newline="")
    (path / ".job_config.json").write_text(json.dumps({"config": {"name": "mugs", "process": [config()]}}))
    (path / "samples").mkdir()
    (path / "samples" / "1770000000000__000000000_0.jpg").write_bytes(b"x")
    weights(path / "mugs_000000020.safetensors", step=20)
    (path / "optimizer.pt").write_bytes(b"PK" + b"\0" * 50 + b"PK\x05\x06")
    return path


@pytest.mark.parametrize("log", LOGS)
def test_unrelated_files_change_nothing(tmp_path: Path, lexicon: Lexicon, log: str) -> None:
    plain = look(run_folder(tmp_path / "plain" / "mugs", LOGS[log]), lexicon)
    run = run_folder(tmp_path / "more" / "mugs", LOGS[log])
    for name in (
        "notes.txt",
        "other.log",
        "loss.png",
        "mugs_1.safetensors.tmp",
        ".DS_Store",
        "Thumbs.db",
        "mugs_000000999.txt",
    ):
        (run / name).write_text("Error running job: no\n")
    for name in ("vae", "cups_000000900", "mugs_0000_5", "CRITIC_mugs_000000900"):
        weights(run / f"{name}.safetensors", cut=3)
    for name in ("mugs_000000777", "latents", "samples/.thumbs", "samples/old"):
        (run / name).mkdir()
    for name in ("readme.txt", "99__000000400_0.gif", "x__000000400_0.jpg", "1__5_0.jpg"):
        (run / "samples" / name).write_bytes(b"x")
    assert look(run, lexicon) == plain


@pytest.mark.parametrize("log", LOGS)
def test_checkpoints_and_database_never_change_the_verdict_that_the_log_gives(
    tmp_path: Path, lexicon: Lexicon, log: str
) -> None:
    run = run_folder(tmp_path / "toolkit" / "output" / "mugs", LOGS[log])
    bare = run_folder(tmp_path / "bare" / "mugs", LOGS[log])
    for name in ("mugs_000000020.safetensors", "optimizer.pt"):
        (bare / name).unlink()
    status, info = ("completed", "Training completed") if log in ("skips", "done") else ("running", "Training")
    if log in ("early", "later"):
        status, info = "error", INFO
    database(tmp_path / "toolkit" / "aitk_db.db", {"status": status, "info": info, "step": 20, "total_steps": 400})
    one, other = look(run, lexicon), look(bare, lexicon)
    assert one["failure"] == other["failure"]
    assert one["remedies"] == other["remedies"]
    for key in ("last_completed_step", "last_saved_step", "outcome", "total_steps"):
        assert one["run"][key] == other["run"][key]


def test_both_languages_say_the_same_of_a_damaged_folder(tmp_path: Path, lexicon: Lexicon) -> None:
    run = run_folder(tmp_path / "mugs", LOGS["later"])
    weights(run / "mugs_000000040.safetensors", cut=9)
    (run / "mugs_000000060.safetensors").write_bytes(b"")
    (run / "optimizer.pt").write_bytes(b"PK")
    english, korean = look(run, lexicon), look(run, lexicon, "ko")
    assert [item["id"] for item in english["warnings"]] == [item["id"] for item in korean["warnings"]]
    assert {"checkpoint_torn", "checkpoint_empty", "optimizer_torn"} <= {item["id"] for item in english["warnings"]}
    assert english["run"]["safe_step"] == korean["run"]["safe_step"] == 20


def test_the_folder_of_a_later_attempt_says_nothing_of_an_earlier_one(tmp_path: Path, lexicon: Lexicon) -> None:
    run = run_folder(tmp_path / "mugs", LOGS["early"])
    opened = open_path(run)
    logs = [
        Source("logs/0_log.txt", "utf-8", [LOGS["early"].encode()]),
        Source("log.txt", "utf-8", [LOGS["cut"].encode()]),
    ]
    first = analyse("-", logs, (), lexicon, attempt=1, folder=opened.witness())
    assert first.kept.source is None


@pytest.mark.parametrize("seed", range(20))
def test_any_bytes_in_a_folders_files_are_survived(tmp_path: Path, lexicon: Lexicon, seed: int) -> None:
    chance = random.Random(seed)
    run = run_folder(tmp_path / "mugs", LOGS["later"])
    database(run / "aitk_db.db", {"info": INFO})
    plain = look(run, lexicon)["failure"]
    for name in ("mugs_000000020.safetensors", "optimizer.pt", "aitk_db.db", ".job_config.json"):
        raw = bytearray((run / name).read_bytes())
        for _ in range(chance.randrange(1, 40)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        (run / name).write_bytes(raw[: chance.randrange(len(raw) + 1)])
    assert look(run, lexicon)["failure"] == plain


def test_a_database_of_a_stranger_is_only_text(tmp_path: Path, lexicon: Lexicon) -> None:
    run = run_folder(tmp_path / "mugs", LOGS["early"])
    database(
        run / "aitk_db.db",
        {"info": "\x1b[31m<script>DefaultCPUAllocator\x1b]8;;http://x\x07" * 50, "status": "completed\x1b[2J"},
    )
    with closing(sqlite3.connect(run / "aitk_db.db")) as file, file:
        file.execute("CREATE TRIGGER t AFTER UPDATE ON Job BEGIN DELETE FROM Job; END")
    report = json.dumps(look(run, lexicon))
    assert "\\u001b" not in report
    assert "\\u0007" not in report
