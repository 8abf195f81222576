"""All targets, one after the other, each for its share of the time: `make fuzz TIME=600`, or some: `TARGETS="scan intake"`.

Prints for each target what it did, and ends with 1 where one found something; the inputs then lie in build/fuzz/TARGET.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

from tests.fuzz.fuzzer import BUILD
from tests.fuzz.targets import TARGETS

_FIGURES = re.compile(r"^stat::(\w+):\s+(\d+)", re.MULTILINE)
_REPORTED = ("crash-", "timeout-", "oom-", "slow-unit-", "leak-")
LOST_S = 120
"""After the time is over; a fuzzer that goes on has lost its way."""


def fuzz(name: str, time_s: int) -> tuple[str, list[Path]]:
    """Fuzz one target: a line of figures, and what was found."""
    place = BUILD / name
    place.mkdir(parents=True, exist_ok=True)
    before = set(place.iterdir())
    started, cpu = time.time(), _cpu_s()
    with (place / "output.txt").open("wb") as output:
        command = [sys.executable, "-m", "tests.fuzz.fuzzer", name, str(time_s)]
        try:
            status = subprocess.run(
                command, stdout=output, stderr=output, timeout=time_s + LOST_S, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = -1
    found = sorted(path for path in set(place.iterdir()) - before if path.name.startswith(_REPORTED))
    figures = dict(_FIGURES.findall((place / "output.txt").read_text("utf-8", "replace")))
    line = (
        f"{name:10} {figures.get('number_of_executed_units', '?'):>9} executions {(_cpu_s() - cpu) / 60:6.1f} CPU minutes "
        f"{(time.time() - started) / 60:6.1f} minutes  peak {figures.get('peak_rss_mb', '?'):>4} MB  "
        f"slowest {figures.get('slowest_unit_time_sec', '?')} s  {len(found)} found"
    )
    if status and not found:
        return f"{line}; ended with {status}, see {place / 'output.txt'}", [place / "output.txt"]
    return line, found


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Run them all; the status of `make fuzz`."""
    whole_s = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    names = os.environ.get("TARGETS", "").split() or list(TARGETS)
    everything: list[Path] = []
    for name in names:
        line, found = fuzz(name, max(1, whole_s // len(names)))
        print(line, flush=True)
        everything += found
    for path in everything:
        print(f"found: {path}")
    return 1 if everything else 0


if __name__ == "__main__":
    sys.exit(main())
