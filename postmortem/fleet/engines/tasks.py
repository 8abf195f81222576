"""What a machine of a cluster does with a share of the targets. Bytes in, bytes out: a scheduler need not look inside.

Imported by the workers, under this name: they have the tool, and the same one (`alike`), or say so.
"""

from __future__ import annotations

import gc
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from postmortem.fleet import dataset
from postmortem.fleet.engines.alike import Build, here
from postmortem.fleet.find import Target
from postmortem.fleet.work import Done, work_all
from postmortem.intake import is_url
from postmortem.knowledge.load import load
from postmortem.knowledge.schema import Knowledge
from postmortem.scan import Lexicon


class Unlike(RuntimeError):
    """A worker runs another tool or other patterns than the client."""


class Order(msgspec.Struct, frozen=True):
    """What holds for all tasks of one batch: the client's build, and the name of the plugin that has its patterns
    where they are not the built-in ones."""

    build: Build
    patterns: str | None = None


def look(roots: tuple[str, ...], seen: str | None) -> tuple[str, list[str]]:
    """This worker's build, and which of the paths (`seen` must be a file) it does not see."""
    unseen = [root for root in roots if not is_url(root) and not Path(root).exists()]
    if seen is not None and not dataset.Folder(seen).has_mark():
        unseen.append(seen)
    return str(here()), unseen


def analyse(share: bytes, order: bytes) -> bytes:
    """The rows of a share."""
    lexicon = _ready(msgspec.msgpack.decode(order, type=Order))
    targets = msgspec.msgpack.decode(share, type=list[Target])
    return msgspec.msgpack.encode(list(work_all(targets, lexicon)))


def analyse_into(share: bytes, order: bytes, folder: str, name: str, known: str | None) -> bytes:
    """The rows of a share, written as the part `name` of a data set; `known` is the part of an earlier run that stands
    on the same share. Back comes a `dataset.Part`."""
    out = dataset.Folder(folder)
    if known is not None:
        part = out.reuse(known, name)
        if part is not None:
            return msgspec.msgpack.encode(part)
    lexicon = _ready(msgspec.msgpack.decode(order, type=Order))
    targets = msgspec.msgpack.decode(share, type=list[Target])
    return msgspec.msgpack.encode(out.write(name, work_all(targets, lexicon)))


def rows(result: bytes) -> list[Done]:
    """What `analyse` gave."""
    return msgspec.msgpack.decode(result, type=list[Done])


def _ready(order: Order) -> Lexicon:
    if here() != order.build:
        raise Unlike(f"a worker runs postmortem {here()}, this machine {order.build}")
    return _built_in() if order.patterns is None else _own(order.patterns)


@lru_cache(maxsize=1)
def _built_in() -> Lexicon:
    return _kept(load())


@lru_cache(maxsize=2)
def _own(plugin: str) -> Lexicon:
    from distributed import get_worker

    held: Any = get_worker().plugins[plugin]
    return _kept(msgspec.json.decode(held.knowledge, type=Knowledge))


def _kept(knowledge: Knowledge) -> Lexicon:
    lexicon = Lexicon(knowledge)
    gc.freeze()
    return lexicon
