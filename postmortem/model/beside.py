"""What lies beside the log, and the settings that were in force."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, TypeGuard

import msgspec

from postmortem.model.scanned import Notice
from postmortem.text import LogText


class Checkpoint(msgspec.Struct, frozen=True):
    """One checkpoint of a run folder, whole or not, as far as its names and headers tell.

    `job` is its name without step and suffix. `step` is null for the final one unless its header says it.
    `state` is `whole`, `torn` (its header and its size disagree), `empty`, or `unchecked`.
    """

    job: LogText
    name: LogText
    step: int | None
    final: bool
    state: str


class FolderWitness(msgspec.Struct, frozen=True):
    """What a run folder holds of the run's results.

    `optimizer` is the state of `optimizer.pt`, None where there is none. `preview_step` and `preview_images`
    are of the last preview by the time stamps in the names. `whole` is False if a folder was too full to list.
    `unread` are names of what may not be read, each with the reason: of that nothing is known. `passed_over` counts
    older checkpoints that are too many to be looked into.
    """

    name: LogText
    checkpoints: tuple[Checkpoint, ...] = ()
    optimizer: str | None = None
    preview_step: int | None = None
    preview_images: int = 0
    whole: bool = True
    unread: tuple[tuple[LogText, LogText], ...] = ()
    passed_over: int = 0


class DatasetSizes(msgspec.Struct, frozen=True):
    """What a dataset's folder says of the sizes of its files.

    `sizes` are (width, height, whether it is a video, how many files), in pixels. `source` is `database` (AI Toolkit's
    own, `.aitk_size.json`) or `headers` (the images'). Of `unread` files nothing is known, of more if not `whole`.
    """

    name: LogText
    sizes: tuple[tuple[int, int, bool, int], ...]
    source: str
    unread: int = 0
    whole: bool = True

    @property
    def files(self) -> int:
        """Files whose size is known."""
        return sum(count for *_, count in self.sizes)


class JobRow(msgspec.Struct, frozen=True):
    """One job in the UI's database. After an error `step` is the last saved one and `info` the exception's message.

    `info` and `config` are as they stand there: for a scan and a parser, never for a sink.
    """

    id: LogText
    name: LogText
    status: str
    step: int | None
    total_steps: int | None
    info: str
    config: str | None


class JobDatabase(msgspec.Struct, frozen=True):
    """The UI's database: its file name, the jobs in it, whether it is damaged, and whether these are all of them."""

    name: str
    rows: tuple[JobRow, ...] = ()
    damaged: bool = False
    whole: bool = True


class Kept(msgspec.Struct, frozen=True):
    """What of the run is not lost: the step and the checkpoint from which it can go on.

    `source` is `folder` (the file was looked at), `log` (only the log says so), `nothing` (the folder was read, and
    neither it nor the log knows of a checkpoint), or None where nothing can be said. Only the final checkpoint may
    lack a step.
    """

    step: int | None = None
    checkpoint: LogText | None = None
    source: str | None = None


# --- config -----------------------------------------------------------------------------------------
class Value(msgspec.Struct, frozen=True):
    """One effective setting: what it is, which source said so, and the line there (None for a default)."""

    value: Any
    source: str
    line: int | None = None


def is_whole(value: Any) -> TypeGuard[int]:
    """Whether a setting's value is a whole number, the only kind that counts and sizes are calculated with.

    A config may hold anything: ``"auto"``, a list, ``true`` (which Python takes for a 1).
    """
    return isinstance(value, int) and not isinstance(value, bool)


class JobConfig(msgspec.Struct, frozen=True, dict=True):
    """The effective settings of the process that ran; empty `values` means that no config is known.

    `others` are the settings given that the knowledge base says nothing of (leaves, by dotted path). `given` are the
    configs of all sources as they stand there: for redaction, never for a sink.
    """

    values: Mapping[str, Value]
    sources: tuple[str, ...]
    warnings: tuple[Notice, ...] = ()
    job_name: LogText | None = None
    others: Mapping[str, Any] = msgspec.field(default_factory=dict)
    given: tuple[Mapping[str, Any], ...] = ()

    @property
    def known(self) -> bool:
        """Whether any config was found, so that defaults apply to what it leaves out."""
        return bool(self.sources)

    def get(self, path: str) -> Any:
        """The effective value at `path`, None when it is unset or no config is known."""
        found = self.values.get(path)
        return found.value if found else None

    def indexes(self, head: str) -> list[int]:
        """The indexes of the list `head` (``datasets``, ``sample.samples``) that any setting has, ascending."""
        return self._indexes.get(head, [])

    @cached_property
    def _indexes(self) -> Mapping[str, list[int]]:
        """The indexes of every list that stands first in a path."""
        found: dict[str, set[str]] = {}
        for path in [path for path in self.values if "[" in path]:
            head, _, rest = path.partition("[")
            found.setdefault(head, set()).add(rest[: rest.index("]")])
        return {head: sorted(map(int, indexes)) for head, indexes in found.items()}
