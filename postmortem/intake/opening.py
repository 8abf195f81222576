"""Open and read a file without waiting for it: some of the kernel's own say that they are files, and give nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import BinaryIO

NOTHING_YET = "has nothing to read yet; copy it first"


def opened(path: Path) -> BinaryIO:
    """`path`, to be read by `some`. What came in its place since it was looked at (a pipe) is not waited for either.

    Raises OSError.
    """
    return open(path, "rb", opener=_without_waiting)  # pathlib takes no opener


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def some(file: BinaryIO, size: int) -> bytes:
    """At most `size` bytes, none at the end. Raises OSError, also where there is nothing yet."""
    piece: bytes | None = file.read(size)
    if piece is None:
        raise OSError(errno.EAGAIN, NOTHING_YET)
    return piece
