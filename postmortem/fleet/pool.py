"""Analyse many targets in worker processes: results in the targets' order, flat memory, no target stops another."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from postmortem import COLLECT_EVERY
from postmortem.fleet.find import Target
from postmortem.fleet.work import Done, failed, work_all
from postmortem.knowledge.load import load
from postmortem.scan import Lexicon

SHARE = 16
"""Targets handed over at once: below that, handing over costs more than a run."""
SHARE_BYTES = 16 << 20
AHEAD = 4
"""Shares waiting for each worker."""

Task = Callable[[list[Target]], list[Done]]

_lexicon: Lexicon | None = None


def cores() -> int:
    """Workers that this process may keep busy."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return max(1, os.cpu_count() or 1)


def run_all(targets: Iterable[Target], lexicon: Lexicon, workers: int, pack: Path | None = None) -> Iterator[Done]:
    """A row for each target, in order. With one worker everything happens in this process."""
    if workers <= 1:
        yield from work_all(targets, lexicon)
        return
    yield from Pool(workers, pack).run(targets)


class Pool:
    """Worker processes; `task` is what each does with a share of the targets."""

    def __init__(self, workers: int, pack: Path | None = None, task: Task | None = None) -> None:
        self._workers = workers
        self._pack = pack
        self._task = task or _share
        self._executor = self._new(workers)

    def _new(self, workers: int) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, mp_context=context, initializer=begin, initargs=(self._pack,))

    def run(self, targets: Iterable[Target]) -> Iterator[Done]:
        """A row for each target, in order."""
        waiting: deque[tuple[list[Target], Future[list[Done]]]] = deque()
        shares = _shares(targets)
        try:
            while True:
                for share in islice(shares, max(0, AHEAD * self._workers - len(waiting))):
                    waiting.append((share, self._submit(share)))
                if not waiting:
                    return
                share, future = waiting.popleft()
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    # a worker was killed: which target it had, only each alone can tell
                    again = [share, *(other for other, _ in waiting)]
                    waiting.clear()
                    self._executor.shutdown(wait=False, cancel_futures=True)
                    self._executor = self._new(self._workers)
                    yield from self._alone(share)
                    for other in again[1:]:
                        waiting.append((other, self._submit(other)))
        finally:
            self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, share: list[Target]) -> Future[list[Done]]:
        try:
            with undisturbed():
                return self._executor.submit(self._task, share)
        except BrokenProcessPool as error:
            broken: Future[list[Done]] = Future()
            broken.set_exception(error)
            return broken

    def _alone(self, share: list[Target]) -> Iterator[Done]:
        """Each target in a process of its own."""
        for target in share:
            with self._new(1) as single:
                try:
                    with undisturbed():
                        future = single.submit(self._task, [target])
                    yield future.result()[0]
                except BrokenProcessPool:
                    why = "the process that read it was killed (for lack of memory, perhaps)"
                    yield Done(target, None, failed(target, "error", why))


def _shares(targets: Iterable[Target]) -> Iterator[list[Target]]:
    share: list[Target] = []
    size = 0
    for target in targets:
        share.append(target)
        size += target.bytes
        if len(share) >= SHARE or size >= SHARE_BYTES:
            yield share
            share, size = [], 0
    if share:
        yield share


@contextmanager
def undisturbed() -> Iterator[None]:
    """While workers are started Ctrl-C waits: it is the parent's to answer, also before `begin` says so to them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin(pack: Path | None) -> None:
    """In a worker: Ctrl-C is the parent's to answer; the patterns are made ready once."""
    global _lexicon
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _lexicon = Lexicon(load(pack))
    gc.set_threshold(COLLECT_EVERY)
    gc.freeze()  # the patterns live as long as the process: not to be looked through again with each run


def _end_with_parent() -> None:
    """A worker waits for work on a pipe that it holds itself: without its parent it would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def ready() -> Lexicon:
    """In a worker: the patterns that `begin` made ready."""
    assert _lexicon is not None
    return _lexicon


def _share(targets: list[Target]) -> list[Done]:
    return list(work_all(targets, ready()))
