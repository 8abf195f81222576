"""Arguments and surroundings that mean nothing, or would keep us waiting: one line and a documented status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from postmortem.cli.main import run
from tests.cli.test_guard import CONFIG, LOG

COMMAND = [sys.executable, "-m", "postmortem"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "run.log").write_bytes(LOG)
    (tmp_path / "job.yaml").write_bytes(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", ""],
        ["batch", ""],
        ["watch", "--once", ""],
        ["check", ""],
        ["fix", ""],
        ["compare", "run.log", ""],
        ["bundle", "run.log", "-o", ""],
        ["analyze", "run.log", "--dataset", ""],
        ["analyze", "run.log", "--dataset="],
        ["analyze", "run.log", "--patterns", ""],
        ["analyze", "run.log", "--config="],
        ["analyze", "--", ""],
    ],
)
def test_an_empty_argument_is_not_the_current_folder(
    here: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and "an argument is empty" in told.err and told.err.count("\n") == 1
    assert sorted(path.name for path in here.iterdir()) == ["job.yaml", "run.log"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["analyze", "run.log"],
        ["check", "job.yaml"],
        ["compare", "run.log", "run.log"],
        ["batch", "run.log", "--format", "jsonl", "--no-cache"],
    ],
)
def test_a_dash_to_write_is_stdout(here: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == run([*arguments, "-o", "-"]) == 0
    out = capsys.readouterr().out
    assert out and out[: len(out) // 2] == out[len(out) // 2 :]
    assert not (here / "-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["fix", "run.log", "-o", "-"],
        ["bundle", "run.log", "-o", "-"],
        ["analyze", "run.log", "--redact", "--redaction-map", "-"],
        ["batch", "run.log", "--html", "-"],
        ["batch", "run.log", "--groups", "-"],
    ],
)
def test_a_dash_where_a_file_must_be_is_refused(
    here: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    told = capsys.readouterr()
    assert told.out == "" and "give" in told.err and told.err.count("\n") == 1
    assert not (here / "-").exists()


@pytest.mark.parametrize("command", [["check", "job.yaml"], ["fix", "run.log"], ["analyze", "run.log"]])
def test_a_size_that_is_no_number(here: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for size in ("nan", "inf", "-nan"):
        assert run([*command, f"--gpu={size}"]) == 2
        assert capsys.readouterr().out == ""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
def test_a_pipe_is_written_to_only_if_somebody_reads_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    assert run(["analyze", "run.log", "-o", "pipe"]) == 3
    assert capsys.readouterr().err.endswith("pipe: a pipe that nobody reads; start its reader first\n")
    got: list[bytes] = []
    held = os.open("pipe", os.O_RDWR)  # so that neither side waits for the other to come
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_bytes()))
    reader.start()
    assert run(["analyze", "run.log", "--format", "html", "-o", "pipe"]) == 0
    os.close(held)
    reader.join(30)
    assert got[0].startswith(b"<!") and len(got[0]) > 1 << 14
    assert run(["analyze", "run.log", "-o", "/dev/null"]) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="sockets with names")
def test_a_socket_is_no_place_for_a_report(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert run(["analyze", "run.log", "-o", "s"]) == 2
    assert capsys.readouterr().err.endswith("s: neither a file nor a pipe; give a file name\n")


def test_an_encoding_in_which_no_line_can_be_written(here: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "none.log"], capture_output=True, env={**os.environ, "PYTHONIOENCODING": "idna"}, timeout=60
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.startswith(b"postmortem: none.log: no such file")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_while_it_starts_is_no_fault(here: Path) -> None:
    """From the first line of ours on; before it, Python itself starts."""
    # the command says when it starts, so that the moments do not depend on the machine
    heard = "import os, signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = f"{heard}; import postmortem.__main__ as command; os.write(1, b'.'); command.main()"
    for wait in (0.004, 0.01, 0.02, 0.04, 0.06, 0.1, 0.15, 0.25):
        read, write = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-c", script, "/dev/fd/0"],
            stdin=read,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        os.close(read)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=60)
        os.close(write)
        assert process.returncode in (130, -signal.SIGINT), (wait, told)  # which a shell gives as 130, both
        assert out == b"" and told in (b"", b"postmortem: interrupted\n"), (wait, told)
