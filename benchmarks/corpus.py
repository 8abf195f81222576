"""Write a tree of generated runs of which the truth is known, and say what `batch` must make of it.

python benchmarks/corpus.py FOLDER [--runs 10000] [--seed 0]

10,000 runs are about 2 GB: run folders with one or several attempts, loose logs, archives, a tenth of it broken.
`FOLDER.manifest.jsonl` beside it says for each path what must come out: its status, and for what was a run its kind,
class and outcome. One seed always gives one tree, byte for byte.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import pathlib
import random
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.generate import make
from tests.simulate import buckets, config, finished, head, training

NAME = "corpusjob"
"""What long logs are written with; each run gets a name of its own in its place."""
BROKEN = 0.1
SMALL = 0.45
"""How many of the runs are short ones, of every kind that the generator knows; the others are long."""
LONG_STEPS = ((900, 0.3), (1500, 0.4), (3200, 0.25), (12000, 0.05))
"""Steps of the long runs and how many have them; a step is some 140 bytes of log."""
ANALYSED, ERROR, ABSENT = "analysed", "error", "absent"
"""What a path comes out as; of what is absent there is no row: it is no log, and nothing says that it should be one."""

Truth = dict[str, Any]


def _long(steps: int, fate: str) -> tuple[str, Truth]:
    one = {"512x512": 30}
    several = {"512x512": 60, "768x768": 30, "1024x1024": 1}
    many = config(train__steps=steps)
    single = config(train__steps=steps, datasets__resolution=[512])
    if fate == "finished":
        text = head(many, NAME) + buckets(several) + training(steps, (), name=NAME) + finished(NAME)
        return text, {"kind": "none", "class": None, "outcome": "completed"}
    if fate == "spikes":
        skipped = range(45, steps, 91)
        text = head(many, NAME) + buckets(several) + training(steps, skipped, name=NAME) + finished(NAME)
        return text, {"kind": "gpu_oom", "class": "bucket_spike", "outcome": "completed_with_skips"}
    last = steps - 20
    text = head(single, NAME) + buckets(one) + training(steps, range(last, last + 4), name=NAME)
    return text, {"kind": "gpu_oom", "class": "steady_training", "outcome": "failed"}


long_run = lru_cache(maxsize=None)(_long)
"""The text of a long run, and what is true of it: written once, copied under many names."""


@lru_cache(maxsize=1)
def early() -> str:
    """An attempt that dies in its first step."""
    return head(config(train__steps=500), NAME) + training(500, range(4), name=NAME)


def short_run(seed: int) -> tuple[str, Truth] | None:
    """A generated run with one right answer; None where several would do."""
    case = make(seed)
    truth = case.truth
    if max(len(truth.kind), len(truth.class_), len(truth.outcome)) > 1:
        return None
    return case.log, {"kind": truth.kind[0], "class": truth.class_[0], "outcome": truth.outcome[0]}


class Corpus:
    """Writes one tree."""

    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self._next = seed * 1_000_003
        self.bytes = 0

    def write(self, runs: int) -> Iterator[Truth]:
        """The tree, and what must come out of each path, in no order."""
        fates = [self._broken if self._random.random() < BROKEN else self._run for _ in range(runs)]
        for index, fate in enumerate(fates):
            place = self._folder / f"user_{index % 97:02d}" / f"week_{index // 97 % 40:02d}"
            place.mkdir(parents=True, exist_ok=True)
            yield fate(place, f"{self._random.choice(('flux', 'wan', 'style', 'face'))}_{index:06d}")

    def _text(self, name: str) -> tuple[str, Truth]:
        if self._random.random() < SMALL:
            while True:
                self._next += 1
                found = short_run(self._next)
                if found is not None:
                    return found
        steps = self._random.choices([n for n, _ in LONG_STEPS], [share for _, share in LONG_STEPS])[0]
        text, truth = long_run(steps, self._random.choice(("finished", "finished", "spikes", "steady")))
        return text.replace(NAME, name), truth

    def _run(self, place: pathlib.Path, name: str) -> Truth:
        form = self._random.choices(("folder", "attempts", "loose", "utf16", "archive"), (55, 12, 18, 2, 13))[0]
        if form == "attempts":
            steps = self._random.choice((700, 1000))
            text, truth = long_run(steps, "finished")
            folder = place / name
            (folder / "logs").mkdir(parents=True)
            for number in range(self._random.randint(1, 3)):
                self._put(folder / "logs" / f"{number}_log.txt", early().replace(NAME, name).encode())
            self._put(folder / "log.txt", text.replace(NAME, name).encode())
            return self._truth(folder, truth)
        text, truth = self._text(name)
        if form == "folder":
            folder = place / name
            folder.mkdir()
            self._put(folder / "log.txt", text.encode())
            return self._truth(folder, truth)
        if form == "utf16":
            return self._truth(self._put(place / f"{name}.log", text.encode("utf-16")), truth)
        if form == "loose":
            suffix = self._random.choice((".log", ".txt", ".out"))
            return self._truth(self._put(place / f"{name}{suffix}", text.encode()), truth)
        suffix, pack = self._random.choice(_PACKED)
        return self._truth(self._put(place / f"{name}{suffix}", pack(text.encode())), truth)

    def _broken(self, place: pathlib.Path, name: str) -> Truth:
        kind = self._random.choice(_BROKEN)
        noise = self._random.randbytes(2000)
        if kind == "program":
            return self._error(self._put(place / f"{name}.log", b"\x7fELF\x02\x01\x01" + noise))
        if kind == "picture":
            return self._error(self._put(place / f"{name}.out", b"\x89PNG\r\n\x1a\n" + noise))
        if kind == "empty":
            return self._error(self._put(place / f"{name}.log", b""))
        if kind == "empty_folder":
            (place / name).mkdir()
            self._put(place / name / "log.txt", b"")
            return self._error(place / name)
        if kind == "prose":
            lines = "".join(f"row {number} of {name} was copied\n" for number in range(200))
            return self._error(self._put(place / f"{name}.log", lines.encode()))
        if kind == "torn_archive":
            packed = gzip.compress(self._text(name)[0].encode(), 1, mtime=0)
            return self._error(self._put(place / f"{name}.log.gz", packed[:12]))
        if kind == "no_archive":
            return self._error(self._put(place / f"{name}.log.gz", noise))
        if kind == "caption":
            self._put(place / f"{name}.png", b"\x89PNG\r\n\x1a\n" + noise)
            return self._absent(self._put(place / f"{name}.txt", b"a photo of a mug on a table"))
        if kind == "note":
            return self._absent(self._put(place / f"{name}.txt", f"remember to ask about {name}\n".encode()))
        link = place / f"{name}.log"
        link.symlink_to(place / "gone.log")
        return self._absent(link)

    def _put(self, path: pathlib.Path, content: bytes) -> pathlib.Path:
        path.write_bytes(content)
        self.bytes += len(content)
        return path

    def _truth(self, path: pathlib.Path, truth: Truth) -> Truth:
        return {"run": path.relative_to(self._folder).as_posix(), "status": ANALYSED, **truth}

    def _error(self, path: pathlib.Path) -> Truth:
        return {"run": path.relative_to(self._folder).as_posix(), "status": ERROR}

    def _absent(self, path: pathlib.Path) -> Truth:
        return {"run": path.relative_to(self._folder).as_posix(), "status": ABSENT}


_BROKEN = (
    "program",
    "picture",
    "empty",
    "empty_folder",
    "prose",
    "torn_archive",
    "no_archive",
    "caption",
    "note",
    "dangling",
)


def _tar(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        entry = tarfile.TarInfo("job/log.txt")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(out.getvalue(), 1, mtime=0)  # tarfile would write the time of day into the header


def _zip(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr(zipfile.ZipInfo("job/log.txt"), content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


_PACKED: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    (".log.gz", lambda content: gzip.compress(content, 1, mtime=0)),
    (".log.bz2", lambda content: bz2.compress(content, 1)),
    (".zip", _zip),
    (".tar.gz", _tar),
)


def write(folder: pathlib.Path, runs: int, seed: int = 0) -> list[Truth]:
    """Write a tree of `runs` runs into `folder`, a tenth of them broken; what must come out of each path."""
    return list(Corpus(folder, seed).write(runs))


def differences(truths: list[Truth], rows: list[dict[str, Any]]) -> list[str]:
    """What `rows` (those of `--format jsonl`) say otherwise than `truths`, and what is lost or added."""
    found: list[str] = []
    by_run = {row["run"]: row for row in rows}
    for truth in truths:
        row = by_run.pop(truth["run"], None)
        status = row["status"] if row else ABSENT
        if status != truth["status"]:
            found.append(f"{truth['run']}: {status}, not {truth['status']}")
        elif row is not None:
            found += [
                f"{truth['run']}: {key} {row[key]!r}, not {truth[key]!r}"
                for key in ("kind", "class", "outcome")
                if key in truth and row[key] != truth[key]
            ]
    return found + [f"{run}: a row that nobody expected" for run in by_run]


def counts(truths: list[Truth]) -> Counter[tuple[str, Any, Any]]:
    """How many of each status, kind and class must come out."""
    return Counter((truth["status"], truth.get("kind"), truth.get("class")) for truth in truths)


def manifest(folder: pathlib.Path) -> pathlib.Path:
    """Where the truth of the tree in `folder` lies."""
    return folder.with_name(folder.name + ".manifest.jsonl")


def main() -> None:
    """Write, and print what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    corpus = Corpus(options.folder, options.seed)
    truths = list(corpus.write(options.runs))
    lines = "".join(json.dumps(truth) + "\n" for truth in truths)
    manifest(options.folder).write_text(lines, encoding="utf-8")
    print(f"{len(truths):,} paths, {corpus.bytes / 1e6:,.0f} MB")
    for (status, kind, class_), count in sorted(counts(truths).items(), key=str):
        print(f"{count:7,} {status} {kind or ''} {class_ or ''}")


if __name__ == "__main__":
    main()
