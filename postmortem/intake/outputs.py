"""What a run left in its folder: checkpoints, the optimiser's state, previews. Names, sizes and headers, never weights.

AI Toolkit writes `JOB_000000250.safetensors` (the last one without a number), for some models in two files with
`_high_noise` and `_low_noise` behind the number, for others a folder `JOB_000000250` with `aitk_meta.yaml` in it.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from postmortem.bounded import TooMuch, load_json
from postmortem.intake.folders import inside, natural
from postmortem.model import Checkpoint, FolderWitness
from postmortem.text import LogText

MAX_ENTRIES = 50_000
"""Entries of one folder that are listed; in a fuller one, nothing is said to be the last."""
MAX_CHECKED = 12
"""Checkpoints of one name whose headers are read: the latest."""
MAX_JOBS = 20
"""Names of checkpoints, of which a folder has one unless somebody put other weights there."""
MAX_HEADER = 8 * 1024 * 1024
"""Bytes of a safetensors header; that of the largest model takes two or three millions."""
MAX_HEADERS = 64 * 1024 * 1024
"""Bytes of all headers together."""
MAX_VALUES = 1_500_000
"""In one header: a tensor has seven, and the largest model some thousands of tensors."""
MAX_DIGITS = 18
MAX_PARTS = 200
"""Files of a checkpoint that is a folder."""
_WEIGHTS = re.compile(r"(?s)(?P<job>.+?)(?:_(?P<step>\d{9,12}))?(?P<part>_high_noise|_low_noise)?\.safetensors")
_WEIGHTS_FOLDER = re.compile(r"(?s)(?P<job>.+?)_(?P<step>\d{9,12})")
_META = "aitk_meta.yaml"
_PREVIEW = re.compile(r"(\d{1,16})__(\d{9,12})_(\d{1,6})\.(?:jpe?g|png|webp|mp4|wav|mp3|flac)")
_ZIP_END = b"PK\x05\x06"
_ZIP_TAIL = 66_000

WHOLE, TORN, EMPTY, UNCHECKED = "whole", "torn", "empty", "unchecked"
_WORST = (EMPTY, TORN, UNCHECKED, WHOLE)


def witness(folder: Path) -> FolderWitness | None:
    """What lies in the run folder; None when there is none to list."""
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100  (the name as the user sees it)
    unread: list[tuple[LogText, LogText]] = []
    try:
        entries, whole = _list(folder)
    except PermissionError as error:
        refused = (LogText(absolute.name), LogText(_reason(error)))
        return FolderWitness(name=LogText(absolute.name), whole=False, unread=(refused,))
    except OSError:
        return None
    # what is not among the names need not be asked for
    step, images, listed = None, 0, True
    if "samples" in entries or not whole:
        try:
            step, images, listed = _last_preview(folder / "samples", folder)
        except PermissionError as error:
            unread.append((LogText("samples"), LogText(_reason(error))))
    optimizer = None
    if "optimizer.pt" in entries or not whole:
        try:
            optimizer = _archive_state(folder, folder / "optimizer.pt")
        except PermissionError as error:
            optimizer = UNCHECKED
            unread.append((LogText("optimizer.pt"), LogText(_reason(error))))
    checkpoints, passed_over = _checkpoints(folder, entries)
    return FolderWitness(
        name=LogText(absolute.name),
        checkpoints=checkpoints,
        passed_over=passed_over,
        optimizer=optimizer,
        preview_step=step,
        preview_images=images,
        whole=whole and listed,
        unread=tuple(unread),
    )


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


class _Headers:
    """Reads headers, as many as the limit allows."""

    def __init__(self) -> None:
        self._left = MAX_HEADERS

    def read(self, path: Path) -> tuple[int, bytes | None] | None:
        """The file's size and its header; no header if the file ends in it, None if it is too large to be read."""
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or length > size - 8:
                return size, None
            if length > min(MAX_HEADER, self._left):
                return None
            self._left -= length
            return size, file.read(length)


def _list(folder: Path) -> tuple[list[str], bool]:
    names: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if len(names) >= MAX_ENTRIES:
                return names, False
            names.append(entry.name)
    return names, True


def _checkpoints(folder: Path, names: list[str]) -> tuple[tuple[Checkpoint, ...], int]:
    """The checkpoints by step, the numbered ones first, and how many of them are too many to be looked into.

    One in several files is as good as its worst file.
    """
    groups: dict[tuple[str, int | None], list[str]] = {}
    for name in names:
        match = _WEIGHTS.fullmatch(name) or _WEIGHTS_FOLDER.fullmatch(name)
        if match:
            step = match["step"]
            groups.setdefault((match["job"], int(step) if step else None), []).append(name)
    ordered = sorted(groups, key=lambda key: (key[1] is None, key[1] or 0, natural(key[0])))
    checked = _to_check(folder, ordered)
    headers = _Headers()
    found: list[Checkpoint] = []
    # the latest first: where the limit ends the reading, the oldest stay unread
    for job, step in reversed(ordered):
        files = sorted(groups[job, step], key=natural)
        looked = (job, step) in checked
        states = [_state(folder, folder / name, headers) if looked else (UNCHECKED, None) for name in files]
        known = [state for state in states if state is not None]
        if known:
            worst = min((state for state, _ in known), key=_WORST.index)
            told = next((at for _, at in known if at is not None), None) if step is None else step
            found.append(Checkpoint(LogText(job), LogText(files[0]), told, step is None, worst))
    return tuple(reversed(found)), len(ordered) - len(checked)


