"""Analyse many targets in worker processes: results in the targets' order, flat memory, no target stops another."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from postmortem import COLLECT_EVERY
from postmortem.files import sweep_folders
from postmortem.fleet.find import Target
from postmortem.fleet.work import Done, failed, work_all
from postmortem.knowledge.load import load
from postmortem.processes import undisturbed
from postmortem.scan import Lexicon

SHARE = 16
"""Targets handed over at once: below that, handing over costs more than a run."""
SHARE_BYTES = 16 << 20
AHEAD = 4
"""Shares waiting for each worker."""

Task = Callable[[list[Target]], list[Done]]

GRACE_S = 2.0
"""What a worker that is to end may take for it."""
LOOK_EVERY_S = 1.0
"""Between two looks whether somebody is still there who would hand a result over."""
Given = TypeVar("Given")
Result = TypeVar("Result")

_lexicon: Lexicon | None = None
_busy = False
"""In a worker: whether there may be something half written."""
_orphaned: Path | None = None
"""In a worker: the room that it has to take away itself."""


class NoWorkers(RuntimeError):
    """The system lets no workers be started: too little memory, or too many processes."""


def run_all(targets: Iterable[Target], lexicon: Lexicon, workers: int, pack: Path | None = None) -> Iterator[Done]:
    """A row for each target, in order. With one worker everything happens in this process."""
    if workers <= 1:
        yield from work_all(targets, lexicon)
        return
    yield from Pool(workers, pack).run(targets)


def _room() -> Path:
    """A folder for what the workers unpack, fetch and copy: it goes with the pool, however they end."""
    from postmortem.intake.archives import PREFIX

    room = Path(tempfile.mkdtemp(prefix=PREFIX))
    sweep_folders(room.parent, PREFIX)
    return room


def _executor(workers: int, pack: Path | None, room: Path) -> ProcessPoolExecutor:
    threading.excepthook = _unheard
    _deaf_tracker()
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=begin, initargs=(pack, room))


def _deaf_tracker() -> None:
    """Start the library's process that takes semaphores away so that a closed terminal does not end it: it would go
    with traces of its own on stderr, and leave them behind. It ends with us."""
    if not hasattr(signal, "pthread_sigmask"):
        return
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGQUIT})
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _unheard(told: threading.ExceptHookArgs) -> None:
    """What ends the thread that looks after the workers is said by `answer`, in one line."""
    if type(told.thread).__name__ != "_ExecutorManagerThread":
        threading.__excepthook__(told)


def answer(executor: ProcessPoolExecutor, future: Future[Result]) -> Result:
    """The result of `future`. Raises BrokenProcessPool, and NoWorkers where nobody is left to bring it.

    Without room for one more thread the library's own ends: until Python 3.11 nobody would be told, since then as if a
    worker had died, though it is the handing out that failed.
    """
    while True:
        try:
            return future.result(LOOK_EVERY_S)
        except BrokenProcessPool as error:
            if "add_call_item_to_queue" in str(error.__cause__):
                raise NoWorkers from None
            raise
        except NotYet:
            manager: Any = executor._executor_manager_thread
            lost = manager is None or not manager.is_alive()
            if future.done():  # in between, or the task's own
                return future.result()
            if lost:
                raise NoWorkers from None


def submit(executor: ProcessPoolExecutor, task: Callable[..., Result], *given: Any) -> Future[Result]:
    """`executor.submit`, undisturbed. Raises BrokenProcessPool and NoWorkers."""
    try:
        with undisturbed():
            return executor.submit(task, *given)
    except BrokenProcessPool:
        raise
    except (RuntimeError, BlockingIOError, MemoryError):  # no more threads, no more processes
        raise NoWorkers from None


@contextmanager
def started(workers: int, pack: Path | None) -> Iterator[ProcessPoolExecutor]:
    """Worker processes, which `begin` has made ready; they are waited for, unless something else ends the block."""
    room = _room()
    executor = _executor(workers, pack, room)
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        _end(executor)
        raise
    finally:
        shutil.rmtree(room, ignore_errors=True)


class Pool:
    """Worker processes; `task` is what each does with a share of the targets."""

    def __init__(self, workers: int, pack: Path | None = None, task: Task | None = None) -> None:
        self._workers = workers
        self._pack = pack
        self._task = task or _share
        self._room = _room()
        self._clear = weakref.finalize(self, shutil.rmtree, self._room, True)
        self._executor = self._new(workers)

    def _new(self, workers: int) -> ProcessPoolExecutor:
        return _executor(workers, self._pack, self._room)

    def run(self, targets: Iterable[Target]) -> Iterator[Done]:
        """A row for each target, in order."""
        waiting: deque[tuple[list[Target], Future[list[Done]]]] = deque()
        shares = _shares(targets)
        whole = False
        try:
            while True:
                for share in islice(shares, max(0, AHEAD * self._workers - len(waiting))):
                    waiting.append((share, self._submit(share)))
                if not waiting:
                    whole = True
                    return
                share, future = waiting.popleft()
                try:
                    yield from answer(self._executor, future)
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
            if whole:
                self._executor.shutdown(wait=False, cancel_futures=True)
            else:
                _end(self._executor)
            self._clear()

    def _submit(self, share: list[Target]) -> Future[list[Done]]:
        try:
            return submit(self._executor, ending, self._task, share)
        except BrokenProcessPool as error:
            broken: Future[list[Done]] = Future()
            broken.set_exception(error)
            return broken

    def _alone(self, share: list[Target]) -> Iterator[Done]:
        """Each target in a process of its own."""
        for target in share:
            single = self._new(1)
            try:
                done = answer(single, submit(single, ending, self._task, [target]))[0]
            except BrokenProcessPool:
                why = "the process that read it was killed (for lack of memory, perhaps)"
                done = Done(target, None, failed(target, "error", why))
            except BaseException:
                _end(single)
                raise
            single.shutdown()
            yield done


def _end(executor: ProcessPoolExecutor) -> None:
    """End the workers now: what they were asked for nobody waits for. They take away what they have half written; who
    does not hear, or is not waited for (a second Ctrl-C), is killed."""
    workers = list((executor._processes or {}).values())
    executor.shutdown(wait=False, cancel_futures=True)
    try:
        for worker in workers:
            _ask(worker, BaseProcess.terminate)
        until = time.monotonic() + GRACE_S
        while time.monotonic() < until and any(_ask(worker, BaseProcess.is_alive) for worker in workers):
            time.sleep(0.02)
    finally:
        for worker in workers:
            _ask(worker, BaseProcess.kill)


def _ask(worker: BaseProcess, what: Callable[[BaseProcess], bool | None]) -> bool:
    try:
        return bool(what(worker))
    except (OSError, ValueError):  # it has ended, and the pool has closed it
        return False


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


def begin(pack: Path | None, room: Path | None = None) -> None:
    """In a worker: Ctrl-C is the parent's to answer; the patterns are made ready once. Temporary files go into `room`,
    which the parent takes away."""
    try:
        _begin(pack, room)
    except (SystemExit, MemoryError):  # asked to end so early: the pool would print where
        _leave(1)


def _begin(pack: Path | None, room: Path | None) -> None:
    global _lexicon, _busy
    _busy = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _asked_to_end)
    if room is not None:
        tempfile.tempdir = str(room)
    threading.Thread(target=_end_with_parent, args=(room,), daemon=True).start()
    _lexicon = Lexicon(load(pack))
    gc.set_threshold(COLLECT_EVERY)
    gc.freeze()  # the patterns live as long as the process: not to be looked through again with each run
    _busy = False


def _asked_to_end(number: int, frame: object) -> None:
    if not _busy:
        # it reads from a pipe that all workers read from, one after the other: what would end here in order would hand
        # the pipe on with half a message taken out of it
        _leave(128 + number)
    raise SystemExit(128 + number)


def ending(task: Callable[[Given], Result], given: Given) -> Result:
    """In a worker: `task` of `given`. Who is asked to end meanwhile does so, when all is taken away that was half
    written; the pool would hand the request back as a result."""
    global _busy
    _busy = True
    try:
        return task(given)
    except SystemExit as asked:
        _leave(asked.code if isinstance(asked.code, int) else 1)
    finally:
        _busy = False


def _leave(status: int) -> NoReturn:
    if _orphaned is not None:
        shutil.rmtree(_orphaned, ignore_errors=True)
    os._exit(status)


def _end_with_parent(room: Path | None) -> None:
    """A worker waits for work on a pipe that it holds itself: without its parent it would wait for ever. Then nobody
    else takes away what it has half written and unpacked."""
    global _orphaned
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    _orphaned = room
    if _busy and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
        time.sleep(GRACE_S)
    _leave(1)


def ready() -> Lexicon:
    """In a worker: the patterns that `begin` made ready."""
    assert _lexicon is not None
    return _lexicon


def _share(targets: list[Target]) -> list[Done]:
    return list(work_all(targets, ready()))
