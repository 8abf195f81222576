"""One hostile input: what lies on disk, how the command is called, how it must end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.simulate import ABORT, RESULT, config, finished, head, training

Content = bytes | str | Callable[[Path], None]
"""What a file holds, or what makes it."""
HEAD = head(config())
SKIPS = training(400, {0, 1, 2, 3})
FAILING = HEAD + SKIPS
"""A run that died of GPU memory in its first steps."""
FINE = HEAD + training(40, []) + finished()
SIZES = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 MiB is free. "
    "Including non-PyTorch memory, this process has 23.00 GiB memory in use."
)
OOM = f"torch.OutOfMemoryError: {SIZES}\n"
DIED = HEAD + f"Error running job: {SIZES}\n"
KIND = "failure.kind"
__all__ = [
    "ABORT",
    "DIED",
    "FAILING",
    "FINE",
    "HEAD",
    "KIND",
    "OOM",
    "RESULT",
    "SIZES",
    "SKIPS",
    "Attack",
    "files",
    "log",
]


@dataclass(frozen=True)
class Attack:
    """`files` are written below a folder; `arguments` name them by ``{}`` and their names. `status` is how it ends.

    `says` are dotted paths of the JSON report and what must stand there, `warns` ids of warnings that it must hold,
    `tells` what the line on stderr must hold where there is no report, `hides` what no output may hold.
    """

    name: str
    files: Mapping[str, Content]
    arguments: tuple[str, ...]
    status: int
    says: Mapping[str, Any] = field(default_factory=dict)
    warns: tuple[str, ...] = ()
    tells: str = ""
    hides: tuple[str, ...] = ()


def log(
    name: str,
    data: bytes | str,
    status: int = 1,
    *,
    says: Mapping[str, Any] | None = None,
    warns: tuple[str, ...] = (),
    tells: str = "",
    hides: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> Attack:
    """A log alone."""
    return Attack(name, {"run.log": data}, ("{}/run.log", *options), status, says or {}, warns, tells, hides)


def files(
    name: str,
    given: Mapping[str, Content],
    status: int = 1,
    *,
    arguments: tuple[str, ...] = ("{}",),
    says: Mapping[str, Any] | None = None,
    warns: tuple[str, ...] = (),
    tells: str = "",
    hides: tuple[str, ...] = (),
) -> Attack:
    """Files of a folder, which is what is analysed unless the arguments name something else."""
    return Attack(name, given, arguments, status, says or {}, warns, tells, hides)
