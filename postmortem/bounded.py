"""What strangers wrote, within bounds: JSON that is counted before it is built, zips that are not all directory, tars
that end where their bytes do."""

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


class TarStream:
    """`stream` as the file that the library reads a tar from, forward only.

    A header may claim any size: what it leads to is looked for no further than the bytes go, while the library's own
    stream takes a step for each piece that is claimed. `passed` is told how many bytes were passed over, as they are.
    """

    _PIECE = 1 << 18

    def __init__(self, stream: Any, passed: Callable[[int], None]) -> None:
        self._stream = stream
        self._passed = passed
        self._at = 0

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer at the end only."""
        pieces: list[bytes] = []
        while size > 0 and (piece := self._stream.read(min(size, self._PIECE))):
            pieces.append(piece)
            size -= len(piece)
            self._at += len(piece)
        return b"".join(pieces)

    def seek(self, offset: int) -> int:
        """Pass over what comes before `offset`, or the rest. Raises ValueError where that is behind."""
        if offset < self._at:
            raise ValueError("a place that was passed already")
        while self._at < offset and (piece := self.read(min(offset - self._at, self._PIECE))):
            self._passed(len(piece))
        return self._at

    def tell(self) -> int:
        """Bytes that were read or passed over."""
        return self._at

    def seekable(self) -> bool:
        """As of any file."""
        return False
