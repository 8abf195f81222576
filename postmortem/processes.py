"""What this process may do beside itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 8 << 20
"""Bytes of a log before which a second process to read it is not worth its start."""


def cores() -> int:
    """Processes that this one may keep busy."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return max(1, os.cpu_count() or 1)


@contextmanager
def undisturbed() -> Iterator[None]:
    """While processes are started Ctrl-C waits: it is the parent's to answer, also before they say so themselves."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
