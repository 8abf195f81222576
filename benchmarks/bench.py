"""Print every ratio against its target, timed in the same call as its reference; nothing here fails a test.

python benchmarks/bench.py [--rows marginal start memory batch pack hostile] [--quick] [--megabytes 500] [--runs 5]

Whole processes, in turns with their reference, a round before to fill the caches, then medians. docs/performance.md
says what each row is and how far its reference can be trusted.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import search
from benchmarks.ratios import HEADER, machine
from benchmarks.rows import ROWS, Bench


def options() -> argparse.Namespace:
    """The command line; `--quick` sets what was not given to sizes for development."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="small sizes and three runs: to look, not to judge")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--megabytes", type=float, help="of the log of the marginal time")
    parser.add_argument("--memory-megabytes", type=float)
    parser.add_argument("--hostile-megabytes", type=float)
    parser.add_argument("--batch-runs", type=int)
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="keep the logs there, for the next call")
    given = parser.parse_args()
    usual = {"runs": 5, "megabytes": 500.0, "memory_megabytes": 2000.0, "hostile_megabytes": 32.0, "batch_runs": 600}
    quick = {"runs": 3, "megabytes": 50.0, "memory_megabytes": 200.0, "hostile_megabytes": 8.0, "batch_runs": 150}
    for name, value in (quick if given.quick else usual).items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


def measure(given: argparse.Namespace, folder: pathlib.Path) -> None:
    """Print the rows asked for, each as it comes."""
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        folder,
        given.megabytes,
        given.memory_megabytes,
        given.hostile_megabytes,
        max(10, given.batch_runs),
        max(1, given.runs),
    )
    print(machine([search.version()]))
    print(HEADER, flush=True)
    for name in given.rows:
        started = time.perf_counter()
        try:
            for row in ROWS[name](bench):
                print(row, flush=True)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name}: not measured: {type(error).__name__}: {error}", flush=True)
        print(f"  ({name}: {time.perf_counter() - started:.0f} s)", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    given = options()
    if given.keep is not None:
        return measure(given, given.keep)
    with tempfile.TemporaryDirectory(prefix="postmortem-bench-") as folder:
        measure(given, pathlib.Path(folder))


if __name__ == "__main__":
    main()
