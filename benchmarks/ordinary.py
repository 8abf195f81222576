"""Write an ordinary big log: one AI Toolkit run that is nearly all progress bar, as its UI captures it.

python benchmarks/ordinary.py FILE --megabytes 500 [--lines] [--seed 0]

Two draws a step as the program draws them, block glyphs in UTF-8, rates in it/s and s/it that follow the batch's
bucket, clocks that pass the hour and the day, a save and a preview every 250 steps, a few dropped batches, and in
the end the fourth OOM in a row. One seed always gives one log, byte for byte. `--lines`: a draw a line.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.simulate import ABORT, BANNER, RESULT, buckets, config, head

NAME = "mugs"
BYTES_A_STEP = 216
"""About what a step takes: two draws."""
SAVE_EVERY = 250
PREVIEW_STEPS = 4
DROPPED = 1 / 900
"""How many of the steps run out of memory and are skipped."""
BUCKETS = {"512x512": 40, "768x768": 30, "1024x1024": 12}
SECONDS = (0.42, 0.78, 1.9)
"""What a step of each bucket takes."""
SMOOTHING = 0.3
"""How much the newest step counts in tqdm's rate."""
_GLYPHS = " ▏▎▍▌▋▊▉"
_METERS = ["█" * (n // 8) + (_GLYPHS[n % 8] if n < 80 else "") + " " * (9 - n // 8) for n in range(81)]


def clock(seconds: float) -> str:
    """tqdm's `MM:SS`, with hours where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class Run:
    """One run on its way: what it has drawn depends on the seed and the number of steps alone."""

    def __init__(self, steps: int, seed: int) -> None:
        self.steps = steps
        self._random = random.Random(seed)
        self._postfix = ""
        self._elapsed = 0.0
        self._smooth = 0.0

    def draw(self, n: int) -> str:
        """The training bar at count `n`."""
        pace = self._smooth
        rate = "?it/s" if not pace else f"{pace:5.2f}s/it" if pace > 1 else f"{1 / pace:5.2f}it/s"
        left = clock(pace * (self.steps - n)) if pace else "?"
        return (
            f"\r{NAME}: {100 * n / self.steps:3.0f}%|{_METERS[80 * n // self.steps]}| {n}/{self.steps} "
            f"[{clock(self._elapsed)}<{left}, {rate}{self._postfix}]"
        )

    def step(self, n: int, streak: int = 0) -> str:
        """What step `n` writes: its draw with the new loss and that of the next count, or a banner and the latter."""
        uniform = self._random.random
        took = self._random.choices(SECONDS, (40, 30, 12))[0] * (0.9 + 0.2 * uniform())
        self._elapsed += took
        self._smooth = SMOOTHING * took + (1 - SMOOTHING) * self._smooth if self._smooth else took
        if streak:
            return BANNER.format(streak) + self.draw(n + 1)
        self._postfix = f", lr: 1.0e-04 loss: {0.02 + 0.9 * uniform():.3e}"
        return self.draw(n) + self.draw(n + 1)

    def preview(self, n: int) -> str:
        """A save and two samples within step `n`; the bar of the samples is drawn below and wiped."""
        images = [
            f"\n\rGenerating Images: {50 * done:3d}%|{_METERS[40 * done]}| {done}/2 "
            f"[{clock(PREVIEW_STEPS * done)}<{clock(PREVIEW_STEPS * (2 - done))},  4.02s/it]\x1b[A"
            for done in range(3)
        ]
        saved = f"\nSaving at step {n}\nSaved checkpoint to output/{NAME}/{NAME}_{n:09d}.safetensors\n"
        return saved + "".join(images) + "\n\r" + " " * 64 + "\x1b[A"


def pieces(size: int, seed: int = 0) -> Iterator[str]:
    """The log of about `size` bytes, piece by piece."""
    steps = max(20, size // BYTES_A_STEP)
    run = Run(steps, seed)
    drops = random.Random(seed + 1)
    yield head(config(train__steps=steps), NAME) + buckets(BUCKETS) + run.draw(0)
    fatal = steps - 6
    rows: list[str] = []
    for n in range(fatal):
        rows.append(run.step(n, streak=1 if drops.random() < DROPPED else 0))
        if n and n % SAVE_EVERY == 0:
            rows.append(run.preview(n))
        if len(rows) >= 4096:
            yield "".join(rows)
            rows.clear()
    rows += [run.step(n, streak=n - fatal + 1) for n in range(fatal, fatal + 3)]
    rows.append(f"Error running job: {ABORT}\n{RESULT}Traceback (most recent call last):\n")
    rows.append(f'  File "/opt/ai-toolkit/run.py", line 120, in main\n    job.run()\nRuntimeError: {ABORT}\n')
    yield "".join(rows)


def write(path: pathlib.Path, size: int, *, seed: int = 0, lines: bool = False) -> pathlib.Path:
    """Write the log of about `size` bytes to `path`, a draw a line if `lines`."""
    with path.open("wb") as file:
        for piece in pieces(size, seed):
            data = piece.encode()
            file.write(data.replace(b"\r", b"\n") if lines else data)
    return path


def main() -> None:
    """Write one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--megabytes", type=float, default=500)
    parser.add_argument("--lines", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    write(options.file, int(options.megabytes * 1e6), seed=options.seed, lines=options.lines)


if __name__ == "__main__":
    main()
