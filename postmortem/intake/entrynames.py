"""Where an archive's entry is written: its own folders and name, in harmless letters, as short as any system takes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

_WANTED = re.compile(
    r"(?i).+\.(?:log|txt|out|err|ya?ml|json)(?:\.\d+)?|(?:loss_log|aitk_db)\.db(?:-wal|-shm)?|[\w-]*log"
)
MAX_NAME = 120
"""Bytes of a file's or folder's name."""
MAX_PATH, MAX_LETTERS = 700, 180
"""Bytes and letters of names together; macOS takes 1,024 bytes with our folder, Windows 260 letters."""
SHORT_FOLDER, SHORT_NAME = 12, 36
"""Bytes of names where there would be more of them together."""
_STRANGE = re.compile(r"[^\w. +()\[\]-]")
_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:\..*)?")
"""Names that Windows takes for a device, whatever the folder and whatever comes behind a dot."""


def target_of(name: str, root: Path) -> Path | None:
    """Where an entry is written, if it is one that an analysis can use: its own folders, in harmless letters."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".", "..")]
    if not parts or len(parts) > 12 or not _WANTED.fullmatch(parts[-1]) or parts[0] == "__MACOSX":
        return None
    names = _names(parts, MAX_NAME, MAX_NAME)
    if len("/".join(names)) > MAX_LETTERS or len("/".join(names).encode()) > MAX_PATH:
        names = _names(parts, SHORT_FOLDER, SHORT_NAME)
    target = root.joinpath(*names)
    if target.exists():
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return None
    return target


def _names(parts: Sequence[str], folder: int, file: int) -> list[str]:
    """Names of our own for an entry's folders and itself, of at most so many bytes."""
    *folders, last = (_STRANGE.sub("_", part) for part in parts)
    return [*(_no_device(_cut(name, folder).strip(" .") or "_") for name in folders), _no_device(_cut(last, file))]


def _cut(name: str, most: int) -> str:
    """`name`, or the end of it, where its ending stands, behind a sum that keeps it apart from others with that end.

    File systems count bytes, and a letter has up to four.
    """
    whole = name.encode("utf-8")
    if len(whole) <= most:
        return name
    end = whole[len(whole) - (most - 9) :].decode("utf-8", "ignore")
    return f"{zlib.crc32(whole):08x}_{end}"


def _no_device(name: str) -> str:
    return f"_{name}" if _DEVICE.fullmatch(name) else name
