"""Counts what a process does to files, and lets the k-th of it go wrong.

What counts is what changes a disk: opening to write, each write below the buffers, making it last, closing, renaming,
changing rights, making a folder, and taking away where a process is to die of it.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import pathlib
import signal
import tempfile
from collections.abc import Callable
from typing import Any

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR}
SIGNALS = {"SIGINT": signal.SIGINT, "SIGTERM": signal.SIGTERM, "SIGHUP": signal.SIGHUP, "SIGKILL": signal.SIGKILL}
_WRITES = set("wxa+")


class Faults:
    """What goes wrong, and when: `kind` at the `at`-th step (counted from 1), and with `lasting` at all that follow."""

    def __init__(self, kind: str | None, at: int, *, lasting: bool = False) -> None:
        self.kind = kind
        self.at = at
        self.lasting = lasting
        self.count = 0
        self.log: list[str] = []
        self.armed = True

    def step(self, what: str) -> bool:
        """One step; whether it is to be done by halves. Raises OSError or sends a signal where it goes wrong."""
        if not self.armed:
            return False
        self.count += 1
        self.log.append(what)
        due = self.count == self.at or (self.lasting and self.count > self.at > 0)
        if not due or self.kind is None:
            return False
        if self.kind == "short":
            return True
        if self.kind in SIGNALS:
            os.kill(os.getpid(), SIGNALS[self.kind])
            return False
        if self.kind == "EINTR" and what != "write":
            return False  # Python itself tries again
        raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]))


class Raw(io.FileIO):
    """A file whose writes and close count."""

    faults: Faults

    def write(self, data: Any, /) -> int:
        if self.faults.step("write"):
            data = memoryview(data)[: max(1, len(data) // 2)]
        return super().write(data)

    def close(self) -> None:
        if self.closed:
            return
        writable = self.writable()
        super().close()
        if writable:
            self.faults.step("close")


def install(faults: Faults) -> None:
    """Put the counting in place of the system's own functions, for the rest of this process."""
    kind = type("CountedRaw", (Raw,), {"faults": faults})
    plain = io.open

    def opened(
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not _WRITES & set(mode):
            return plain(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not isinstance(file, int):
            faults.step("open")
        raw = kind(file, mode.replace("b", "").replace("t", ""), closefd=closefd, opener=opener)
        buffer: Any = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, encoding, errors, newline)

    builtins.open = opened
    io.open = opened
    pathlib_io = getattr(pathlib, "io", None)
    if pathlib_io is not None:
        pathlib_io.open = opened
    tempfile._io.open = opened  # type: ignore[attr-defined]

    def counted(
        name: str, target: Callable[..., Any], *, only: Callable[..., bool] | None = None
    ) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if only is None or only(*arguments, **named):
                faults.step(name)
            return target(*arguments, **named)

        return call

    def writes(path: Any, flags: int, *_: Any, **__: Any) -> bool:
        return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))

    os.open = counted("open", os.open, only=writes)
    for name in ("fsync", "replace", "rename", "chmod", "fchmod", "mkdir", "link"):
        setattr(os, name, counted(name, getattr(os, name)))
    if faults.kind == "SIGKILL":  # what cannot be taken away stays, whoever tries: no fault of the one who tries
        for name in ("unlink", "remove", "rmdir"):
            setattr(os, name, counted(name, getattr(os, name)))
    write = os.write

    def short_write(descriptor: int, data: Any) -> int:
        if faults.step("write"):
            data = memoryview(data)[: max(1, len(data) // 2)]
        return write(descriptor, data)

    os.write = short_write
