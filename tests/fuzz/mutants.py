"""Logs as they could be, and then wronged: plausible ones with a few mutations, as hypothesis strategies.

    @given(mutants())
    def test_…(data): …

A mutant is a plausible log (generated, of a fixture, all bars) and a short list of mutations, each a name and numbers
that say where; so hypothesis shrinks a finding to the few that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hypothesis import strategies as st

from tests.fuzz.seeds import ROOT
from tests.generate import make
from tests.hostile import HOSTILE
from tests.scan.draws import logs as drawn

MAX_BYTES = 16_000
"""Of a plausible log; longer ones give their end, which matters most."""
MAX_MUTANT = 100_000
Mutation = Callable[[bytes, int, int], bytes]
"""A log and two numbers → another log."""

NUMBERS = (
    *(b"0", b"-1", b"00000000000000000000", b"99999999999999999999", b"1e999", b"nan", b"inf", b"0x7f", b"1_000"),
    *("\u0663\u0664".encode(), b"1,5", b"3.", b".5", b"9" * 400, b"18446744073709551615"),
)
PIECES = (
    *(text.encode("utf-8", "replace") for text in HOSTILE),
    *(b"\n{\n", b"\n}\n", b'    "train": {\n', b"\r\n", b"\r", b"\n\n\n", b"\x00" * 9, b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"Traceback (most recent call last):\n", b'  File "a.py", line 1, in f\n', b"KeyError: 'exp_avg'\n", b"Killed\n"),
    *(
        b"CUDA out of memory. Tried to allocate ",
        b"Running 1 job\n",
        b"# Running job: x\n",
        b"\rx: 50%|#| 1/2 [00:01<00:02, 1s/it]",
    ),
    *(
        b"[rank0]: ",
        b"> ",
        b"    ",
        b"2026-02-03T04:05:06Z ",
        "\u2502 ".encode(),
        b"{" * 300,
        b"[" * 300,
        b'{"log": "x',
    ),
)


@cache
def plausible() -> tuple[bytes, ...]:
    """The logs to start from."""
    found = [make(seed).log.encode()[-MAX_BYTES:] for seed in range(1000, 1060)]
    found += [path.read_bytes()[-MAX_BYTES:] for path in sorted((ROOT / "fixtures").glob("*/log.txt"))]
    return tuple(found)


def _span(data: bytes, at: int, size: int) -> tuple[int, int]:
    """A part of the log that two numbers say."""
    start = at % (len(data) + 1)
    return start, min(len(data), start + size % 700)


def _line(data: bytes, at: int) -> tuple[int, int]:
    """The line that a number says, with its end."""
    start = data.rfind(b"\n", 0, at % (len(data) + 1)) + 1
    end = data.find(b"\n", start) + 1 or len(data)
    return start, end


def _put(data: bytes, at: int, piece: bytes) -> bytes:
    where = at % (len(data) + 1)
    return data[:where] + piece + data[where:]


def _number(data: bytes, at: int, which: int) -> bytes:
    """A number of the log made another one."""
    start = at % (len(data) + 1)
    while start < len(data) and not 48 <= data[start] <= 57:
        start += 1
    end = start
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    return data[:start] + NUMBERS[which % len(NUMBERS)] + data[end:]


def _repeat(data: bytes, at: int, times: int) -> bytes:
    start, end = _line(data, at)
    return data[:end] + data[start:end] * min(times % 300, 40_000 // max(1, end - start)) + data[end:]


def _swap(data: bytes, at: int, other: int) -> bytes:
    lines = data.split(b"\n")
    one, two = at % len(lines), other % len(lines)
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def _splice(data: bytes, at: int, which: int) -> bytes:
    """The rest out of another log."""
    other = plausible()[which % len(plausible())]
    return data[: at % (len(data) + 1)] + other[len(other) * (at % 7) // 7 :]


def _weave(data: bytes, at: int, which: int) -> bytes:
    """A stretch of another log, its lines in turn with this one's, as two processes write."""
    lines = data.split(b"\n")
    other = plausible()[which % len(plausible())].split(b"\n")
    start = at % len(lines)
    pairs = [part for pair in zip(lines[start : start + 40], other[-40:], strict=False) for part in pair]
    return b"\n".join([*lines[:start], *pairs, *lines[start + len(pairs) // 2 :]])


def _flip(data: bytes, at: int, value: int) -> bytes:
    if not data:
        return data
    where = at % len(data)
    return data[:where] + bytes([value % 256]) + data[where + 1 :]


def _cut(data: bytes, at: int, size: int) -> bytes:
    start, end = _span(data, at, size)
    return data[:start] + data[end:]


def _twice(data: bytes, at: int, size: int) -> bytes:
    start, end = _span(data, at, size)
    return data[:end] + data[start:end] + data[end:]


MUTATIONS: dict[str, Mutation] = {
    "cut": _cut,
    "twice": _twice,
    "begin late": lambda data, at, size: data[at % (len(data) + 1) :],
    "break off": lambda data, at, size: data[: at % (len(data) + 1)],
    "put": lambda data, at, which: _put(data, at, PIECES[which % len(PIECES)]),
    "put before a line": lambda data, at, which: _put(data, _line(data, at)[0], PIECES[which % len(PIECES)]),
    "number": _number,
    "repeat": _repeat,
    "swap": _swap,
    "splice": _splice,
    "weave": _weave,
    "flip": _flip,
    "no line ends": lambda data, at, size: data.replace(b"\n", b"", size % 200),
    "returns": lambda data, at, size: data.replace(b"\n", b"\r", size % 200),
    "long line": lambda data, at, size: _put(data, at, b"x" * (size % 40_000)),
    "blanks": lambda data, at, size: _put(data, at, b" " * (size % 20_000)),
    "indent": lambda data, at, size: data.replace(b"\n", b"\n" + b" " * (at % 9), size % 300),
}


@st.composite
def mutants(draw: st.DrawFn) -> bytes:
    """A plausible log with one to eight mutations."""
    base = draw(st.integers(0, len(plausible()) + 5))
    data = plausible()[base] if base < len(plausible()) else draw(drawn())
    numbers = st.integers(0, 1 << 16)
    for name, at, size in draw(
        st.lists(st.tuples(st.sampled_from(sorted(MUTATIONS)), numbers, numbers), min_size=1, max_size=8)
    ):
        data = MUTATIONS[name](data, at, size)[:MAX_MUTANT]
    return data
