"""What an xz file holds, within bounds: the library's own reader takes whatever dictionary the file asks for."""

from __future__ import annotations

import lzma
from typing import Any

MAX_MEMORY = 128 << 20
"""Bytes that unpacking may take; `xz -9`, the most that its levels go to, needs half of it."""
_MAGIC = b"\xfd7zXZ\0"
_PIECE = 64 * 1024


class XzFile:
    """The text of `stream`, which gives the bytes of an xz file: one stream, or several one after the other.

    Reading raises lzma.LZMAError where it is damaged or asks for more memory, and EOFError where it breaks off.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._decompressor: lzma.LZMADecompressor | None = None
        self._packed = b""
        self._failed: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes (a piece where it is negative), none at the end."""
        if self._failed is not None:
            raise self._failed
        try:
            return self._read(size if size >= 0 else _PIECE)
        except (lzma.LZMAError, EOFError) as error:
            self._failed = error
            raise

    read1 = read

    def _read(self, size: int) -> bytes:
        while size:
            decompressor = self._decompressor
            if decompressor is None or decompressor.eof:
                decompressor = self._next(decompressor)
                if decompressor is None:
                    return b""
            if decompressor.needs_input and not self._packed:
                self._packed = self._stream.read(_PIECE)
                if not self._packed:
                    raise EOFError("the end is missing")
            piece = decompressor.decompress(self._packed, size)
            self._packed = b""
            if piece:
                return piece
        return b""

    def _next(self, before: lzma.LZMADecompressor | None) -> lzma.LZMADecompressor | None:
        """The next stream's decompressor; None where nothing follows but padding, or what is no xz."""
        rest = before.unused_data if before is not None else b""
        while not (rest := rest.lstrip(b"\0")):
            rest = self._stream.read(_PIECE)
            if not rest:
                return None
        while len(rest) < len(_MAGIC) and (more := self._stream.read(_PIECE)):
            rest += more
        if before is not None and not rest.startswith(_MAGIC):
            return None
        self._packed = rest
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)
        return self._decompressor
