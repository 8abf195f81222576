"""What `find` walks through: a folder of this machine, or of a store, with the same few questions to both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable


class Entry(Protocol):
    """A file or folder in a listing, asked as an `os.DirEntry` is."""

    @property
    def name(self) -> str:
        """Its last part."""

    @property
    def path(self) -> str:
        """A path or a URL under which it can be opened."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a regular file."""

    def stat(self) -> Any:
        """What `os.stat` says: size, time, mode, and in `st_dev` and `st_ino` what makes it the same file."""


@runtime_checkable
class Place(Protocol):
    """A folder. `remote` is true where its files must be fetched."""

    path: str
    remote: bool

    def entries(self) -> Sequence[Entry]:
        """What lies in it, in no order. Raises OSError."""

    def below(self, entry: Entry) -> Place:
        """A folder in it."""

    def stat(self) -> Any:
        """As for an entry. Raises OSError."""


class LocalPlace:
    """A folder (or a file, as a root) of this machine."""

    remote = False

    def __init__(self, path: str) -> None:
        self.path = path

    def entries(self) -> Sequence[Entry]:
        """What lies in it. Raises OSError."""
        with os.scandir(self.path) as listing:
            return list(listing)

    def below(self, entry: Entry) -> Place:
        """A folder in it."""
        return LocalPlace(entry.path)

    def stat(self) -> os.stat_result:
        """Of the folder itself, through links. Raises OSError."""
        return os.stat(self.path)  # noqa: PTH116  (a path may be long: no object for each)
