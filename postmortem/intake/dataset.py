"""What a dataset's folder says of the sizes of its files: AI Toolkit's `.aitk_size.json`, else the images' headers.

AI Toolkit walks the folder and all below it, but no hidden folder or file and no folder `_controls`. Its database
keeps the entries of files that are gone, so the folder's names are held against it where it lies beside its files.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from postmortem.bounded import TooMuch, load_json
from postmortem.intake.errors import IntakeError
from postmortem.intake.folders import inside
from postmortem.intake.imagesize import size_of
from postmortem.model import DatasetSizes
from postmortem.text import LogText, named

NAME = ".aitk_size.json"
IMAGES = (".jpg", ".jpeg", ".png", ".webp")
VIDEOS = (".mp4", ".avi", ".mov", ".webm", ".mkv", ".wmv", ".m4v", ".flv")
MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 200_000
MAX_VALUES = 8 * MAX_FILES
"""In the size database: a file has three or four."""
MAX_SIDE = 1_000_000


def read(folder: Path) -> DatasetSizes:
    """The sizes of the files of the dataset in `folder`. Raises IntakeError where there is no such thing."""
    shown = named(str(folder))
    try:
        if not folder.is_dir():
            raise IntakeError(f"{shown}: not a folder; give the folder of a dataset")
        name = LogText(os.path.basename(os.path.abspath(folder)))  # noqa: PTH100, PTH119  (the name as the user sees it)
        files, whole = _files(folder)
        database = folder / NAME
        if database.is_file() and inside(folder, database):
            return _from_database(name, database, files, whole, shown)
        if not whole:
            return DatasetSizes(name, (), "headers", whole=False)
        if not files:
            raise IntakeError(f"{shown}: neither {NAME} nor images in it; give the folder of a dataset")
        return _from_headers(name, folder, files)
    except OSError as error:
        raise IntakeError(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None


def _files(folder: Path) -> tuple[set[str], bool]:
    """The paths below `folder` of the files that AI Toolkit would take, and whether these are all."""
    found: set[str] = set()
    seen = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "_controls"]
        below = os.path.relpath(place, folder).replace(os.sep, "/")
        seen += len(names) + len(folders)
        if seen > MAX_FILES:
            return found, False
        for name in names:
            if name.lower().endswith((*IMAGES, *VIDEOS)) and not name.startswith("."):
                found.add(name if below == "." else f"{below}/{name}")
    return found, True


def _from_database(name: LogText, path: Path, files: set[str], whole: bool, shown: str) -> DatasetSizes:
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    try:
        entries = load_json(raw, MAX_VALUES) if len(raw) <= MAX_BYTES else None
    except TooMuch:
        return DatasetSizes(name, (), "database", whole=False)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise IntakeError(
            f"{shown}: its {NAME} is damaged or no size database; without it the images' headers are read"
        )
    keyed = {
        key.replace("\\", "/").lstrip("/"): entry for key, entry in entries.items() if isinstance(entry, list) and entry
    }
    keyed = {key: entry for key, entry in keyed.items() if key.lower().endswith((*IMAGES, *VIDEOS))}
    here = keyed.keys() & files
    if here and whole:
        keyed = {key: keyed[key] for key in here}
    sizes: Counter[tuple[int, int, bool]] = Counter()
    unread = 0
    for key, entry in list(keyed.items())[:MAX_FILES]:
        if len(entry) >= 3 and all(_is_side(side) for side in entry[:2]):
            sizes[entry[0], entry[1], key.lower().endswith(VIDEOS)] += 1
        else:
            unread += 1
    return _sizes(name, sizes, "database", unread, whole=len(keyed) <= MAX_FILES)


def _from_headers(name: LogText, folder: Path, files: set[str]) -> DatasetSizes:
    sizes: Counter[tuple[int, int, bool]] = Counter()
    unread = 0
    for below in sorted(files):
        path = folder / below
        found = None
        if below.lower().endswith(IMAGES) and inside(folder, path) and path.is_file():
            found = size_of(path)
        if found is not None and all(_is_side(side) for side in found):
            sizes[found[0], found[1], False] += 1
        else:
            unread += 1
    return _sizes(name, sizes, "headers", unread, whole=True)


def _sizes(
    name: LogText, sizes: Counter[tuple[int, int, bool]], source: str, unread: int, *, whole: bool
) -> DatasetSizes:
    rows = tuple((width, height, video, count) for (width, height, video), count in sorted(sizes.items()))
    return DatasetSizes(name, rows, source, unread, whole)


def _is_side(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_SIDE
