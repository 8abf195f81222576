"""Print ratios against references timed in the same call; nothing here fails a test.

python benchmarks/bench.py [--runs 7] [--megabytes 1]
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.simulate import buckets, config, finished, head, training

REFERENCE = [sys.executable, "-c", "import typer, rich.console, regex, yaml"]


def timed(command: list[str], runs: int) -> float:
    """Median seconds of `command` as a whole process, after one run to warm up."""
    seconds: list[float] = []
    for index in range(runs + 1):
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        if index:
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def log_of(megabytes: float) -> str:
    """A run with scattered skips, about `megabytes` long."""
    steps = int(megabytes * 1_000_000 / 230)
    skipped = set(range(50, steps, 97))
    table = buckets({"512x512": 40, "768x768": 30, "1024x1024": 12})
    return head(config(train__steps=steps)) + table + training(steps, skipped, buffered=True) + finished()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--megabytes", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "run.log"
        log.write_text(log_of(options.megabytes), encoding="utf-8", newline="")
        small = pathlib.Path(folder) / "small.log"
        small.write_text(log_of(0.1), encoding="utf-8", newline="")
        reference = timed(REFERENCE, options.runs)
        rows = [
            ("shell to JSON, large log", [sys.executable, "-m", "postmortem", str(log), "--format", "json"], 1.5),
            ("shell to JSON, 100 kB log", [sys.executable, "-m", "postmortem", str(small), "--format", "json"], 1.5),
            ("--version", [sys.executable, "-m", "postmortem", "--version"], 0.7),
            ("--help", [sys.executable, "-m", "postmortem", "--help"], 0.9),
        ]
        print(f"reference: import typer, rich.console, regex, yaml; {log.stat().st_size:,} bytes of log")
        for name, command, target in rows:
            ratio = timed(command, options.runs) / reference
            print(f"{name:28} {ratio:5.2f} x the reference (target {target})")


if __name__ == "__main__":
    main()
