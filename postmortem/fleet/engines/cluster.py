"""The same map over a Dask cluster that is already there (extra `cluster`).

Dask schedules, notices lost workers and runs their shares again elsewhere; this module only cuts the targets into
shares, keeps a bounded number of them in flight, and takes the rows back in the targets' order.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any, TypeVar

import msgspec

from postmortem.fleet import dataset
from postmortem.fleet.engines import tasks
from postmortem.fleet.engines.alike import Build, here
from postmortem.fleet.engines.share import shares
from postmortem.fleet.find import Target
from postmortem.fleet.work import Done, failed
from postmortem.knowledge.schema import Knowledge

CONNECT_S = 15
WORKERS_S = 60
"""How long to wait for the first worker of a cluster that has none yet."""
AHEAD = 3
"""Shares in flight for each thread of the cluster: one at work, two so that none waits for the client."""
LOOK_EVERY = 32
"""Shares after which the cluster is asked again how many threads it has."""
RETRIES = 3
"""How often a share that failed is done again; that a worker was lost does not count."""
T = TypeVar("T")


class ClusterError(Exception):
    """The cluster cannot be used; the message is one line saying why, and what to do."""


class Cluster:
    """A connection, checked: its workers have this tool and these patterns, and see the same files."""

    def __init__(self, address: str, knowledge: Knowledge, *, own_patterns: bool) -> None:
        try:
            import distributed
        except ImportError:
            raise ClusterError("--engine dask needs an extra: pip install 'aitk-postmortem[cluster]'") from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self._address = address
        self._lost = (distributed.comm.CommClosedError, distributed.CancelledError, TimeoutError)
        self._killed = distributed.KilledWorker
        try:
            self._client = distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
            if not self._client.nthreads():
                self._client.wait_for_workers(1, timeout=WORKERS_S)
        except (OSError, TimeoutError, ValueError) as error:
            what = "has no worker" if hasattr(self, "_client") else f"no scheduler answers ({type(error).__name__})"
            self.close()
            raise ClusterError(f"{address}: {what}") from None
        self._plugin = _patterns_for_workers(self._client, knowledge) if own_patterns else None
        order = tasks.Order(here(), self._plugin)
        self._order = msgspec.msgpack.encode(order)

    def check(self, roots: Sequence[str], seen: str | None = None) -> int:
        """Ask every worker for its build and for what it sees; the number of workers. Raises ClusterError."""
        try:
            answers = self._client.run(_asking(), tuple(roots), seen, on_error="return")
        except self._lost as error:
            raise self._gone(error) from None
        for worker, answer in sorted(answers.items()):
            if isinstance(answer, str):
                raise ClusterError(f"worker {worker}: {answer}; install aitk-postmortem {here().version} there")
            if isinstance(answer, BaseException):
                raise ClusterError(f"worker {worker}: does not answer ({type(answer).__name__})")
            build, unseen = answer
            if build != str(here()):
                raise ClusterError(f"worker {worker} runs {build}, this machine {here()}; install one version")
            if unseen:
                raise ClusterError(f"worker {worker} does not see {unseen[0]}; give what all machines see, or a store")
        return len(answers)

    @property
    def build(self) -> Build:
        """What all of the cluster runs."""
        return here()

    def rows(self, targets: Sequence[Target]) -> Iterator[Done]:
        """A row for each target, in order. Raises ClusterError."""

        def one(share: list[Target]) -> tuple[Callable[..., bytes], tuple[Any, ...]]:
            return tasks.analyse, (msgspec.msgpack.encode(share), self._order)

        for share, result in self._in_order(shares(targets), one):
            if isinstance(result, bytes):
                yield from tasks.rows(result)
            else:
                yield from self._alone(share, result)

    def write(
        self, targets: Iterable[Target], folder: dataset.Folder, progress: Callable[[int], None] | None = None
    ) -> dataset.Summary:
        """Analyse into a data set: no row comes here, only what was written. Raises ClusterError."""
        known = folder.known()
        numbers = iter(range(1 << 31))

        def one(share: list[Target]) -> tuple[Callable[..., bytes], tuple[Any, ...]]:
            digest = dataset.digest(share, str(here()), self._order)
            name = dataset.part_name(next(numbers), digest)
            return tasks.analyse_into, (msgspec.msgpack.encode(share), self._order, folder.url, name, known.get(digest))

        parts: list[dataset.Part] = []
        for share, result in self._in_order(shares(targets), one):
            if isinstance(result, bytes):
                part = msgspec.msgpack.decode(result, type=dataset.Part)
            else:
                name = dataset.part_name(len(parts), dataset.digest(share, str(here()), self._order))
                part = folder.write(name, self._alone(share, result))
            parts.append(part)
            if progress is not None:
                progress(len(share))
        return folder.commit(parts, str(here()))

    def close(self) -> None:
        """Give the connection back; the cluster stays."""
        client = getattr(self, "_client", None)
        if client is not None:
            client.close(timeout=5)

    def _in_order(
        self,
        cut: Iterator[list[Target]],
        task: Callable[[list[Target]], tuple[Callable[..., bytes], tuple[Any, ...]]],
    ) -> Iterator[tuple[list[Target], bytes | BaseException]]:
        """Each share with what came of it; what is in flight is bounded, whatever the cluster's size."""
        waiting: deque[tuple[list[Target], Any]] = deque()
        room = 0
        try:
            for number in count():
                if number % LOOK_EVERY == 0:  # workers come and go
                    room = AHEAD * max(1, sum(self._client.nthreads().values()))
                while len(waiting) < room and (share := next(cut, None)) is not None:
                    function, arguments = task(share)
                    waiting.append((share, self._client.submit(function, *arguments, retries=RETRIES, pure=False)))
                if not waiting:
                    return
                share, future = waiting.popleft()
                yield share, self._result(future)
                del future
        except self._lost as error:
            raise self._gone(error) from None
        finally:
            self._client.cancel([future for _, future in waiting])

    def _result(self, future: Any) -> bytes | BaseException:
        try:
            found: bytes = future.result()
            return found
        except tasks.Unlike as error:
            raise ClusterError(f"{error}; install one version") from None
        except self._lost:
            raise
        except Exception as error:
            return error

    def _alone(self, share: list[Target], problem: BaseException) -> Iterator[Done]:
        """Each target as a task of its own: which one took the workers with it, only that can tell."""
        for target in share if len(share) > 1 or not isinstance(problem, self._killed) else ():
            encoded = msgspec.msgpack.encode([target])
            try:
                result = self._result(self._client.submit(tasks.analyse, encoded, self._order, pure=False))
            except self._lost as error:
                raise self._gone(error) from None
            if isinstance(result, bytes):
                yield from tasks.rows(result)
            else:
                yield Done(target, None, failed(target, "error", self._why(result)))
        if len(share) == 1 and isinstance(problem, self._killed):
            yield Done(share[0], None, failed(share[0], "error", self._why(problem)))

    def _why(self, problem: BaseException) -> str:
        if isinstance(problem, self._killed):
            return "the workers that read it were killed (too little memory, perhaps)"
        return f"the cluster could not analyse it ({type(problem).__name__})"

    def _gone(self, error: BaseException) -> ClusterError:
        return ClusterError(f"{self._address}: the scheduler was lost ({type(error).__name__})")


def _asking() -> Callable[..., Any]:
    """`tasks.look` as a function that travels whole, so that a worker without the tool can say so."""

    def ask(roots: tuple[str, ...], seen: str | None) -> Any:
        try:
            from postmortem.fleet.engines.tasks import look
        except ImportError as error:
            return f"no {error.name}"
        return look(roots, seen)

    return ask


def _patterns_for_workers(client: Any, knowledge: Knowledge) -> str:
    """Make patterns that only this machine has known to all workers, also to those that join later."""
    from distributed import WorkerPlugin

    content = msgspec.json.encode(knowledge)
    name = f"postmortem-{blake2b(content, digest_size=8).hexdigest()}"
    client.register_plugin(_plugin(WorkerPlugin, content), name=name)
    return name


def _plugin(base: Any, content: bytes) -> Any:
    class Patterns(base):  # type: ignore[misc]
        """Holds the patterns in a worker."""

        def __init__(self) -> None:
            self.knowledge = content

    return Patterns()
