"""Cut a large log in a second process while this one reads what was cut: half the wait, and the same pieces.

Cutting is half of what a log of bars costs. A block passes through memory that both processes see; its pieces come back
without the bytes that this one has already. Where no process can be started, or one dies, all is cut here.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from postmortem.processes import LARGE, cores, undisturbed
from postmortem.scan.segments import FEED, MAX_READ, Block, Cutter, Piece, Region

if TYPE_CHECKING:
    import mmap
    from multiprocessing.connection import Connection

    Place = tuple[int, int, int, int, bool]
    """Where a block lies in the common memory, how long it is, and its line, offset and bulk."""

AT_ONCE = 3
"""Blocks that it has: one to cut, and the next ones."""
DEPTH = 4
"""Blocks that were cut, or are being cut, and not read yet."""
PATIENCE_S = 60.0
"""What a block may take: it is cut in a fraction of a second, and somebody may have stopped the process."""
ROOM = (1 << 20) + MAX_READ
"""What a block may take; a longer one is cut here."""


def ahead(cutter: Cutter, chunks: Iterable[bytes]) -> Iterator[list[Piece]]:
    """The pieces that each of the chunks completes, as `in_place` gives them."""
    blocks = (block for block in map(cutter.take, chunks) if block is not None)
    for block in blocks:
        if block.offset < LARGE:
            yield cutter.cut(block)
            continue
        second = start(cutter)
        if second is None:
            yield cutter.cut(block)
            yield from map(cutter.cut, blocks)
            return
        try:
            yield from _Both(cutter, second).cut(chain([block], blocks))
        finally:
            second.close()


class _Waiting(msgspec.Struct):
    """A block that is cut, or being cut: the physical line that it starts in, and its pieces if they are here."""

    block: Block
    line: int
    pieces: list[Piece] | None


class _Both:
    """Two processes that cut: this one only where it would wait for the second."""

    def __init__(self, cutter: Cutter, second: Second) -> None:
        self._cutter = cutter
        self._second = second
        self._line = cutter.line

    def cut(self, blocks: Iterator[Block]) -> Iterator[list[Piece]]:
        """The pieces of each block."""
        waiting: deque[_Waiting] = deque()
        block = next(blocks, None)
        while block is not None or waiting:
            if block is not None and len(waiting) < DEPTH and (self._free(block) or not self._ready(waiting)):
                waiting.append(self._start(block))
                block = next(blocks, None)
            else:
                yield self._pieces(waiting.popleft())
        self._cutter.line = self._line

    def _free(self, block: Block) -> bool:
        return self._second.free and not block.lost and len(block.raw) <= ROOM

    def _ready(self, waiting: deque[_Waiting]) -> bool:
        return bool(waiting) and (waiting[0].pieces is not None or self._second.ready())

    def _start(self, block: Block) -> _Waiting:
        one = _Waiting(block, self._line, None)
        if self._free(block):
            self._second.send(block, self._line)
        else:
            one.pieces = self._here(one)
        self._line += _newlines(block.raw)
        return one

    def _pieces(self, one: _Waiting) -> list[Piece]:
        pieces = self._second.receive(one.block, self._cutter) if one.pieces is None else one.pieces
        return self._here(one) if pieces is None else pieces

    def _here(self, one: _Waiting) -> list[Piece]:
        self._cutter.line = one.line
        return self._cutter.cut(one.block)


def _newlines(raw: bytes) -> int:
    """How many line feeds there are, sooner than `bytes.count` says."""
    import numpy as np

    return int(np.count_nonzero(np.frombuffer(raw, np.uint8) == FEED))


def start(cutter: Cutter) -> Second | None:
    """The second process, or None where there is no core for it or no safe way to start it."""
    if sys.platform != "linux" or cores() < 2 or not alone():
        return None
    import multiprocessing

    if multiprocessing.current_process().daemon:
        return None  # one of a pool's, each of which has its core
    try:
        return Second(cutter)
    except OSError:
        return None


def alone() -> bool:
    """Whether this process has one thread: of what others hold (locks, the end of a pipe that they write) a fork has a
    copy that nobody gives back."""
    return threading.active_count() == 1


class Second:
    """A copy of this process that cuts what it is sent. Raises OSError where it cannot be made."""

    def __init__(self, cutter: Cutter) -> None:
        import mmap
        import multiprocessing

        context = multiprocessing.get_context("fork")
        self._memory = mmap.mmap(-1, AT_ONCE * ROOM)
        self._slot = self._has = 0
        self._pipe, there = context.Pipe()
        self._lives = True
        self._process = context.Process(target=_serve, args=(cutter, self._memory, self._pipe, there), daemon=True)
        try:
            gc.freeze()  # looking through what is there by now would make each process have a copy of its own
            with undisturbed():
                self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            there.close()

    @property
    def free(self) -> bool:
        """Whether it may be sent a block."""
        return self._lives and self._has < AT_ONCE

    def send(self, block: Block, line: int) -> None:
        """Have a block cut that starts in `line`."""
        at = self._slot * ROOM
        self._slot = (self._slot + 1) % AT_ONCE
        self._memory[at : at + len(block.raw)] = block.raw
        try:
            self._pipe.send((at, len(block.raw), line, block.offset, block.bulk))
            self._has += 1
        except OSError:
            self._lives = False

    def ready(self) -> bool:
        """Whether `receive` would not have to wait."""
        try:
            return not self._lives or self._pipe.poll()
        except OSError:
            return True

    def receive(self, block: Block, cutter: Cutter) -> list[Piece] | None:
        """The pieces of the block that was sent first of those not yet received; None if they do not come."""
        if not self._lives:
            return None
        try:
            if not self._pipe.poll(PATIENCE_S):
                raise TimeoutError
            size, cut_long, pieces = self._pipe.recv()
        except (OSError, EOFError):
            self._lives = False
            return None
        if pieces is None:
            import pickle

            at = (self._slot - self._has) % AT_ONCE * ROOM
            with memoryview(self._memory)[at : at + size] as written:
                pieces = pickle.loads(written)  # noqa: S301 - by a copy of this process
        self._has -= 1
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
        import pickle

        parents.close()
        gc.disable()
        while True:
            place: Place = pipe.recv()
            at, size, line, offset, bulk = place
            before = cutter.cut_long
            cutter.line = line
            pieces = cutter.cut(Block(memory[at : at + size], offset, 0, bulk))
            data = pickle.dumps(pieces, pickle.HIGHEST_PROTOCOL)
            fits = len(data) <= ROOM  # in the place of the block: more than a pipe holds unread
            if fits:
                memory[at : at + len(data)] = data
            pipe.send((len(data), cutter.cut_long - before, None if fits else pieces))
    finally:
        os._exit(0)  # nothing of what the first process has begun is this one's to end
