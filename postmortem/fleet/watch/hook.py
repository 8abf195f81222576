"""Run the user's command for each failure: without a shell, never waited for, ended when it takes too long."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

MAX_RUNNING = 4
GRACE_S = 5.0
"""What commands get that still run when the watcher is told to end."""
MAX_WAITING = 10_000
PLACES = ("report", "run", "outcome", "kind", "class", "phase", "step", "attempt", "first_fix")
"""What may stand in braces in an argument of the command: paths, and words of ours; nothing that a log could choose."""
PREFIX = "POSTMORTEM_"
_PLACE = re.compile(r"\{(\w+)\}")


class _Running(msgspec.Struct):
    process: subprocess.Popen[bytes]
    started: float
    run: str


class Hooks:
    """The commands that run and those that wait for their turn. `tell` gets a line where one fails."""

    def __init__(self, command: Sequence[str], timeout_s: float, tell: Callable[[str, str], None]) -> None:
        self._command = command
        self._timeout_s = timeout_s
        self._tell = tell
        self._waiting: deque[dict[str, str]] = deque(maxlen=MAX_WAITING)
        self._running: list[_Running] = []

    def add(self, values: Mapping[str, str]) -> None:
        """A failure, as what the command is to know of it."""
        if self._command:
            self._waiting.append(dict(values))

    @property
    def busy(self) -> bool:
        """Whether a command runs or waits."""
        return bool(self._waiting or self._running)

    def poll(self, now: float) -> None:
        """Take note of those that ended, end those that hang, start the next."""
        for one in list(self._running):
            code = one.process.poll()
            if code is None and now - one.started < self._timeout_s:
                continue
            self._running.remove(one)
            if code is None:
                _end(one.process)
                self._tell("hook_hangs", one.run)
            elif code != 0:
                self._tell("hook_failed", one.run)
        while self._waiting and len(self._running) < MAX_RUNNING:
            self._start(self._waiting.popleft(), now)

    def _start(self, values: dict[str, str], now: float) -> None:
        arguments = [filled(argument, values) for argument in self._command]
        environment = {**os.environ, **{PREFIX + name.upper(): value for name, value in values.items()}}
        try:
            process = subprocess.Popen(  # noqa: S603  (the user's own command, no shell)
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=_stderr(),  # what we print is for others to read
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError):
            self._tell("hook_not_started", values.get("run", ""))
            return
        self._running.append(_Running(process, now, values.get("run", "")))

    def close(self) -> None:
        """End what still runs after a short while; what has not begun yet never will."""
        end = time.monotonic() + GRACE_S
        for one in self._running:
            try:
                one.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                _end(one.process)
                self._tell("hook_hangs", one.run)
        for values in self._waiting:
            self._tell("hook_not_started", values.get("run", ""))
        self._running.clear()
        self._waiting.clear()


def filled(argument: str, values: Mapping[str, str]) -> str:
    """`argument` with the values in its braces; one argument stays one."""
    return _PLACE.sub(lambda found: values.get(found[1], "") if found[1] in PLACES else found[0], argument)


def _stderr() -> int:
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return subprocess.DEVNULL


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except OSError:
        pass
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1)
