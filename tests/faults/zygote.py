"""A process that has loaded everything and forks for each run: hundreds of runs in the time that a few starts take.

A request is a line of JSON on standard input, the answer a line on standard output.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import sys
import time
from typing import Any

from tests.faults.hooks import Faults, Raw, install

LONGEST_S = 60.0


def main() -> None:
    """Serve until standard input ends."""
    preload()
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


def preload() -> None:
    """Load what the commands load."""
    import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: F401

    import postmortem.cli.main
    from postmortem.cli.app import COMMANDS, build

    for name in COMMANDS:
        build(name)
    import rich.console  # noqa: F401

    import postmortem.bundle.build
    import postmortem.cli.batchout
    import postmortem.fleet.groups
    import postmortem.fleet.page
    import postmortem.fleet.table
    import postmortem.fleet.view
    import postmortem.fleet.watch.watcher
    import postmortem.report.html
    import postmortem.report.redact
    import postmortem.report.terminal  # noqa: F401


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """Fork for one run, wait for its end, and say how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            run(request, write)
        finally:
            os._exit(99)
    os.close(write)
    began = time.monotonic()
    status = None
    while status is None:
        done, status_word = os.waitpid(child, os.WNOHANG)
        if done:
            status = os.waitstatus_to_exitcode(status_word)
        elif time.monotonic() - began > LONGEST_S:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            status = 98
        else:
            time.sleep(0.002)
    with open(read) as pipe:
        told = pipe.read()
    return {"status": status, **(json.loads(told) if told else {"steps": []})}


def run(request: dict[str, Any], told: int) -> None:
    """In the child: the command with its fault, as a process of its own would run it."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        path = request[name]
        os.dup2(
            os.open(path, os.O_RDONLY if name == "stdin" else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor
        )
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    faults = Faults(request["fault"], request["at"], lasting=request["lasting"])
    if request["fault"] == "FSIZE":
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (request["at"], request["at"]))
    else:
        install(faults)
    counted = type("CountedRaw", (Raw,), {"faults": faults})
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(counted(1, "w", closefd=False)), "utf-8")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", write_through=True)
    sys.argv = ["postmortem", *request["argv"]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from postmortem.cli.main import main as command

    status: Any = 97
    try:
        command()
    except SystemExit as done:
        status = done.code if isinstance(done.code, int) else 0
    except BaseException as error:
        sys.stderr.write(f"escaped: {type(error).__name__}: {error}\n")
    faults.armed = False
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    import gc

    gc.collect()
    import weakref

    weakref.finalize._exitfunc()  # type: ignore[attr-defined]
    os.write(told, json.dumps({"steps": faults.log}).encode())
    os._exit(status)


if __name__ == "__main__":
    main()