def _to_check(folder: Path, ordered: list[tuple[str, int | None]]) -> set[tuple[str, int | None]]:
    """Of each name the latest; any weights may lie in the folder, so those named like it or numbered go first."""
    by_job: dict[str, list[tuple[str, int | None]]] = {}
    for key in ordered:
        by_job.setdefault(key[0], []).append(key)
    jobs = sorted(by_job, key=lambda job: (job != folder.name, by_job[job][0][1] is None))
    return {key for job in jobs[:MAX_JOBS] for key in by_job[job][-MAX_CHECKED:]}


def _state(folder: Path, path: Path, headers: _Headers) -> tuple[str, int | None] | None:
    """Whether a checkpoint is whole, and the step that its header tells; None for what is no checkpoint."""
    try:
        mode = path.stat().st_mode
        if not inside(folder, path):
            return None
        if stat.S_ISREG(mode):
            return _file_state(path, headers)
        return _folder_state(path, headers) if stat.S_ISDIR(mode) else None
    except OSError:
        return UNCHECKED, None


def _file_state(path: Path, headers: _Headers) -> tuple[str, int | None]:
    """By the header of a safetensors file: its length, then JSON with the extent of each tensor."""
    found = headers.read(path)
    if found is None:
        return UNCHECKED, None
    size, raw = found
    if raw is None:
        return TORN if size else EMPTY, None
    try:
        header = load_json(raw, MAX_VALUES, number=_integer)
    except TooMuch:
        return UNCHECKED, None
    except (ValueError, RecursionError):
        return TORN, None
    end = _extent(header)
    if end is None:
        return TORN, None
    return (WHOLE if 8 + len(raw) + end == size else TORN), _told_step(header)


def _integer(digits: str) -> int | None:
    """To read a number of many digits takes time that grows with their square, and no file has such a size."""
    return int(digits) if len(digits) <= MAX_DIGITS else None


def _extent(header: object) -> int | None:
    """Bytes of all tensors together; None for what is no such header."""
    if not isinstance(header, dict):
        return None
    end = 0
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(isinstance(at, int) for at in offsets):
            return None
        end = max(end, offsets[1])
    return end


def _told_step(header: dict[str, object]) -> int | None:
    """The step in AI Toolkit's own metadata, which are JSON inside of a string."""
    metadata = header.get("__metadata__")
    told = metadata.get("training_info") if isinstance(metadata, dict) else None
    if not isinstance(told, str) or len(told) > 10_000:
        return None
    found = re.search(r'"step"\s*:\s*(\d{1,12})\b', told)
    return int(found[1]) if found else None


def _folder_state(path: Path, headers: _Headers) -> tuple[str, int | None] | None:
    """A checkpoint that is a folder: AI Toolkit's own note must lie in it, and every file of weights be whole."""
    note = path / _META
    if not note.is_file() or note.is_symlink():
        return None
    if not note.stat().st_size:
        return EMPTY, None
    states: list[str] = []
    seen = 0
    for below, _, files in os.walk(path):
        seen += 1 + len(files)
        if seen > MAX_PARTS:
            return UNCHECKED, None
        for file in (Path(below) / name for name in files if name.endswith(".safetensors")):
            if file.is_file() and not file.is_symlink():
                states.append(_file_state(file, headers)[0])
    return min(states, key=_WORST.index, default=TORN), None


def _archive_state(folder: Path, path: Path) -> str | None:
    """Whether a file that torch wrote, which is a zip archive, has its end; None when it is not there."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) or not inside(folder, path):
            return None
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not size:
                return EMPTY
            start = file.read(2)
            file.seek(max(0, size - _ZIP_TAIL))
            tail = file.read(_ZIP_TAIL)
    except PermissionError:
        raise
    except OSError:
        return None
    return WHOLE if start == b"PK" and _ZIP_END in tail else TORN


def _last_preview(samples: Path, folder: Path) -> tuple[int | None, int, bool]:
    """Step of the last preview and how many of its images were finished, by the names; whether all were listed."""
    if not samples.is_dir() or not inside(folder, samples):
        return None, 0, True
    try:
        names, whole = _list(samples)
    except PermissionError:
        raise
    except OSError:
        return None, 0, True
    if not whole:
        return None, 0, False
    found = sorted(
        (int(match[1]), int(match[2]), int(match[3]), name) for name in names if (match := _PREVIEW.fullmatch(name))
    )
    if not found:
        return None, 0, True
    step = found[-1][1]
    images, before = 0, found[-1][2] + 1
    for _, other, index, name in reversed(found):
        # an earlier preview of the same step belongs to an attempt before a resume
        if other != step or index >= before:
            break
        before = index
        images += _filled(samples / name)
    return step, images, True


def _filled(path: Path) -> bool:
    try:
        state = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(state.st_mode) and state.st_size > 0
