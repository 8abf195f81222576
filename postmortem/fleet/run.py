"""The whole of a batch: find, look up, analyse what is new, keep the order."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

import msgspec

from postmortem.fleet.cache import Cache
from postmortem.fleet.find import Target
from postmortem.fleet.pool import run_all
from postmortem.fleet.row import Row, shown_name
from postmortem.fleet.work import Done
from postmortem.scan import Lexicon

STORE_EVERY = 64
"""Rows that are stored together: what a kill can cost."""

Progress = Callable[[Target], None]
Engine = Callable[[Sequence[Target]], Iterator[Done]]
"""Analyses targets, and gives a row for each, in their order."""


def rows_of(
    targets: Iterable[Target],
    lexicon: Lexicon,
    cache: Cache,
    workers: int,
    pack: Path | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Iterator[Row]:
    """The rows of `done_of`."""
    return (done.row for done in done_of(targets, lexicon, cache, workers, pack, progress, engine))


def done_of(
    targets: Iterable[Target],
    lexicon: Lexicon,
    cache: Cache,
    workers: int,
    pack: Path | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Generator[Done, None, None]:
    """Each target that is a log with its row, in the targets' order; of several with the same bytes the first stands
    for all. `engine` is what analyses, where it is not this machine. What is done is in the cache also when the caller
    stops half way."""
    first: dict[str, Target] = {}
    for done in _in_order(targets, cache, engine or partial(_local, lexicon=lexicon, workers=workers, pack=pack)):
        if progress is not None:
            progress(done.target)
        if done.row.status == "not_a_log":
            continue
        row = done.row
        if done.key is not None:
            stands = first.setdefault(done.key, done.target)
            if stands.path != done.target.path:  # below two folders that were given, two may have one name
                row = msgspec.structs.replace(row, duplicate_of=shown_name(stands.name))
        yield msgspec.structs.replace(done, row=row)


def _local(targets: Sequence[Target], lexicon: Lexicon, workers: int, pack: Path | None) -> Iterator[Done]:
    return run_all(targets, lexicon, workers if len(targets) > 1 else 1, pack)


def _in_order(targets: Iterable[Target], cache: Cache, engine: Engine) -> Iterator[Done]:
    """Known ones from the cache, the others through the pool, merged back into one order."""
    known: dict[int, Done] = {}
    fresh: list[tuple[int, Target]] = []
    count = 0
    for target in targets:
        found = cache.get(target)
        if found is not None:
            known[count] = Done(target, *found)
        else:
            fresh.append((count, target))
        count += 1
    held: list[Done] = []
    results = engine([target for _, target in fresh])
    at = iter(index for index, _ in fresh)
    try:
        for is_known, group in groupby(range(count), key=known.__contains__):
            for index in group:
                if is_known:
                    yield known.pop(index)
                    continue
                done = next(results)
                assert next(at) == index
                held.append(done)
                if len(held) >= STORE_EVERY:
                    cache.put(held, time.time())
                    held = []
                yield done
    finally:
        cache.put(held, time.time())
        if isinstance(results, Generator):
            results.close()  # at once, whoever still holds it: its workers are not waited for
