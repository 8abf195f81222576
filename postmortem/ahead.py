"""Cut a large log in a second process while this one reads what was cut: half the wait, and the same pieces.

Cutting is half of what a log of bars costs. A block passes through memory that both processes see; its pieces come back
without the bytes that this one has already. Where no process can be started, or one dies, all is cut here.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from postmortem.processes import cores, undisturbed
from postmortem.scan.segments import MAX_READ, Block, Cutter, Piece, Region

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    Place = tuple[int, int, int | None, int, bool]
    """Where a block lies in the common memory, how long it is, and its line, offset and bulk."""

FROM = 8 << 20
"""Bytes of a log before which a second process is not worth its start."""
DEPTH = 3
"""Blocks that it may be ahead."""
ROOM = (2 << 20) + MAX_READ
"""What a block may take; a longer one is cut here."""


def ahead(cutter: Cutter, chunks: Iterable[bytes]) -> Iterator[list[Piece]]:
    """The pieces that each of the chunks completes, as `in_place` gives them."""
    waiting: deque[Block] = deque()
    second: Second | None = None
    tried = False
    try:
        for chunk in chunks:
            block = cutter.take(chunk)
            if block is None:
                continue
            if not tried and block.offset >= FROM:
                tried, second = True, start(cutter)
            if second is None or block.lost or len(block.raw) > ROOM:
                while waiting:
                    yield _first(waiting, second, cutter)
                yield cutter.cut(block)
                continue
            second.send(block, None if waiting else cutter.line)
            waiting.append(block)
            if len(waiting) == DEPTH:
                yield _first(waiting, second, cutter)
        while waiting:
            yield _first(waiting, second, cutter)
    finally:
        if second is not None:
            second.close()


def _first(waiting: deque[Block], second: Second | None, cutter: Cutter) -> list[Piece]:
    block = waiting.popleft()
    pieces = second.receive(block, cutter) if second is not None else None
    return cutter.cut(block) if pieces is None else pieces


def start(cutter: Cutter) -> Second | None:
    """The second process, or None where there is no core for it or no safe way to start it."""
    if sys.platform != "linux" or cores() < 2 or threading.active_count() > 1:
        return None  # a fork takes over locks that other threads hold
    import multiprocessing

    if multiprocessing.current_process().daemon:
        return None  # one of a pool's, each of which has its core
    try:
        return Second(cutter)
    except OSError:
        return None


class Second:
    """A copy of this process that cuts what it is sent. Raises OSError where it cannot be made."""

    def __init__(self, cutter: Cutter) -> None:
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._memory = mmap.mmap(-1, DEPTH * ROOM)
        self._slot = 0
        self._pipe, there = context.Pipe()
        self._lives = True
        self._process = context.Process(target=_serve, args=(cutter, self._memory, self._pipe, there), daemon=True)
        try:
            with undisturbed():
                self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            there.close()

    def send(self, block: Block, line: int | None) -> None:
        """Have a block cut that starts in `line`, or behind the one before it."""
        if not self._lives:
            return
        at = self._slot * ROOM
        self._slot = (self._slot + 1) % DEPTH
        self._memory[at : at + len(block.raw)] = block.raw
        try:
            self._pipe.send((at, len(block.raw), line, block.offset, block.bulk))
        except OSError:
            self._lives = False

    def receive(self, block: Block, cutter: Cutter) -> list[Piece] | None:
        """The pieces of the block that was sent first of those not yet received; None if they do not come."""
        if not self._lives:
            return None
        try:
            pieces, line, cut_long = self._pipe.recv()
        except (OSError, EOFError):
            self._lives = False
            return None
        cutter.line = line
        cutter.cut_long += cut_long
        for piece in pieces:
            if not isinstance(piece, tuple | Region):
                piece.block = block.raw
        found: list[Piece] = pieces
        return found

    def close(self) -> None:
        """End it, whatever it does."""
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._memory.close()


def _serve(cutter: Cutter, memory: mmap.mmap, parents: Connection, pipe: Connection) -> None:
    """In the second process: cut what comes until nothing more does. Ctrl-C is the first one's to answer."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        parents.close()
        while True:
            place: Place = pipe.recv()
            at, size, line, offset, bulk = place
            before = cutter.cut_long
            cutter.line = cutter.line if line is None else line
            pieces = cutter.cut(Block(memory[at : at + size], offset, 0, bulk))
            pipe.send((pieces, cutter.line, cutter.cut_long - before))
    finally:
        os._exit(0)  # nothing of what the first process has begun is this one's to end
