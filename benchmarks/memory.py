"""Print how much memory the command takes for logs of growing size on standard input; nothing here fails a test.

python benchmarks/memory.py [--megabytes 2 200 2000] [--form bars quoted docker json html]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.simulate import bar, buckets, config, head

PIECE = 1 << 20


def bars(size: int) -> Iterator[str]:
    """A run of about `size` characters that is nothing but its bar, with a fatal error at its end."""
    total = 99_999_999
    yield head(config(train__steps=total)) + buckets({"512x512": 40, "1024x1024": 12})
    made = first = 0
    while made < size:
        rows: list[str] = []
        for step in range(first, first + 2000):
            postfix = f", lr: 1.0e-04 loss: {0.3 + step % 7919 / 100000:.5f}"
            rows.append(bar("mugs", step, total, 2 * step, postfix) + bar("mugs", step + 1, total, 2 * step, postfix))
        piece = "".join(rows)
        first += 2000
        made += len(piece)
        yield piece
    yield "\nError running job: CUDA error: out of memory\n"


def lines(change: Callable[[str], str]) -> Callable[[int], Iterator[str]]:
    """The same with a draw a line, and each line changed."""

    def form(size: int) -> Iterator[str]:
        for piece in bars(size):
            text = piece.replace("\r", "\n")
            yield "".join(change(line) + "\n" for line in text.split("\n"))

    return form


FORMS: dict[str, Callable[[int], Iterator[str]]] = {
    "bars": bars,
    "quoted": lines(lambda line: "> " + line),
    "docker": lines(lambda line: "2026-02-03T04:05:06.123456789Z " + line),
    "json": lines(lambda line: json.dumps({"log": line + "\n", "stream": "stderr"})),
    "html": lines(lambda line: line.replace("<", "&lt;").replace('"', "&quot;")),
    "indented": lines(lambda line: "    " + line),
    "one line": lambda size: (piece.replace("\n", "\r") for piece in bars(size)),
    "no breaks": lambda size: (re.sub(r"[\r\n]", " ", piece) for piece in bars(size)),
    "plain text": lines(lambda line: "Loaded a file and went on with the next one"),
    "events": lines(lambda line: "Error running job: CUDA out of memory. Tried to allocate 2.00 MiB."),
}


def command_for(path: str) -> list[str]:
    """The command on the log at `path` (``-``: standard input), which prints its own peak."""
    return [sys.executable, str(pathlib.Path(__file__)), "--child", path]


def peak_mib(form: str, size: int, encoding: str = "utf-8") -> tuple[float, float]:
    """(peak resident memory in MiB, seconds) of the command reading `size` characters of `form` from a pipe."""
    started = time.perf_counter()
    with subprocess.Popen(command_for("-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        for piece in FORMS[form](size):
            child.stdin.write(piece.encode(encoding))
        child.stdin.close()
        kib = int(child.stdout.read().split()[-1])
    return kib / 1024, time.perf_counter() - started


def peak_of_file_mib(path: pathlib.Path, env: dict[str, str] | None = None, *, piped: bool = False) -> float:
    """Peak resident memory in MiB of the command reading the file at `path`, or the same bytes from a pipe."""
    if not piped:
        done = subprocess.run(command_for(str(path)), env=env, stdout=subprocess.PIPE, check=True)
        return int(done.stdout.split()[-1]) / 1024
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
        done = subprocess.run(command_for("-"), env=env, stdin=cat.stdout, stdout=subprocess.PIPE, check=True)
    return int(done.stdout.split()[-1]) / 1024


def together_mib(path: pathlib.Path, env: dict[str, str] | None = None) -> float:
    """The most memory in MiB that the command and the processes it starts had at one time, reading the file at `path`.

    A page that several have counts once; looked at every 10 ms. Raises OSError where there is no /proc that tells.
    """
    peak = 0
    with subprocess.Popen(command_for(str(path)), env=env, stdout=subprocess.DEVNULL) as command:
        while command.poll() is None:
            peak = max(peak, _proportional_kib(command.pid))
            time.sleep(0.01)
    if not peak:
        raise OSError("/proc does not tell")
    return peak / 1024


def _proportional_kib(pid: int) -> int:
    process = pathlib.Path("/proc") / str(pid)
    try:
        own = int(re.findall(r"Pss:\s*(\d+)", (process / "smaps_rollup").read_text())[0])
        children = (process / "task" / str(pid) / "children").read_text().split()
    except (OSError, IndexError):  # it has ended, or there is no such file
        return 0
    return own + sum(_proportional_kib(int(child)) for child in children)


def own_peak_kib() -> int:
    """The most resident memory that this process had, in KiB.

    Not from `getrusage` where there is /proc: that counts what the parent had at the fork as the child's own.
    """
    status = pathlib.Path("/proc/self/status")
    if status.is_file():
        return int(re.findall(r"VmHWM:\s*(\d+)", status.read_text())[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def child(path: str) -> None:
    """Run the command on the log at `path`, then print this process's peak."""
    import contextlib
    import io

    from postmortem.cli.main import run

    with contextlib.redirect_stdout(io.StringIO()):
        run(["analyze", path, "--format", "json", "-o", "/dev/null"])
    print(own_peak_kib())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[2, 200, 2000])
    parser.add_argument("--form", nargs="+", choices=FORMS, default=["bars"])
    parser.add_argument("--encoding", default="utf-8")
    parser.add_argument("--child", metavar="LOG")
    options = parser.parse_args()
    if options.child:
        return child(options.child)
    for form in options.form:
        for megabytes in options.megabytes:
            mib, seconds = peak_mib(form, megabytes * 1_000_000, options.encoding)
            print(
                f"{form:12} {options.encoding:10} {megabytes:6} MB  peak {mib:7.1f} MiB  {seconds:6.1f} s", flush=True
            )


if __name__ == "__main__":
    main()
