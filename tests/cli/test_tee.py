"""`--tee`: the run is seen as it comes, the verdict at its end, whatever happens to the run or the terminal."""

from __future__ import annotations

import gzip
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulate import config, finished, head, training

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals and signals of POSIX")
FAILING = (head(config()) + training(400, {0, 1, 2, 3})).encode()
FINE = (head(config()) + training(40, []) + finished()).encode()
COMMAND = [sys.executable, "-m", "postmortem"]


def started(*arguments: str, stderr: int = subprocess.PIPE, stdin: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *arguments], stdin=stdin, stdout=subprocess.PIPE, stderr=stderr)


def arrived(descriptor: int, wanted: bytes, seconds: float = 20) -> bytes:
    """What comes out until `wanted` has."""
    got = b""
    until = time.monotonic() + seconds
    while wanted not in got:
        ready, _, _ = select.select([descriptor], [], [], max(0, until - time.monotonic()))
        piece = os.read(descriptor, 1 << 16) if ready else b""
        if not piece:
            raise AssertionError(f"not there: {wanted!r}; got {got[-300:]!r}")
        got += piece
    return got


def send(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


@pytest.mark.parametrize("command", [("--tee",), ("analyze", "--tee"), ("analyze", "-", "--tee"), ("-", "--tee")])
def test_each_byte_is_seen_while_the_run_still_writes(command: tuple[str, ...]) -> None:
    process = started(*command)
    assert process.stderr is not None
    for piece in (b"R", b"unning 1 job\n", b"\rmugs:   3%|3 ", b"\rmugs:   4%"):  # less than a line, and no line's end
        send(process, piece)
        assert arrived(process.stderr.fileno(), piece) == piece
    out, err = process.communicate(FAILING, timeout=60)
    assert process.returncode == 1
    assert err == FAILING
    assert b"GPU out of memory" in out


def test_stdout_holds_the_report_and_nothing_else(tmp_path: Path) -> None:
    weird = FAILING + b"\x1b]0;t\x07 \xff\xfe \x00 \x1b[31mred \xe2\x80\xae"
    plain = subprocess.run([*COMMAND, "--format", "json"], input=weird, capture_output=True, timeout=60, check=False)
    passed = subprocess.run(
        [*COMMAND, "--tee", "--format", "json"], input=weird, capture_output=True, timeout=60, check=False
    )
    assert passed.stdout == plain.stdout
    assert passed.stderr == weird
    out = tmp_path / "report.md"
    done = subprocess.run([*COMMAND, "--tee", "-o", out], input=FINE, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", FINE)
    assert out.read_text(encoding="utf-8").startswith("The run completed")


def test_the_first_interrupt_ends_the_run_and_not_the_report() -> None:
    process = started("--tee")
    assert process.stderr is not None
    send(process, FAILING)
    arrived(process.stderr.fileno(), FAILING[-50:])
    process.send_signal(signal.SIGINT)
    arrived(process.stderr.fileno(), b"Ctrl-C again ends")
    send(process, b"KeyboardInterrupt\n")
    assert arrived(process.stderr.fileno(), b"KeyboardInterrupt\n")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert b"GPU out of memory" in out


def test_the_second_interrupt_ends_at_once() -> None:
    process = started("--tee")
    assert process.stderr is not None
    send(process, FAILING)
    arrived(process.stderr.fileno(), FAILING[-50:])
    process.send_signal(signal.SIGINT)
    arrived(process.stderr.fileno(), b"without a report\n")
    process.send_signal(signal.SIGINT)
    with process:
        assert process.wait(timeout=20) == 130
        assert process.stdout is not None and process.stdout.read() == b""


def test_nobody_reads_stderr_any_more() -> None:
    reads, writes = os.pipe()
    process = started("--tee", stderr=writes)
    os.close(writes)
    send(process, FAILING[:2000])
    arrived(reads, FAILING[:2000])
    os.close(reads)
    out, _ = process.communicate(FAILING[2000:], timeout=60)
    assert process.returncode == 1
    assert b"GPU out of memory" in out


def test_stderr_is_closed() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec {sys.executable} -m postmortem --tee 2>&-"],
        input=FAILING,
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert b"GPU out of memory" in done.stdout


@pytest.mark.parametrize("start", [b" \n" * 600, b"\x00\x01\x02\xff" * 300, b"dear diary\n" * 200])
def test_a_run_that_is_no_log_is_not_broken_off(start: bytes) -> None:
    process = started("--tee")
    assert process.stderr is not None
    send(process, start)
    arrived(process.stderr.fileno(), start)
    time.sleep(0.3)
    send(process, b"still here\n")
    arrived(process.stderr.fileno(), b"still here\n")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.count(b"\n")) == (3, b"", 1)


def test_a_packed_log_is_read_and_not_shown() -> None:
    done = subprocess.run(
        [*COMMAND, "--tee"], input=gzip.compress(FAILING), capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"GPU out of memory" in done.stdout


def test_it_goes_with_a_pipe_only(tmp_path: Path, in_terminal: Callable[..., tuple[int, bytes]]) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(FAILING)
    done = subprocess.run([*COMMAND, str(log), "--tee"], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    assert b"--tee goes with a pipe" in done.stderr
    status, shown = in_terminal(*COMMAND, "--tee")
    assert status == 2
    assert b"nothing is piped in" in shown


def test_on_a_terminal_the_report_starts_on_a_line_of_its_own(in_terminal: Callable[..., tuple[int, bytes]]) -> None:
    cut = FAILING + b"\rmugs:   4%|# \x1b[31m\x1b]8;;http://x"  # ends within a bar, a colour and an open link
    status, shown = in_terminal(*COMMAND, "--tee", stdin=cut)
    assert status == 1
    before, _, report = shown.partition(b"\x1b]8;;http://x")
    assert before.replace(b"\r\n", b"\n").endswith(b"\rmugs:   4%|# \x1b[31m")
    assert report.startswith(b"\x1b\\\x1b[0m\x1b[?25h\r\n\r\n\x1b[1;31mGPU out of memory")


def test_a_file_with_run_and_report_keeps_them_apart() -> None:
    done = subprocess.run(
        [*COMMAND, "--tee"],
        input=FAILING.rstrip(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith(FAILING.rstrip() + b"\n\nGPU out of memory")
