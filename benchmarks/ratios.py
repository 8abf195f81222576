"""Whole processes timed in turns, and a row of a table: ours, the reference, their ratio, its target."""

from __future__ import annotations

import os
import pathlib
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata

TIMEOUT_S = 600.0
REFERENCE = [sys.executable, "-c", "import typer, rich.console, regex, yaml"]
"""What every start is compared with: the import of what the program is built on."""


def program() -> list[str]:
    """The command as users start it: the script beside this Python, else the module."""
    script = pathlib.Path(sys.executable).with_name("postmortem")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "postmortem"]


def environment(home: pathlib.Path) -> dict[str, str]:
    """What the processes run in: a cache folder of their own, which the first of them fills."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "POSTMORTEM"))}
    return {**kept, "XDG_CACHE_HOME": str(home), "LC_ALL": "C.UTF-8"}


def without_engine(env: Mapping[str, str], home: pathlib.Path) -> dict[str, str]:
    """`env` in which the optional engine cannot be imported, as where it was never installed."""
    folder = home / "no-engine"
    folder.mkdir(exist_ok=True)
    (folder / "hyperscan.py").write_text("raise ImportError('turned off by the benchmark')\n", encoding="utf-8")
    return {**env, "PYTHONPATH": str(folder)}


def has_engine() -> bool:
    """Whether the optional engine is installed."""
    try:
        metadata.version("hyperscan")
    except metadata.PackageNotFoundError:
        return False
    return True


@dataclass(frozen=True)
class Command:
    """One process to be timed, and the statuses with which it may end."""

    argv: Sequence[str]
    env: Mapping[str, str] | None = None
    statuses: Sequence[int] = (0, 1)


@dataclass
class Times:
    """Seconds of one command, run by run: on the clock, and of the processor."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def median(self, *, cpu: bool = False) -> float:
        """The median."""
        return statistics.median(self.cpu if cpu else self.wall)


def once(command: Command, timeout: float = TIMEOUT_S) -> tuple[float, float]:
    """(seconds, processor seconds) of one process with its children. Raises RuntimeError, TimeoutError."""
    nowhere = subprocess.DEVNULL
    started = time.perf_counter()
    process = subprocess.Popen(command.argv, env=command.env, stdin=nowhere, stdout=nowhere, stderr=nowhere)
    watch = threading.Timer(timeout, process.kill)
    watch.start()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    watch.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if seconds > timeout:
        raise TimeoutError(f"{' '.join(command.argv[:3])}: more than {timeout:.0f} s")
    if process.returncode not in command.statuses:
        raise RuntimeError(f"{' '.join(command.argv[:3])}: status {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime


def in_turns(commands: Mapping[str, Command], runs: int) -> dict[str, Times]:
    """Every command `runs` times, one after the other, over and over, so that what disturbs one disturbs all.

    A round before the first that counts fills the caches.
    """
    found = {name: Times() for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            wall, cpu = once(command)
            if number:
                found[name].wall.append(wall)
                found[name].cpu.append(cpu)
    return found


@dataclass(frozen=True)
class Row:
    """One line of the table. `ratio` is in the `unit` of its target; None where nothing was measured."""

    measure: str
    ours: str = ""
    reference: str = ""
    ratio: float | None = None
    target: float | None = None
    unit: str = "x"
    note: str = ""

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} {self.unit}"
        target = "" if self.target is None else f"<= {self.target:g}"
        verdict = "" if self.ratio is None or self.target is None else "ok" if self.ratio <= self.target else "over"
        line = f"{self.measure:46} {self.ours:>12} {self.reference:>12} {ratio:>10} {target:>7} {verdict:4} {self.note}"
        return line.rstrip()


HEADER = f"{'measure':46} {'ours':>12} {'reference':>12} {'ratio':>10} {'target':>7}"


def compared(measure: str, ours: Times, reference: Times, target: float | None) -> Row:
    """The ratio of two medians of whole processes."""
    ratio = ours.median() / reference.median()
    by_cpu = ours.median(cpu=True) / max(1e-6, reference.median(cpu=True))
    return Row(
        measure,
        f"{1000 * ours.median():.0f} ms",
        f"{1000 * reference.median():.0f} ms",
        ratio,
        target,
        note=f"(processor {by_cpu:.2f})",
    )


def machine(extra: Sequence[str] = ()) -> str:
    """One line: the machine, Python, and the versions that count."""
    model = platform.processor() or platform.machine()
    info = pathlib.Path("/proc/cpuinfo")
    if info.is_file():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    versions = [f"Python {platform.python_version()}"]
    for name in ("aitk-postmortem", "msgspec", "regex", "numpy", "hyperscan"):
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {name}")
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return ", ".join([f"{model} x {os.cpu_count()}", platform.system(), *versions, *extra, load])
