"""How a run's two streams end up in one log: Python's buffers, tqdm's redraws, terminals and wrappers.

Piped, stdout is block-buffered and stderr is not; tqdm flushes stdout whenever it makes a new bar. The UI, a
terminal and `--log` keep the true order. `--log` and other streams that are not UTF-8 get bars of ASCII.
"""

from __future__ import annotations

BUFFER_BYTES = 8192
MODES = ("ui", "pty", "redirect", "logopt")


class Terminal:
    """Collects what a run writes, in the order in which it comes out."""

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.status: int | None = 1
        self._done: list[str] = []
        self._held: list[str] = []
        self._held_bytes = 0

    @property
    def ascii(self) -> bool:
        """Whether bars are drawn with `#` and digits."""
        return self.mode == "logopt"

    def out(self, line: str = "") -> None:
        """One printed line."""
        if self.mode != "redirect":
            self._done.append(line + "\n")
            return
        self._held.append(line + "\n")
        self._held_bytes += len(line) + 1
        if self._held_bytes > BUFFER_BYTES:
            self.flush()

    def err(self, text: str) -> None:
        """Text on stderr, as it is."""
        self._done.append(text)

    def flush(self) -> None:
        """What stdout held back comes out."""
        self._done.extend(self._held)
        self._held, self._held_bytes = [], 0

    def lose(self) -> bool:
        """The process is killed: what stdout held back never comes out. Returns whether anything was."""
        lost = bool(self._held)
        self._held, self._held_bytes = [], 0
        return lost

    def cut(self) -> bool:
        """The log just ends: neither the process nor the terminal says another word. Returns whether lines were lost."""
        self.status = None
        return self.lose()

    def text(self) -> str:
        """The log; a terminal writes CR LF."""
        self.flush()
        log = "".join(self._done)
        if self.mode != "pty":
            return log
        log = f"Script started on 2026-11-30 01:13:27+00:00 [<not executed on terminal>]\n{log}"
        if self.status is not None:
            log += f'\nScript done on 2026-11-30 01:14:05+00:00 [COMMAND_EXIT_CODE="{self.status}"]\n'
        return log.replace("\n", "\r\n")


def clock(seconds: float) -> str:
    """tqdm's `MM:SS`, with hours only where there are any."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


class Bar:
    """One tqdm bar: its text, its padding, its two moments of drawing."""

    def __init__(
        self, terminal: Terminal, description: str, total: int, *, start: int = 0, below: bool = False
    ) -> None:
        self.terminal = terminal
        self.description = description
        self.total = total
        self.n = start
        self.start = start
        self.elapsed = 0.0
        self.postfix = ""
        self.below = below
        self._rate: float | None = None
        self._ticked = 0.0
        self._length = 0
        self._quiet = False
        terminal.flush()
        self.draw()

    def draw(self) -> None:
        """Draw the bar over itself."""
        text = self._text()
        padded = text + " " * max(0, self._length - len(text))
        self._length = len(text)
        self.terminal.err(f"\n\r{padded}\x1b[A" if self.below else f"\r{padded}")

    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.elapsed += seconds

    def tick(self, *, to: int | None = None) -> None:
        """Go on to count `to` (default: the next); not drawn right after a pause."""
        count = self.n + 1 if to is None else to
        moved, self.n = count - self.n, count
        if moved:
            self._rate = max(self.elapsed - self._ticked, 1e-4) / moved
        self._ticked = self.elapsed
        if self._quiet:
            self._quiet = False
            return
        self.draw()

    def say(self, postfix: str) -> None:
        """A new postfix: tqdm draws at once."""
        self.postfix = postfix
        self.draw()

    def pause(self) -> None:
        """The clock stands still, and the draw that follows is too early for tqdm."""
        self._quiet = True

    def close(self, *, leave: bool = True) -> None:
        """The last draw, or the bar is wiped."""
        if not leave:
            wiped = " " * 64
            self.terminal.err(f"\n\r{wiped}\x1b[A" if self.below else f"\r{wiped}\r")
            return
        self.draw()
        self.terminal.err("\n")

    def _text(self) -> str:
        head = f"{self.description}: " if self.description else ""
        share = self.n / self.total if self.total else 0.0
        rate, left = "?it/s", "?"
        if self._rate is not None and self.n > self.start:
            rate = f"{self._rate:5.2f}s/it" if self._rate > 1 else f"{1 / self._rate:5.2f}it/s"
            left = clock(self._rate * (self.total - self.n))
        more = f", {self.postfix}" if self.postfix else ""
        return (
            f"{head}{100 * share:3.0f}%|{self._blocks(share)}| {self.n}/{self.total} "
            f"[{clock(self.elapsed)}<{left}, {rate}{more}]"
        )

    def _blocks(self, share: float) -> str:
        signs = " 123456789#" if self.terminal.ascii else " ▏▎▍▌▋▊▉█"
        steps = len(signs) - 1
        full, part = divmod(int(share * 10 * steps), steps)
        bar = signs[-1] * full
        return bar if full >= 10 else (bar + signs[part]).ljust(10)
