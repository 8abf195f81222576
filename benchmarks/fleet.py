"""Run `batch` over a generated corpus, check every row, and print ratios; nothing here fails a test.

python benchmarks/fleet.py FOLDER [--runs 10000] [--workers 1 2]

FOLDER is written by benchmarks/corpus.py if it is not there. All times are of this call, on this machine: what counts
is how they stand to each other and to the reference, the time that one process takes to read the same bytes and to
count their lines. On a machine that others use too, compare processor
times.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import corpus

SAMPLE_S = 0.1


def tree_of(pid: int) -> set[int]:
    """The process `pid` and all below it, by /proc."""
    parents: dict[int, int] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                continue
    found = {pid}
    while True:
        more = {child for child, parent in parents.items() if parent in found} - found
        if not more:
            return found
        found |= more


def resident_mib(pid: int) -> float:
    """Resident memory of a process and all below it; pages that they share are counted once for each."""
    total = 0
    for one in tree_of(pid):
        try:
            total += int(pathlib.Path(f"/proc/{one}/statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return total * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def own_seconds(pid: int) -> float:
    """Processor seconds of one process without its children."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(command: list[str], env: dict[str, str]) -> tuple[float, float, float, float]:
    """(seconds, processor seconds, those of the first process alone, peak MiB); the rest with its workers."""
    started = time.perf_counter()
    peak = own = 0.0
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        done = threading.Event()

        def watch() -> None:
            nonlocal peak, own
            while not done.wait(SAMPLE_S):
                peak = max(peak, resident_mib(process.pid))
                with contextlib.suppress(OSError, IndexError):
                    own = own_seconds(process.pid)

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        done.set()
        watcher.join()
    if status:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, own, peak


def read_all(folder: pathlib.Path) -> tuple[float, int]:
    """(seconds, bytes): one process reads every file and counts its lines."""
    started = time.perf_counter()
    size = lines = 0
    for place, _, names in os.walk(folder):
        for name in names:
            path = pathlib.Path(place, name)
            if path.is_file():
                content = path.read_bytes()
                size += len(content)
                lines += content.count(b"\n")
    return time.perf_counter() - started, size


def rows_in(path: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    if not corpus.manifest(options.folder).is_file():
        truths = corpus.write(options.folder, options.runs)
        corpus.manifest(options.folder).write_text("".join(json.dumps(one) + "\n" for one in truths), encoding="utf-8")
    truths = rows_in(corpus.manifest(options.folder))
    read_all(options.folder)
    reference, size = read_all(options.folder)
    print(f"{len(truths):,} paths, {size / 1e6:,.0f} MB; reference: {reference:.1f} s to read them and count lines")
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "XDG_CACHE_HOME": home}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        out = pathlib.Path(home) / "rows.jsonl"
        command = [
            sys.executable,
            "-m",
            "postmortem",
            "batch",
            str(options.folder),
            "--format",
            "jsonl",
            "-o",
            str(out),
        ]
        first: float | None = None
        expected: list[dict[str, Any]] | None = None
        for workers in options.workers:
            last = workers == options.workers[-1]
            cached = [] if last else ["--no-cache"]
            seconds, processor, own, peak = measured([*command, "--workers", str(workers), *cached], env)
            rows = rows_in(out)
            wrong = corpus.differences(truths, rows)
            same = "" if expected is None else f", rows {'equal' if rows == expected else 'NOT EQUAL'}"
            expected = rows if expected is None else expected
            speed = "" if first is None else f", {first / seconds:.2f} x one"
            first = seconds if first is None else first
            print(
                f"{workers} worker(s): {seconds:6.1f} s, {seconds / reference:5.1f} x the reference{speed}, "
                f"{1000 * processor / len(truths):.1f} ms of processor a path, "
                f"{own / processor:.0%} of it in the first process, peak {peak:.0f} MiB in all, "
                f"{len(rows):,} rows{same}, {len(wrong)} wrong",
                flush=True,
            )
            for line in wrong[:10]:
                print("   ", line)
        again, _, _, peak = measured([*command, "--workers", str(options.workers[-1])], env)
        same = "equal" if rows_in(out) == expected else "NOT EQUAL"
        print(
            f"again, nothing changed: {again:.1f} s, {seconds / again:.1f} x faster, peak {peak:.0f} MiB, rows {same}"
        )


if __name__ == "__main__":
    main()
