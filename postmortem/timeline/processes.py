"""Which process of a job was at work: AI Toolkit prints the configs of all before it runs them one after another.

Nothing names the process that runs. They run in order, and a trainer that has begun draws one training bar; the next
starts only when that bar is full. A bar whose total no config asks for says that part of the log is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from postmortem.model import ConfigDump, Item
from postmortem.timeline import training_bar


def candidates(
    dumps: Sequence[ConfigDump], before: int, items: Sequence[Item], name: str | None, *, completed: bool
) -> tuple[ConfigDump, ...]:
    """The configs of the processes that may have been at work at the end of `items`, the likeliest first.

    `before` processes ended in earlier attempts; `completed`: the attempt ended well.
    """
    if len(dumps) < 2:
        return tuple(dumps)
    bars = training_bar.spans(items, name)
    if before >= len(dumps) or not all(_trains(dump) for dump in dumps):
        return tuple(dumps)
    begun = sum(
        at == 0 or bar.last_n < bars[at - 1].last_n or bar.total != bars[at - 1].total for at, bar in enumerate(bars)
    )
    at = min(before + max(0, begun - 1), len(dumps) - 1)
    found = [dumps[at]]
    if bars and bars[-1].last_n >= bars[-1].total - 1 and not completed and at + 1 < len(dumps):
        found.append(dumps[at + 1])
    total = bars[-1].total if bars else None
    if total is not None and not any(_steps(dump) in (None, total) for dump in found):
        found = [dump for dump in dumps if _steps(dump) in (None, total)] or list(dumps)
    return tuple(found)


def _trains(dump: ConfigDump) -> bool:
    kind = (dump.value or {}).get("type")
    return isinstance(kind, str) and "train" in kind


def _steps(dump: ConfigDump) -> int | None:
    train = (dump.value or {}).get("train")
    found = train.get("steps") if isinstance(train, dict) else None
    return found if isinstance(found, int) else None
