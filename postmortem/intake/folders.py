"""Which folder is meant, and what of AI Toolkit's lies in it: logs oldest first, configs most trusted first.

Nothing is opened here but directories. A link that leads out of the run folder is passed over.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from postmortem.intake.errors import IntakeError
from postmortem.text import named

CONFIG_NAMES = (".job_config.json", "config.yaml", "config.yml", "config.json")
LOG_NAMES = ("log.txt",)
OLD_LOG = re.compile(r"(\d{1,6})_log\.txt")
MAX_OLD_LOGS = 50
MAX_ENTRIES = 20_000
"""Entries of one folder that are looked at."""
MAX_NAMED = 5
"""Run folders that an error names."""
_LOOSE = (".log", ".txt")
_CONFIGS = (".yaml", ".yml", ".json")
_OF_A_RUN = re.compile(
    r"(?i).+\.(?:safetensors|pt|jpe?g|png|webp|mp4|wav|mp3|flac)|loss_log\.db|pid\.txt|\.job_config\.json"
)
"""Files of a run folder that are no log: who gives one means the run."""
_TOOLKIT = "ai-toolkit"
"""The checkout's folder in AI Toolkit's own image (/app/ai-toolkit) and on rented machines (/workspace/ai-toolkit)."""


class RunFolder(msgspec.Struct, frozen=True):
    """The files of one run: logs as (the name that evidence cites, path), oldest first, and config files.

    `left_out` is how many older logs there are besides; `crowded`: a folder has more entries than are looked at;
    `unread`: names in the folder of what could not be read, each with the reason.
    """

    path: Path
    logs: tuple[tuple[str, Path], ...]
    configs: tuple[Path, ...]
    left_out: int = 0
    crowded: bool = False
    unread: tuple[tuple[str, str], ...] = ()


def open_folder(path: Path) -> RunFolder:
    """The run that `path` means: a run folder, a folder inside one, or one that holds a single run.

    Raises IntakeError when there is no run, or more than one, and OSError.
    """
    run = _run_in(path)
    if run is not None:
        return run
    absolute = Path(os.path.abspath(path))  # noqa: PTH100  (resolve would follow links)
    within = absolute.name == "logs" or not _entries(path, _LOOSE)
    if within and (found := _run_in(absolute.parent)) is not None:
        return found
    for root in (path, path / _TOOLKIT):
        if (root / "run.py").is_file() and (root / "output").is_dir():
            return _only_run(root / "output", path)
    return _only_run(path, path)


def run_of(path: Path) -> Path | None:
    """The run folder that a file such as a checkpoint or a preview lies in; None for any other file."""
    if not _OF_A_RUN.fullmatch(path.name):
        return None
    absolute = Path(os.path.abspath(path))  # noqa: PTH100
    for folder in absolute.parents[:2]:
        with suppress(OSError):
            if _run_in(folder) is not None:
                return folder
    return None


def of_a_run(name: str) -> bool:
    """Whether AI Toolkit writes a file of that name into a run folder, or reads it there."""
    return name in (*LOG_NAMES, *CONFIG_NAMES) or bool(OLD_LOG.fullmatch(name) or _OF_A_RUN.fullmatch(name))


def is_run(folder: Path) -> bool:
    """Whether `folder` is more than a place where somebody keeps a log: it holds what only a run leaves."""
    return (folder / "samples").is_dir() or (folder / CONFIG_NAMES[0]).is_file()


def inside(folder: Path, entry: Path) -> bool:
    """Whether `entry` is no link, or one that stays in `folder`."""
    try:
        return not entry.is_symlink() or entry.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        return False


def configs_in(folder: Path) -> tuple[Path, ...]:
    """The job configs of a run folder, most trusted first."""
    return tuple(found for name in CONFIG_NAMES if (found := _file_in(folder, name)) is not None)


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts as people count: run_2 before run_10."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _run_in(folder: Path) -> RunFolder | None:
    """`folder` as a run folder, if AI Toolkit's logs lie in it."""
    logs: list[tuple[str, Path]] = []
    left_out = 0
    crowded = False
    unread: list[tuple[str, str]] = []
    old = folder / "logs"
    if old.is_dir() and inside(folder, old):
        numbered: list[tuple[int, Path]] = []
        try:
            entries, crowded = _listed(old)
            numbered = sorted(
                (int(found[1]), entry)
                for entry in entries
                if (found := OLD_LOG.fullmatch(entry.name)) and _is_file(folder, entry) and entry.stat().st_size
            )
        except OSError as error:  # the newest log may be readable all the same
            unread.append((old.name, _reason(error)))
        logs.extend((f"logs/{entry.name}", entry) for _, entry in numbered[-MAX_OLD_LOGS:])
        left_out = max(0, len(numbered) - MAX_OLD_LOGS)
    newest = _file_in(folder, LOG_NAMES[0])
    if newest is not None:
        logs.append((newest.name, newest))
    return RunFolder(folder, tuple(logs), configs_in(folder), left_out, crowded, tuple(unread)) if logs else None


