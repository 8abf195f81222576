"""Kill `batch` at random moments, many times over one cache, and check that nothing is ever torn or mistaken.

python benchmarks/kill.py FOLDER [--times 50] [--seed 0]

FOLDER is one that benchmarks/corpus.py wrote. Between kills a log may grow: its row must then be the new one. Ends
with status 1 at the first wrong row.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

FROM_NOTHING = 4
"""Starts on one cache; with a full one a batch is done before it can be killed."""
STEP = "\nCUDA out of memory. Tried to allocate 20.00 MiB.\n"


def command(folder: pathlib.Path, out: pathlib.Path) -> list[str]:
    """The batch that is killed."""
    place = [sys.executable, "-m", "postmortem", "batch", str(folder)]
    return [*place, "--workers", "2", "--format", "jsonl", "-o", str(out)]


def rows_in(path: pathlib.Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file; raises where it is torn."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> int:
    """Kill, look, and at the end compare with a batch without a cache."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    logs = sorted(options.folder.rglob("log.txt"))
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "XDG_CACHE_HOME": home}
        out, fresh = pathlib.Path(home) / "rows.jsonl", pathlib.Path(home) / "fresh.jsonl"
        started = time.monotonic()
        subprocess.run([*command(options.folder, fresh), "--no-cache"], check=True)
        whole = time.monotonic() - started
        finished = 0
        for number in range(options.times):
            if number % FROM_NOTHING == 0:
                shutil.rmtree(pathlib.Path(home) / "postmortem", ignore_errors=True)
            process = subprocess.Popen(command(options.folder, out), env=env, start_new_session=True)
            try:
                process.wait(timeout=whole * moments.uniform(0.02, 0.6))
                finished += 1
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if out.exists():
                rows_in(out)
            if number % 10 == 9:
                with moments.choice(logs).open("a", encoding="utf-8") as log:
                    log.write(STEP)
        time.sleep(3)  # a file that changed just now is not remembered
        for _ in range(2):
            subprocess.run(command(options.folder, out), env=env, check=True)
            subprocess.run([*command(options.folder, fresh), "--no-cache"], check=True)
            if rows_in(out) != rows_in(fresh):
                print("rows from the cache differ from rows without one")
                return 1
    print(f"{options.times} starts, {options.times - finished} killed: no row torn, lost or mistaken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
