"""Files, folders, encodings and container records all become the same text."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postmortem.intake import IntakeError, open_path, open_stream, sources
from postmortem.intake.sources import read_config
from postmortem.reading import analysis_of
from postmortem.scan import Lexicon
from tests.simulate import config, head, training

TEXT = "Running 1 job\n# Running job: 컵\nRunning  1 process\nModel Loaded\n" * 3


def read(path: Path) -> str:
    return b"".join(open_path(path).logs[-1].chunks()).decode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(TEXT.encode(encoding))
    assert read(path) == TEXT
    assert b"".join(open_stream(io.BytesIO(TEXT.encode(encoding))).logs[0].chunks()).decode() == TEXT


def test_stray_bytes_are_kept_for_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(TEXT.encode() + b"\xff\xfe stray\n")
    assert b"".join(open_path(path).logs[0].chunks()).endswith(b"\xff\xfe stray\n")


def test_container_records_become_their_text(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    lines = [*TEXT.splitlines(keepends=True), "\rmugs: 1/2", "\rmugs: 2/2"]
    path.write_text("".join(json.dumps({"log": line, "stream": "stdout", "time": "t"}) + "\n" for line in lines))
    assert read(path).replace("\n", "") == "".join(lines).replace("\n", "")


def test_a_log_that_starts_with_a_config_dump_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    dump = '{\n    "type": "sd_trainer",\n    "log": "x"\n}\n'
    path.write_text(dump)
    assert read(path) == dump


def test_a_run_folder_has_its_logs_oldest_first(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name, text in (("logs/10_log.txt", "ten"), ("logs/2_log.txt", "two"), ("log.txt", "new"), ("logs/x.txt", "no")):
        (tmp_path / name).write_text(text)
    (tmp_path / "config.yaml").write_text("job: extension")
    (tmp_path / ".job_config.json").write_text("{}")
    opened = open_path(tmp_path)
    assert [log.name for log in opened.logs] == ["logs/2_log.txt", "logs/10_log.txt", "log.txt"]
    assert [config.name for config in opened.configs] == [".job_config.json", "config.yaml"]


def test_a_folder_with_one_loose_log(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("x")
    assert [log.name for log in open_path(tmp_path).logs] == ["train.log"]
    (tmp_path / "other.log").write_text("y")
    with pytest.raises(IntakeError, match="several logs"):
        open_path(tmp_path)


def test_config_files_have_limits(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_bytes(b"x" * 3_000_000)
    with pytest.raises(IntakeError, match="larger"):
        read_config(big)
    with pytest.raises(IntakeError):
        read_config(tmp_path / "none.yaml")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_config_that_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "config.yaml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(IntakeError, match="not a file"):
            read_config(path)


def test_an_append_in_utf_16_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(TEXT.encode() + "Error running job: no\r\n".encode("utf-16-le"))
    assert read(path).endswith("Error running job: no\r\n")


def test_a_tail_of_nul_is_no_binary(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(TEXT.encode() + b"\0" * 5000)
    assert read(path) == TEXT


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("cp949", "작업이 실패했습니다: 메모리가 부족합니다"),
        ("gbk", "训练失败，显存不足，请降低分辨率"),
        ("cp1252", "Échec de l'entraînement : mémoire épuisée à l'étape"),
    ],
)
def test_code_pages_of_consoles(tmp_path: Path, encoding: str, words: str) -> None:
    path = tmp_path / "run.log"
    text = f"{words}\n" + "Running 1 job\nRunning  1 process\nModel Loaded\n" * 3
    path.write_bytes(text.encode(encoding))
    assert open_path(path).logs[0].encoding == encoding
    assert read(path) == text


def test_stray_bytes_in_utf_8_are_no_code_page(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes((TEXT + "█▌" * 30).encode() + b"\xe9\xff\xb0\xa1")
    assert open_path(path).logs[0].encoding == "utf-8"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_writer_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "lone"
    os.mkfifo(pipe)
    with pytest.raises(IntakeError, match="pipe it in"):
        open_path(pipe)
    os.mkfifo(tmp_path / "x; touch owned")
    with pytest.raises(IntakeError, match=r"`cat '.*/x; touch owned' \| postmortem`"):
        open_path(tmp_path / "x; touch owned")


def test_an_encoding_that_was_guessed_is_said_to_be(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes("Running 1 job\nDataset: C:/été/façade/naïve\n".encode("cp1252"))
    opened = open_path(log)
    assert opened.logs[0].encoding == "cp1252"
    assert opened.logs[0].repairs == ("code_page",)


def changing(path: Path, change: Callable[[], object]) -> Iterator[bytes]:
    """The log at `path`, to which something happens once its first piece was read."""
    pieces = open_path(path).logs[0].chunks()
    yield next(pieces)
    change()
    yield from pieces


BIG = b"".join(b"line %d of a log\n" % number for number in range(400_000))


def test_a_log_that_grows_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(BIG)
    with path.open("ab", buffering=0) as more:
        assert b"".join(changing(path, lambda: more.write(b"more\n"))) == BIG + b"more\n"


def test_a_log_that_is_renamed_or_removed_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(BIG)
    assert b"".join(changing(path, lambda: path.rename(tmp_path / "old.log"))) == BIG
    path.write_bytes(BIG)
    assert b"".join(changing(path, path.unlink)) == BIG


def test_a_log_that_is_cut_or_replaced_is_not_half_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(BIG)
    with pytest.raises(OSError, match="replaced or cut short"):
        list(changing(path, lambda: os.truncate(path, 100)))
    for content in (BIG.replace(b"line 3", b"LINE 3"), BIG[:1000], b""):
        path.write_bytes(BIG)
        log = open_path(path).logs[0]
        path.write_bytes(content)
        with pytest.raises(OSError, match="replaced or cut short"):
            list(log.chunks())
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(log.chunks())


def test_a_log_that_grows_faster_than_it_is_read_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_GROWN", 1 << 20)
    path = tmp_path / "run.log"
    path.write_bytes(BIG)
    pieces = open_path(path).logs[0].chunks()
    with pytest.raises(OSError, match="grows faster"), path.open("ab") as more:
        for piece in pieces:
            more.write(piece)
            more.flush()


def test_what_is_left_unread_is_said(tmp_path: Path, lexicon: Lexicon) -> None:
    run = tmp_path / "mugs"
    (run / "logs").mkdir(parents=True)
    log = head(config()) + training(20, {3})
    (run / "log.txt").write_text(log)
    for number in range(53):
        (run / "logs" / f"{number}_log.txt").write_text("Running 1 job\n")
    (run / "config.yaml").write_text("# " + "x" * 2_000_001)
    (run / "loss_log.db").write_bytes(b"SQLite format 3\0 and then nothing")
    opened = open_path(run)
    assert len(opened.logs) == 51
    found = {notice.id: notice.values for notice in analysis_of(opened, lexicon).warnings}
    assert found["old_logs_left_out"] == {"count": 3, "read": 51}
    assert "larger than 2000000 bytes" in found["config_damaged"]["problem"].reveal()
    assert "loss_log_unread" in found
