"""Kinds of input that cost most a byte: each a generator of about so many bytes, for a reader that must stay linear."""

from __future__ import annotations

import json
import pathlib
import random
import sys
from collections.abc import Callable, Iterator
from itertools import count

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from benchmarks import memory
from tests.simulate import BANNER, config, head

SIZES = (
    "CUDA out of memory. Tried to allocate {}.00 MiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 MiB is "
    "free. Including non-PyTorch memory, this process has 23.00 GiB memory in use. Of the allocated memory 21.50 GiB "
    "is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/opt/ai-toolkit/run.py", line {n}, in main\n    job.run()\n'
    '  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line {n}, in run\n    loss = self.hook()\n'
    "RuntimeError: step {n} went wrong\n"
)
BOXED = (
    "╭───────────────── Traceback (most recent call last) ─────────────────╮\n"
    "│ /opt/ai-toolkit/run.py:{n} in main                                   │\n"
    "│ ❱ {n}     job.run()                                                  │\n"
    "╰──────────────────────────────────────────────────────────────────────╯\n"
)
DRAW = "mugs:  45%|####5     | {n}/{m} [{c}<10:00,  2.00s/it, lr: 1.0e-04 loss: 3.5e-01]"

Row = Callable[[int], str]


def each(row: Row, start: str | None = None) -> Callable[[int], Iterator[bytes]]:
    """A log of rows, the n-th made by `row`; before them the head of a run, or `start`."""

    def form(size: int) -> Iterator[bytes]:
        first = (head(config(train__steps=10**9)) if start is None else start).encode()
        yield first
        made = len(first)
        numbers = count()
        while made < size:
            piece = "".join(row(next(numbers)) for _ in range(1000)).encode()[: max(0, size - made)]
            made += len(piece)
            yield piece
        yield b"\nError running job: CUDA error: out of memory\n"

    return form


def of_memory(name: str) -> Callable[[int], Iterator[bytes]]:
    """A form of benchmarks/memory.py in bytes, cut at the size asked for."""

    def form(size: int) -> Iterator[bytes]:
        for piece in memory.FORMS[name](size):
            data = piece.encode()[:size]
            size -= len(data)
            yield data

    return form


def noise(seed: int, letters: bytes) -> Callable[[int], Iterator[bytes]]:
    """Bytes drawn from `letters` after a line that is known."""

    def form(size: int) -> Iterator[bytes]:
        source = random.Random(seed)
        yield b"Running 1 job\n"
        for _ in range(0, size, 1 << 16):
            yield bytes(source.choices(letters, k=1 << 16))

    return form


def drawn(n: int, change: str = "\r") -> str:
    """One whole draw at count `n`."""
    return change + DRAW.format(n=n, m=10**9, c=f"{n // 60 % 60:02d}:{n % 60:02d}")


KINDS: dict[str, Callable[[int], Iterator[bytes]]] = {
    **{f"bars, {name}": of_memory(name) for name in ("quoted", "docker", "json", "html", "indented", "one line")},
    "bars, no breaks": of_memory("no breaks"),
    "plain text": each(lambda n: "Loaded a file and went on with the next one\n"),
    "bars with the total changing": each(lambda n: "\r" + DRAW.format(n=n % 50, m=50 + n, c="00:09")),
    "bars counting down": each(lambda n: drawn(10**8 - n)),
    "bars each of a new name": each(lambda n: f"\rpart {n}:  45%|####5     | 9/20 [00:09<00:12,  1.10s/it]"),
    "bars that quote an error": each(lambda n: drawn(n).replace("mugs", "CUDA out of memory. Tried to allocate 2 GiB")),
    "bars of ten names in turn": each(lambda n: drawn(n // 10).replace("mugs", f"mugs{n % 10}")),
    "bars with text behind each": each(lambda n: drawn(n) + "Error in LoRAModule lora_down"),
    "bars torn": each(lambda n: drawn(n)[: 20 + 7 * n % 80]),
    "bars with a moved cursor": each(lambda n: f"\n{drawn(n)}\x1b[A"),
    "bars that never end": each(lambda n: "\r45%|" + "#" * 380),
    "percent signs": each(lambda n: "45%|x| " * 12 + "\n"),
    "description without end": each(lambda n: "step " * 12 + "45% "),
    "steps all skipped": each(lambda n: BANNER.format(n % 3 + 1) + drawn(n)),
    "allocator's messages": each(lambda n: f"torch.OutOfMemoryError: {SIZES.format(n % 900 + 10)}\n"),
    "messages broken off": each(lambda n: f"RuntimeError: {SIZES.format(n % 900 + 10)[:90]}\nand then\n"),
    "lines with every sort of word": each(lambda n: f"Error {n}: Found lora latents in epoch  - Saved Killed files\n"),
    "one word of many entries": each(lambda n: "Loading Loading Saved Error: Found \n"),
    "JSON numbers": each(lambda n: f"loss {n}.5e-05 3.1e+01\n"),
    "tracebacks": each(lambda n: TRACE.format(n=n)),
    "tracebacks in boxes": each(lambda n: BOXED.format(n=n)),
    "frames without end": each(
        lambda n: f'  File "/opt/x/a{n}.py", line {n}, in f\n    g({n})\n', "Running 1 job\n" + TRACE[:36]
    ),
    "heads of jobs": each(lambda n: head(config(), name=f"job{n}"), ""),
    "dumps that never close": each(lambda n: '{\n    "type": "x",\n' + f'    "k{n}": [\n'),
    "lines that open a dump": each(lambda n: "{\n"),
    "JSON in lines": each(lambda n: json.dumps({"a": n, "b": ["x"] * 9}) + "\n"),
    "colours": each(lambda n: "\x1b[31m\x1b[1m word \x1b[0m" * 8 + f"Error: {n}\n"),
    "prefixes in a row": each(lambda n: "[rank0]: 2026-02-03T04:05:06.1Z > [09:41:27] Loading transformer\n"),
    "short lines": each(lambda n: "a\n"),
    "empty lines": each(lambda n: "\n" * 60),
    "returns": each(lambda n: "\r" * 60),
    "words with returns": each(lambda n: f"part {n}\r"),
    "noise of bytes": noise(1, bytes(range(32, 256)) + b"\n\r"),
    "noise of a bar's signs": noise(2, b"0123456789%|/[]<:, \r\n#its"),
    "noise of letters": noise(3, b"abcdefghijklmnop  eErRoO-0:'\n"),
}


def write(kind: str, path: pathlib.Path, size: int) -> pathlib.Path:
    """`size` bytes of one kind in the file `path`."""
    left = size
    with path.open("wb") as file:
        for piece in KINDS[kind](size):
            file.write(piece[:left])
            left -= min(left, len(piece))
    return path
