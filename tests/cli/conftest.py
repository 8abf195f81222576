"""A terminal for the commands."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable

import pytest


@pytest.fixture
def in_terminal() -> Callable[..., tuple[int, bytes]]:
    """Run a command at a pseudo-terminal of 80 x 24; what a pipe gives it, and all that the terminal is sent.

    `slow` is how many seconds the pipe stands still half way."""

    def run(*command: str, stdin: bytes | None = None, slow: float = 0, **environment: str) -> tuple[int, bytes]:
        import fcntl
        import pty
        import struct
        import termios

        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
        process = subprocess.Popen(
            command,
            stdin=slave if stdin is None else subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            env={**env, "TERM": "xterm-256color", **environment},
            close_fds=True,
        )
        os.close(slave)
        if stdin is not None:
            pipe = process.stdin
            assert pipe is not None

            def feed(data: bytes = stdin) -> None:
                with pipe:
                    pipe.write(data[: len(data) // 2])
                    time.sleep(slow)
                    pipe.write(data[len(data) // 2 :])

            threading.Thread(target=feed, daemon=True).start()
        shown = bytearray()
        while True:
            try:
                piece = os.read(master, 1 << 16)
            except OSError:  # what Linux says at the end
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        return process.wait(timeout=60), bytes(shown)

    return run
