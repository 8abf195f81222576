"""Logs that are all bars, as bytes, with everything that varies in real ones: for laws of how they are read.

    @given(logs())
    def test_…(data): …

A log is a style (line ends, glyphs, prefixes, whether all is written twice) and a list of parts: stretches of steps of one
bar, other bars between, text, torn draws. Within a part a seed decides, so that long stretches cost hypothesis nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from tests.simulate import ABORT, BANNER, config, head

NAMES = (
    "mugs",
    "Generating Images",
    "Caching latents to disk",
    "50% grey",
    "100%| 3/3",
    "CUDA out of memory. Tried to allocate 2.00 GiB",
    "OOM during training step, skipping batch 1/3",
    "step 12/20 [00:01<00:02,  1.00s/it]",
    "1999",
    "a | b",
    "été 아침 😀",
    "Saving at step 12",
    "with: colons: in it",
    "",
    "x" * 300,
)
TEXTS = (
    *(BANNER.format(number) for number in (1, 2, 3)),
    "Saving at step 250\n",
    "\nSaving at step 250\nSaved checkpoint to output/mugs/mugs_000000250.safetensors\n",
    "Error in LoRAModule lora_down\n",
    "Error running job: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB\n",
    f"Error running job: {ABORT}\n",
    "Traceback (most recent call last):\n  File \"/x/run.py\", line 3, in main\n    job.run()\nKeyError: 'exp_avg'\n",
    "loss is nan\n",
    "nothing that anybody knows\n",
    "45% of it is done | and 9/20 [of them]\n",
    "\n",
    "\n\n\n",
    "  \n",
    "{\n",
    "\x1b[A",
    "\x1b[31mKilled\x1b[0m\n",
    "\r",
    "\r\n",
    "Job process terminated with signal SIGKILL.\n",
    "\x00\x07 noise \x85\u2028\n",
)
STARTS = (0, 1, 7, 8, 9, 95, 99, 998, 9_997, 99_999, 999_999_990)
PREFIXES: dict[str, Callable[[int], str]] = {
    "none": lambda second: "",
    "docker": lambda second: f"2026-02-03T04:{second // 60 % 60:02d}:{second % 60:02d}.{second * 7919 % 10**9:09d}Z ",
    "loguru": lambda second: f"2026-02-03 04:{second // 60 % 60:02d}:{second % 60:02d}.123 | INFO     | m:f:1 - ",
    "clock": lambda second: f"[12:{second // 60 % 60:02d}:{second % 60:02d}] ",
    "rank": lambda second: "[rank0]: ",
}
GLYPHS = {"blocks": " ▏▎▍▌▋▊▉█", "digits": " 123456789#", "one": " #"}


@dataclass(frozen=True)
class Style:
    """What is the same all through a log."""

    before: str
    """In front of each draw: a carriage return, or what ends lines."""
    behind: str
    glyphs: str
    prefix: str
    doubled: bool


@st.composite
def styles(draw: st.DrawFn) -> Style:
    """How a log was captured."""
    before, behind = draw(st.sampled_from([("\r", ""), ("\r", ""), ("", "\n"), ("", "\r\n"), ("", "\r"), ("\n\r", "")]))
    return Style(
        before,
        behind,
        draw(st.sampled_from(sorted(GLYPHS))),
        draw(st.sampled_from(["none", "none", "none", *sorted(PREFIXES)])),
        draw(st.sampled_from([False, False, False, True])),
    )


def clock(seconds: int) -> str:
    """tqdm's `MM:SS` or `H:MM:SS`."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes:02d}:{rest:02d}"


class Bar:
    """One bar as it is drawn: its count, clock, rate and postfix."""

    def __init__(self, style: Style, name: str, total: int, seconds: int) -> None:
        self.style = style
        self.name = name
        self.total = total
        self.seconds = seconds
        self.rate = "?it/s"
        self.left = "?"
        self.postfix = ""

    def draw(self, n: int) -> str:
        """One draw at count `n`."""
        share = min(1.0, n / self.total) if self.total else 0.0
        signs = GLYPHS[self.style.glyphs]
        full, part = divmod(int(share * 10 * (len(signs) - 1)), len(signs) - 1)
        meter = (signs[-1] * full + (signs[part] if full < 10 else "")).ljust(10)
        head_ = f"{self.name}: " if self.name else ""
        text = (
            f"{head_}{100 * share:3.0f}%|{meter}| {n}/{self.total} "
            f"[{clock(self.seconds)}<{self.left}, {self.rate}{self.postfix}]"
        )
        row = f"{self.style.before}{PREFIXES[self.style.prefix](self.seconds)}{text}{self.style.behind}"
        return row * 2 if self.style.doubled else row


