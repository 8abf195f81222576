"""What strangers wrote, within bounds: JSON that is counted before it is built, zips that are not all directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MAX_DIGITS = 40
"""Of an integer; to read a longer one takes time that grows with its square, and nothing we read has one."""


class TooMuch(ValueError):
    """The input is larger than anything of its kind."""


def integer(digits: str) -> int | None:
    """A JSON integer; None for one that is longer than any that means something."""
    return int(digits) if len(digits) <= MAX_DIGITS else None


def load_json(
    raw: bytes,
    max_values: int,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None,
    constant: Callable[[str], Any] | None = None,
    number: Callable[[str], Any] = integer,
) -> Any:
    """The value in `raw` (UTF-8), if it holds no more than `max_values`; the rest are the library's own hooks.

    A few bytes of JSON become a hundred in memory, so that their number is looked at first: by the marks that stand
    before or between values, those within texts too. Raises TooMuch, ValueError and RecursionError.
    """
    if sum(map(raw.count, (b",", b"[", b"{"))) > max_values:
        raise TooMuch(f"more than {max_values} values")
    return json.loads(raw.decode("utf-8"), parse_int=number, object_pairs_hook=pairs, parse_constant=constant)


class ZipFile:
    """The file of a zip whose directory the library reads whole, before anything of it can be counted.

    Until `opened`, more than `most` bytes at once are refused: no directory of so many entries is that long. The end of
    a zip, with the longest comment, takes 66 kB, so `most` must be more.
    """

    def __init__(self, file: Any, most: int) -> None:
        self._file = file
        self._most = most
        self.opened = False

    def read(self, size: int = -1) -> bytes:
        """As of any file. Raises TooMuch."""
        if self.opened:
            return bytes(self._file.read(size))
        found = bytes(self._file.read(min(size, self._most + 1) if size >= 0 else self._most + 1))
        if len(found) > self._most or size > self._most:
            raise TooMuch(f"a directory of more than {self._most} bytes")
        return found

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of any file."""
        at: int = self._file.seek(offset, whence)
        return at

    def tell(self) -> int:
        """As of any file."""
        at: int = self._file.tell()
        return at

    def seekable(self) -> bool:
        """As of any file."""
        return True

    def readable(self) -> bool:
        """As of any file."""
        return True
