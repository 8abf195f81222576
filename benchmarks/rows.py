"""The rows of the table: what is measured, against what, and the target of each. Run through benchmarks/bench.py."""

from __future__ import annotations

import pathlib
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import hostile, memory, ordinary, pack, search
from benchmarks.corpus import short_run
from benchmarks.ratios import (
    REFERENCE,
    Command,
    Row,
    Times,
    compared,
    environment,
    has_engine,
    in_turns,
    once,
    program,
    without_engine,
)

MARGINAL, MARGINAL_NO_ENGINE, START, OWN, GROWTH_MIB, BATCH_MS, PACK, HOSTILE = 3.0, 12.0, 1.3, 0.7, 48.0, 4.0, 1.5, 5.0
"""The targets."""
SMALL = 100_000
"""Bytes of the log whose time is start-up and no more."""
MEMORY_BASE = 2_000_000
MANY = 10_000
"""The runs of the batch whose time a run is told: a tenth of them or less is measured, their start-up apart."""
WORST = 3
"""Hostile kinds that are timed in full after one run of each."""


@dataclass(frozen=True)
class Bench:
    """What all rows share: where files go and how large they are."""

    folder: pathlib.Path
    megabytes: float
    memory_megabytes: float
    hostile_megabytes: float
    batch_runs: int
    runs: int

    @property
    def env(self) -> dict[str, str]:
        """What the processes run in."""
        home = self.folder / "cache"
        home.mkdir(exist_ok=True)
        return environment(home)

    def log(self, size: int, *, lines: bool = False) -> pathlib.Path:
        """The ordinary log of about `size` bytes, written once."""
        path = self.folder / f"{'lines' if lines else 'returns'}-{size}.log"
        return path if path.is_file() else ordinary.write(path, size, lines=lines)

    def analyze(
        self, log: pathlib.Path, *more: str, engine: bool = True, statuses: tuple[int, ...] = (0, 1)
    ) -> Command:
        """`postmortem analyze LOG --format json`."""
        env = self.env if engine else without_engine(self.env, self.folder)
        return Command([*program(), "analyze", str(log), "--format", "json", *more], env, statuses)


def marginal(bench: Bench) -> Iterator[Row]:
    """Seconds a gigabyte beyond start-up: those of a big log without those of a small one."""
    words = search.literals()
    draws = b"".join(re.findall(rb"\rmugs:[^\r\n]*\]", bench.log(MEMORY_BASE).read_bytes()))
    lists = {
        "all": search.written(words, bench.folder / "all.txt"),
        "none in a bar": search.written(search.absent_from(draws, words), bench.folder / "clean.txt"),
    }
    engines = [True, False] if has_engine() else [False]
    for lines in (False, True):
        form = "a bar a line" if lines else "bars with CR"
        logs = {"big": bench.log(int(bench.megabytes * 1e6), lines=lines), "small": bench.log(SMALL, lines=lines)}
        commands: dict[str, Command] = {}
        for size, log in logs.items():
            for name, file in lists.items():
                commands[f"{name} {size}"] = Command(search.command(file, log), {**bench.env, "LC_ALL": "C"})
            for engine in engines:
                commands[f"{engine} {size}"] = bench.analyze(log, engine=engine)
        times = in_turns(commands, bench.runs)
        gigabytes = (logs["big"].stat().st_size - logs["small"].stat().st_size) / 1e9
        if True not in engines:
            yield Row(f"marginal, {form}, engine", note="not measured: hyperscan is not installed")
        for engine in engines:
            for name in lists:
                what = f"marginal, {form}, {'engine' if engine else 'no engine'}; {name}"
                ours, by_cpu = (_beyond(times, str(engine), cpu=cpu) for cpu in (False, True))
                reference, reference_by_cpu = (max(1e-4, _beyond(times, name, cpu=cpu)) for cpu in (False, True))
                yield Row(
                    what,
                    f"{ours / gigabytes:.2f} s/GB",
                    f"{reference / gigabytes:.2f} s/GB",
                    ours / reference,
                    MARGINAL if engine else MARGINAL_NO_ENGINE,
                    note=f"(processor {by_cpu / reference_by_cpu:.2f})"
                    + (" the reference leaves a line at its first hit" if name == "all" and not lines else ""),
                )


def _beyond(times: Mapping[str, Times], name: str, *, cpu: bool) -> float:
    return times[f"{name} big"].median(cpu=cpu) - times[f"{name} small"].median(cpu=cpu)


def start(bench: Bench) -> Iterator[Row]:
    """What a user waits for before the first byte is read: imports, the knowledge base, a small report."""
    log = bench.log(SMALL)
    run = bench.folder / "run"
    run.mkdir(exist_ok=True)
    shutil.copyfile(log, run / "log.txt")
    fixture = pathlib.Path(__file__).parent.parent / "fixtures" / "early-step-checkpointing-off" / "config.yaml"
    shutil.copyfile(fixture, run / "config.yaml")
    times = in_turns(
        {
            "reference": Command(REFERENCE, bench.env),
            "log": bench.analyze(log),
            "run": bench.analyze(run),
            "version": Command([*program(), "--version"], bench.env),
            "help": Command([*program(), "--help"], bench.env),
        },
        max(bench.runs, 7),
    )
    reference = times["reference"]
    yield compared("start-up to JSON, a log of 100 kB", times["log"], reference, START)
    yield compared("start-up to JSON, a run folder with its config", times["run"], reference, START)
    yield compared("--version", times["version"], reference, OWN)
    yield compared("--help", times["help"], reference, OWN)