def stretch(style: Style, name: str, start: int, steps: int, total: int, seed: int, wild: bool) -> str:
    """`steps` steps of one bar from count `start`: finished, skipped, thinned out; and what `wild` ones have besides."""
    random = Random(seed)
    bar = Bar(style, name, total, random.choice((0, 3, 3590, 86_390)))
    pace = random.choice((0.05, 0.4, 1.3, 40.0))
    skips, thin = random.choice((0.0, 0.0, 0.1, 0.6)), random.choice((0.0, 0.0, 0.05, 0.5))
    form = random.choice(("loss", "loss", "loss", "none", "same", "long"))
    passed = float(bar.seconds)
    rows = [bar.draw(start)] if random.random() < 0.8 else []
    for n in range(start, start + steps):
        passed += pace * random.uniform(0.5, 1.5)
        bar.seconds = int(passed)
        speed = pace * random.uniform(0.5, 1.5)
        bar.rate = f"{speed:5.2f}s/it" if speed > 1 else f"{1 / speed:5.2f}it/s"
        bar.left = clock(max(0, int(speed * (total - n)))) if random.random() < 0.95 else "?"
        if random.random() >= skips:
            bar.postfix = _postfix(form, random)
            if random.random() >= thin:
                rows.append(bar.draw(n))
        if random.random() >= thin:
            rows.append(bar.draw(n + 1))
        if wild and random.random() < 0.04:
            rows.append(_spoilt(bar, n + 1, random))
    return "".join(rows)


def _postfix(form: str, random: Random) -> str:
    if form == "none":
        return ""
    if form == "same":
        return ", lr: 1.0e-04 loss: nan"
    if form == "long":
        return f", lr: 1.0e-04, loss={random.random():.4f}, grad_norm={random.random():.2e}, vram=23.1GB, " + "k=v " * 9
    return f", lr: 1.0e-04 loss: {random.uniform(0.01, 0.9):.3e}"


def _spoilt(bar: Bar, n: int, random: Random) -> str:
    """Something that breaks the row of draws without ending it."""
    text = bar.draw(n)
    return random.choice(
        (
            text[: random.randrange(1, len(text))],
            text + " " * random.randrange(1, 30),
            text + random.choice(TEXTS),
            text.rstrip("\r\n") + random.choice(TEXTS).lstrip("\n"),
            text + "\x1b[A",
            random.choice(TEXTS),
            text.replace("%|", "%"),
            text.replace("]", ""),
            text.upper(),
            text.encode()[: random.randrange(1, len(text))].decode("utf-8", "replace"),
            bar.draw(max(0, n - random.randrange(1, 9))),
            text * random.randrange(2, 4),
        )
    )


