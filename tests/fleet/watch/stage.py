"""A watcher on a stage: real files, a clock that the test moves, events and words gathered."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from postmortem.cli.watch import _renderer, _write
from postmortem.fleet.watch.events import Event
from postmortem.fleet.watch.hook import Hooks
from postmortem.fleet.watch.memory import Memory
from postmortem.fleet.watch.state import Pace
from postmortem.fleet.watch.watcher import Setup, Watcher, World
from postmortem.scan import Lexicon
from tests.simulate import config, finished, head, training

DIES = head(config()) + training(400, {0, 1, 2, 3})
"""Dies in its first steps."""
DIES_LATER = head(config()) + training(400, {60, 61, 62, 63})
ALIVE = head(config()) + training(400, [], until=30)
FINE = head(config()) + training(40, []) + finished()
SKIPS = head(config(train__steps=40)) + training(40, {7, 20}) + finished()
STOPPED = (
    ALIVE + "\n\n========================================\nJob stopped\n========================================\n"
)


class Stage:
    """One watcher after another on the same folder, as restarts are."""

    def __init__(self, root: Path, lexicon: Lexicon, home: Path | None = None, quiet_s: float = 1800) -> None:
        self.root = root
        self.home = home
        self.at = 1000.0
        self.events: list[Event] = []
        self.told: list[tuple[str, str, str]] = []
        self.hooked: list[dict[str, str]] = []
        self._lexicon = lexicon
        self._quiet_s = quiet_s
        self._wall = time.time() - self.at
        self.start()

    def start(self, suffixes: Sequence[str] = (".md",), database: Path | None = None) -> None:
        """A new watcher that knows nothing but what lies on disk."""
        hooks = Hooks(["x"], 60, lambda what, path: None)
        hooks.add = lambda values: self.hooked.append(dict(values))  # type: ignore[method-assign]
        world = World(
            now=lambda: self.at,
            wall=lambda: self._wall + self.at,
            sleep=self._pass,
            stopped=lambda: False,
            emit=self.events.append,
            tell=lambda what, path, why: self.told.append((what, path, why)),
            write=_write,
            render=_renderer(self._lexicon.knowledge, redact=True),
        )
        setup = Setup(self.root, Pace(2.0, self._quiet_s), database=database, suffixes=suffixes)
        memory = Memory(self.home, self.root, "v", _write)
        self.watcher = Watcher(setup, world, self._lexicon, memory, hooks)

    def _pass(self, seconds: float) -> None:
        self.at += seconds

    def after(self, seconds: float) -> list[str]:
        """What happens while `seconds` go by: names of events."""
        before = len(self.events)
        end = self.at + seconds
        while self.at < end:
            self.at += 2.0
            self.watcher.poll(self.at)
        return [event.event for event in self.events[before:]]


def write(path: Path, text: str) -> None:
    """A log as it stands now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def append(path: Path, text: str) -> None:
    """More of a log."""
    with path.open("a") as file:
        file.write(text)


def rotate(folder: Path) -> None:
    """Move the log aside as the UI does."""
    (folder / "logs").mkdir(exist_ok=True)
    number = len(list((folder / "logs").iterdir()))
    (folder / "log.txt").rename(folder / "logs" / f"{number}_log.txt")
