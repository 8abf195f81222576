"""Ways to read one log that must all say the same: in other pieces, from a file or a pipe, by other means inside.

A mode is a way of working inside (`MODES`): with the bulk paths or without, with the optional engine or without. A
cutting hands a scan its bytes (`CUTTINGS`), a door opens a whole input (`DOORS`). The tests try each mode with each
cutting and each door, against the first of all. A new mode is one more line.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from unittest import mock

import msgspec

from postmortem.ahead import ahead
from postmortem.cli.main import run
from postmortem.intake import Intake, IntakeError, open_path, open_stream
from postmortem.knowledge.load import load
from postmortem.knowledge.schema import Knowledge
from postmortem.model import ScanResult
from postmortem.pipeline import NothingRecognised, Pace
from postmortem.reading import analysis_of
from postmortem.report import build, json_
from postmortem.scan import Lexicon, scan
from postmortem.scan.segments import Cutting, in_place

KNOWLEDGE = load(cache=False)


@dataclass(frozen=True)
class Mode:
    """How a scan works inside: a context that it runs in, and how its lexicon is made."""

    name: str
    within: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
    make: Callable[[Knowledge], Lexicon] = Lexicon
    cutting: Cutting = in_place
    _kept: dict[str, Lexicon] = field(default_factory=dict, compare=False)

    @cached_property
    def lexicon(self) -> Lexicon:
        """The lexicon of this mode, made within it and once."""
        with self.within():
            return self.make(KNOWLEDGE)


@contextlib.contextmanager
def beside_from_the_start() -> Iterator[None]:
    """A second process cuts from the first byte on, in blocks that small logs have some of."""
    small, from_start = mock.patch("postmortem.scan.scanner.BLOCK", 3000), mock.patch("postmortem.ahead.LARGE", 0)
    with small, from_start, mock.patch("postmortem.scan.scanner.BULK_FROM", 0):
        yield


MODES = [
    Mode("as it is"),
    Mode("together always", lambda: mock.patch("postmortem.scan.scanner.BULK_FROM", 0)),
    Mode("one by one", lambda: mock.patch("postmortem.scan.scanner.BULK_FROM", sys.maxsize)),
    Mode("cut by a second process", beside_from_the_start, cutting=ahead),
    Mode("plain search", make=lambda knowledge: Lexicon(knowledge, engine="plain")),
    Mode("Hyperscan", make=lambda knowledge: Lexicon(knowledge, engine="hyperscan")),
    Mode("numpy", make=lambda knowledge: Lexicon(knowledge, engine="numpy")),
]
"""The first is what all others are compared with."""


def pieces(data: bytes, *sizes: int) -> Iterator[bytes]:
    """`data` in pieces of the given sizes, over and over."""
    at = index = 0
    while at < len(data):
        yield data[at : at + sizes[index % len(sizes)]]
        at += sizes[index % len(sizes)]
        index += 1


def anyhow(data: bytes) -> Iterator[bytes]:
    """`data` in pieces of any sizes, small and large, the same for the same bytes."""
    random = Random(len(data))
    yield from pieces(data, *(random.choice((1, 2, 3, 60, 900, 5000, 70_000)) for _ in range(40)))


def behind_returns(data: bytes) -> Iterator[bytes]:
    """`data` cut right behind carriage returns, where a bar has begun and nothing of it is there."""
    at = 0
    while at < len(data):
        end = data.find(b"\r", at + 500) + 1 or len(data)
        yield data[at:end]
        at = end


CUTTINGS: dict[str, Callable[[bytes], Iterable[bytes]]] = {
    "one piece": lambda data: [data],
    "pieces of 64 KiB": lambda data: pieces(data, 1 << 16),
    "pieces of 7": lambda data: pieces(data, 7),
    "pieces of any size": anyhow,
    "cut behind returns": behind_returns,
    "with empty pieces": lambda data: (piece for part in pieces(data, 997) for piece in (b"", part, b"")),
}
SLOW_CUTTINGS: dict[str, Callable[[bytes], Iterable[bytes]]] = {"single bytes": lambda data: pieces(data, 1)}
"""What costs too much for every log."""


def scanned(data: bytes, mode: Mode, cutting: Callable[[bytes], Iterable[bytes]]) -> ScanResult:
    """What a scan says of `data`."""
    lexicon = mode.lexicon
    with mode.within():
        return scan(cutting(data), lexicon, "log", cutting=mode.cutting)


# --- whole inputs -----------------------------------------------------------------------------------
def from_pipe(data: bytes, folder: Path) -> Iterator[Intake]:
    """A pipe that gives what its writer has just written, in short reads."""
    reading, writing = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(writing, "wb", buffering=0) as end:
            for piece in anyhow(data):
                end.write(piece)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb", buffering=0) as stream:
        yield open_stream(stream)
    writer.join()


def from_file(data: bytes, folder: Path) -> Iterator[Intake]:
    """A file."""
    path = folder / "given.log"
    path.write_bytes(data)
    yield open_path(path)


DOORS: dict[str, Callable[[bytes, Path], Iterator[Intake]]] = {
    "file": from_file,
    "stream": lambda data, folder: iter([open_stream(io.BytesIO(data))]),
    "stream kept on disk": lambda data, folder: iter([open_stream(io.BytesIO(data), again=True)]),
    "pipe": from_pipe,
}


def reported(data: bytes, mode: Mode, door: Callable[[bytes, Path], Iterator[Intake]], folder: Path) -> str:
    """The JSON report on `data`, or why there is none. The input is called ``-`` whatever it was."""
    lexicon = mode.lexicon
    opening = contextlib.contextmanager(door)
    with mode.within():
        try:
            with opening(data, folder) as opened:
                opened = msgspec.structs.replace(opened, source="-")
                analysis = analysis_of(opened, lexicon, pace=Pace(cutting=mode.cutting))
                return json_.render(build(analysis, KNOWLEDGE))
        except (NothingRecognised, IntakeError) as refusal:
            return type(refusal).__name__


def commanded(path: Path, folder: Path, *, piped: bool) -> str:
    """What `postmortem analyze` writes about the file, or about the same bytes on standard input."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    with io.TextIOWrapper(path.open("rb")) as text_in, mock.patch.object(sys, "stdin", text_in):
        run(["analyze", "-" if piped else str(path), "--format", "json", "-o", str(out)])
    text = out.read_text(encoding="utf-8") if out.exists() else ""
    return text if piped else text.replace(json.dumps(str(path), ensure_ascii=False), '"-"')