def changing(style: Style, draws: int, seed: int) -> str:
    """Draws of which each is of another bar than the one before it: of a few names in turn, of new ones, of new totals."""
    random = Random(seed)
    names = random.choice((2, 3, 10, draws, 1))
    totals = 1 if names > 1 else random.choice((2, draws))
    step = random.choice((0, 1, 1, 3))
    bars = [Bar(style, f"mugs{index or ''}", 9_999 + index % totals, 0) for index in range(max(names, totals))]
    rows = []
    for index in range(draws):
        bar = bars[index % len(bars)]
        bar.seconds += 1
        bar.postfix = f", loss: {index % 9}.0" if index % 4 else bar.postfix
        rows.append(bar.draw(5 + step * (index // len(bars))))
        if random.random() < 0.01:
            rows.append(random.choice(TEXTS))
    return "".join(rows)


@st.composite
def parts(draw: st.DrawFn, style: Style) -> str:
    """A stretch, another bar between two halves of one, bars in turn, a text, or a piece of a draw."""
    kind = draw(st.sampled_from(["steps", "steps", "steps", "pause", "text", "restart", "total", "changing"]))
    if kind == "text":
        return draw(st.sampled_from(TEXTS))
    if kind == "changing":
        return changing(style, draw(st.sampled_from([3, 30, 150])), draw(st.integers(0, 1 << 20)))
    name = draw(st.sampled_from(["mugs", "mugs", "mugs", *NAMES]))
    start = draw(st.sampled_from(STARTS))
    steps = draw(st.sampled_from([0, 1, 2, 5, 30, 130]))
    total = start + steps + draw(st.sampled_from([0, 1, 500]))
    seed = draw(st.integers(0, 1 << 20))
    wild = draw(st.booleans())
    first = stretch(style, name, start, steps, total, seed, wild)
    if kind == "pause":
        between = stretch(style, "Generating Images", 0, 2, 2, seed, False)
        first += draw(st.sampled_from(["", "\n", "\n\r"])) + between + draw(st.sampled_from(["", "\x1b[A", "\n"]))
        first += stretch(style, name, start + steps, 3, total + 3 * (total == start + steps), seed + 1, wild)
    elif kind == "restart":
        first += stretch(style, name, max(0, start - 3), steps, total, seed + 1, wild)
    elif kind == "total":
        first += stretch(style, name, start + steps, 4, total + 7, seed + 1, wild)
    return first


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """A log that is nearly all bars."""
    style = draw(styles())
    rows = draw(st.lists(parts(style), min_size=1, max_size=6))
    opening = draw(st.sampled_from(["", head(config()), "Running 1 job\n", "\ufeff"]))
    text = opening + "".join(rows) + draw(st.sampled_from(["", "\n", "\r", "Killed", "mugs:  45%|###", "\r\n"]))
    data = text.encode("utf-8", "replace")
    # a capture may begin and end in the middle of a character
    return data[draw(st.sampled_from([0, 0, 0, 1, 17])) : len(data) - draw(st.sampled_from([0, 0, 0, 1, 2, 9]))]


@dataclass(frozen=True)
class Clean:
    """One undisturbed stretch of which all is known."""

    data: bytes
    draws: int
    start: int
    end: int
    total: int
    unproven: tuple[tuple[int, int], ...]
    postfix: str


@st.composite
def clean_runs(draw: st.DrawFn) -> Clean:
    """The bar of one run, alone: each step finished or skipped, drawn as AI Toolkit draws it."""
    style = Style(
        *draw(st.sampled_from([("\r", ""), ("", "\n"), ("", "\r\n")])),
        draw(st.sampled_from(sorted(GLYPHS))),
        "none",
        False,
    )
    start = draw(st.sampled_from(STARTS))
    fates = draw(st.lists(st.booleans(), min_size=1, max_size=60)) * draw(st.sampled_from([1, 1, 7]))
    random = Random(draw(st.integers(0, 1 << 20)))
    bar = Bar(style, "mugs", start + len(fates) + draw(st.sampled_from([1, 900])), 0)
    rows = [bar.draw(start)]
    for n, finished in enumerate(fates, start):
        bar.seconds += random.randrange(4)
        bar.rate = random.choice((" 1.02s/it", "12.00it/s", "101.77it/s"))
        bar.left = clock(random.randrange(9000))
        if finished:
            bar.postfix = f", lr: 1.0e-04 loss: {n % 7 + random.random():.5f}"
            rows.append(bar.draw(n))
        rows.append(bar.draw(n + 1))
    ranges = tuple(_ranges(n for n, finished in enumerate(fates, start) if not finished))
    return Clean(
        "".join(rows).encode(), len(rows), start, start + len(fates), bar.total, ranges, bar.postfix.lstrip(", ")
    )


def _ranges(counts: Iterator[int]) -> Iterator[tuple[int, int]]:
    """Half-open ranges of consecutive counts."""
    open_at = last = -1
    for n in counts:
        if open_at >= 0 and n == last + 1:
            last = n
            continue
        if open_at >= 0:
            yield open_at, last + 1
        open_at = last = n
    if open_at >= 0:
        yield open_at, last + 1