def peak(bench: Bench) -> Iterator[Row]:
    """The most memory with a large log, against that with 2 MB; of a file, and of a pipe."""
    big, small = bench.log(int(bench.memory_megabytes * 1e6)), bench.log(MEMORY_BASE)
    for piped in (False, True):
        low = memory.peak_of_file_mib(small, bench.env, piped=piped)
        high = memory.peak_of_file_mib(big, bench.env, piped=piped)
        what = f"memory at {bench.memory_megabytes:,.0f} MB, a {'pipe' if piped else 'file'}"
        yield Row(what, f"{high:.0f} MiB", f"{low:.0f} MiB", (high - low) * 1.048576, GROWTH_MIB, "MB")
    what = f"memory at {bench.memory_megabytes:,.0f} MB, a file, all processes"
    try:
        high, low = (memory.together_mib(log, bench.env) for log in (big, small))
    except OSError as error:
        yield Row(what, note=f"not measured: {error}")
        return
    yield Row(what, f"{high:.0f} MiB", f"{low:.0f} MiB", (high - low) * 1.048576, GROWTH_MIB, "MB")


def batch(bench: Bench) -> Iterator[Row]:
    """Processor time a run of a batch of small runs, with one worker, nothing cached."""
    few = max(1, bench.batch_runs // 10)
    trees = {count: _small_runs(bench.folder / f"runs-{count}", count) for count in (few, bench.batch_runs)}
    out = str(bench.folder / "rows.jsonl")
    more = ["--format", "jsonl", "--workers", "1", "--no-cache", "-o", out]
    times = in_turns(
        {str(n): Command([*program(), "batch", str(tree), *more], bench.env) for n, tree in trees.items()}, bench.runs
    )
    low, high = (times[str(count)].median(cpu=True) for count in (few, bench.batch_runs))
    each = (high - low) / (bench.batch_runs - few)
    before = max(0.0, low - few * each)
    milliseconds = 1000 * (each + before / MANY)
    note = f"(start-up {before:.2f} s of it, spread over {MANY:,} runs)"
    yield Row(f"batch of small runs, processor, {bench.batch_runs} runs", "", "", milliseconds, BATCH_MS, "ms", note)


def _small_runs(folder: pathlib.Path, count: int) -> pathlib.Path:
    seed = made = 0
    while made < count:
        found = short_run(seed)
        seed += 1
        if found is None:
            continue
        place = folder / f"user_{made % 17:02d}" / f"run_{made:05d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "log.txt").write_bytes(found[0].encode())
        made += 1
    return folder


def more_patterns(bench: Bench) -> Iterator[Row]:
    """What 500 more signatures cost: at the start, on an ordinary log, and on one that is all text."""
    more = ("--patterns", str(pack.write(bench.folder / "pack")))
    text = bench.folder / "text.log"
    size = int(bench.hostile_megabytes * 1e6)
    hostile.write("lines with every sort of word", text, size)
    logs = {
        "a log of 100 kB": bench.log(SMALL),
        f"a log of {bench.hostile_megabytes:,.0f} MB": bench.log(size),
        f"text of {bench.hostile_megabytes:,.0f} MB": text,
    }
    for name, log in logs.items():
        times = in_turns({"with": bench.analyze(log, *more), "without": bench.analyze(log)}, bench.runs)
        yield compared(f"500 more signatures, {name}", times["with"], times["without"], PACK)


def worst(bench: Bench) -> Iterator[Row]:
    """The hostile kinds that cost most, as whole processes on files of one size, an ordinary log beside them."""
    size = int(bench.hostile_megabytes * 1e6)
    plain = bench.analyze(bench.log(size))
    path = bench.folder / "hostile.log"
    command = bench.analyze(path, statuses=(0, 1, 3))
    once(plain)
    base = once(plain)[0]
    seconds: dict[str, float] = {}
    for kind in hostile.KINDS:
        hostile.write(kind, path, size)
        try:
            seconds[kind] = once(command)[0]
        except (TimeoutError, RuntimeError) as error:
            yield Row(f"hostile: {kind}", note=str(error))
    ranked = sorted(seconds, key=lambda kind: -seconds[kind])
    for kind in ranked[:WORST]:
        hostile.write(kind, path, size)
        commands = {"ordinary": plain, "hostile": command, "start": bench.analyze(bench.log(SMALL))}
        times = in_turns(commands, bench.runs)
        row = compared(f"hostile: {kind}", times["hostile"], times["ordinary"], HOSTILE)
        beyond = [times[name].median() - times["start"].median() for name in ("hostile", "ordinary")]
        yield replace(row, note=f"{row.note} {beyond[0] / max(1e-3, beyond[1]):.1f} beyond start-up")
    rest = ", ".join(f"{kind} {seconds[kind] / base:.1f}" for kind in ranked[WORST:])
    yield Row(f"hostile: the other {len(ranked) - WORST}, one run each", note=rest)


ROWS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "marginal": marginal,
    "start": start,
    "memory": peak,
    "batch": batch,
    "pack": more_patterns,
    "hostile": worst,
}