def _only_run(folder: Path, given: Path) -> RunFolder:
    """The one run below `folder`, else the one loose log in it."""
    shown = named(str(given))
    entries, crowded = _listed(folder)
    runs: list[RunFolder] = []
    unread: list[tuple[str, str]] = []
    for entry in entries:
        try:
            if _is_folder(entry) and (run := _run_in(entry)) is not None:
                runs.append(run)
        except OSError as error:
            unread.append((entry.name, _reason(error)))
    if len(runs) == 1:
        left = (*runs[0].unread, *unread)
        return msgspec.structs.replace(runs[0], crowded=runs[0].crowded or crowded, unread=left)
    if runs:
        names = sorted((run.path.name for run in runs), key=natural)
        listed = ", ".join(named(name, 80) for name in names[:MAX_NAMED])
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        raise IntakeError(f"{shown}: holds {len(names)} run folders ({listed}{more}); give one of them")
    loose = _entries(folder, _LOOSE)
    if len(loose) == 1:
        return RunFolder(folder, ((loose[0].name, loose[0]),), configs_in(folder) or _only_config(folder), 0, crowded)
    if loose:
        names = [named(entry.name, 80) for entry in loose[:3]]
        raise IntakeError(f"{shown}: several logs and no log.txt ({', '.join(names)}…); give one of them")
    if unread:
        raise IntakeError(f"{shown}: {named(unread[0][0], 80)}: {unread[0][1]}")
    if crowded:
        raise IntakeError(f"{shown}: no log.txt in the first {MAX_ENTRIES} entries of this folder; give a log")
    raise IntakeError(f"{shown}: no log.txt in this folder; give the run's folder (TRAINING_FOLDER/JOB_NAME) or a log")


def _only_config(folder: Path) -> tuple[Path, ...]:
    """A config under a name of the user's own, if nothing else in the folder can be one."""
    found = _entries(folder, _CONFIGS)
    return tuple(found) if len(found) == 1 else ()


def _entries(folder: Path, suffixes: tuple[str, ...]) -> list[Path]:
    return sorted(entry for entry in _listed(folder)[0] if entry.suffix in suffixes and _is_file(folder, entry))


def _listed(folder: Path) -> tuple[list[Path], bool]:
    """What is looked at of a folder's entries, and whether there are more."""
    with os.scandir(folder) as entries:
        found = [Path(entry.path) for entry in islice(entries, MAX_ENTRIES + 1)]
    return found[:MAX_ENTRIES], len(found) > MAX_ENTRIES


def _is_file(folder: Path, entry: Path) -> bool:
    try:
        mode = entry.lstat().st_mode
        return stat.S_ISREG(mode) or (
            stat.S_ISLNK(mode) and stat.S_ISREG(entry.stat().st_mode) and inside(folder, entry)
        )
    except PermissionError:
        raise  # whether it is there cannot be told
    except OSError:
        return False


def _file_in(folder: Path, name: str) -> Path | None:
    """The file of that name in `folder`, if it is there: most names are not, and are asked for in every run."""
    try:
        mode = os.lstat(os.path.join(folder, name)).st_mode  # noqa: PTH118
    except PermissionError:
        raise
    except OSError:
        return None
    entry = folder / name
    return entry if stat.S_ISREG(mode) or _is_file(folder, entry) else None


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _is_folder(entry: Path) -> bool:
    try:
        return stat.S_ISDIR(entry.lstat().st_mode)
    except OSError:
        return False
