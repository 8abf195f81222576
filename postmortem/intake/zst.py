"""What a zstd file holds, and whether it is whole: to the library's own reader, one that breaks off just ends."""

from __future__ import annotations

from typing import Any

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPED = b"\x2a\x4d\x18"
"""How a frame that holds no data goes on, behind its first byte."""
_PIECE = 1024
"""Bytes that are unpacked at once: four of them may be 128 KiB."""


class ZstFile:
    """The text of `stream`, which gives the bytes of a zstd file: one frame, or several one after the other.

    Reading raises ZstdError where it is damaged or asks for more than `window` bytes to go back to, and EOFError where
    it breaks off.
    """

    def __init__(self, stream: Any, window: int) -> None:
        import zstandard

        self._stream = stream
        self._library = zstandard.ZstdDecompressor(max_window_size=window)
        self._frame: Any = None
        self._text = b""
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes (what is there where it is negative), none at the end."""
        while self._at >= len(self._text):
            packed = self._stream.read(_PIECE)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the end is missing")
                return b""
            self._at = 0
            self._text = self._unpacked(packed)
        end = len(self._text) if size < 0 else min(len(self._text), self._at + size)
        taken, self._at = self._text[self._at : end], end
        return taken

    read1 = read

    def _unpacked(self, packed: bytes) -> bytes:
        found: list[bytes] = []
        while packed:
            if self._frame is None:
                while len(packed) < len(_MAGIC) and (more := self._stream.read(_PIECE)):
                    packed += more
                if not packed.startswith(_MAGIC) and packed[1:4] != _SKIPPED:
                    while self._stream.read(_PIECE):  # no frame follows: nothing more of the file counts
                        pass
                    break
                self._frame = self._library.decompressobj()
            found.append(self._frame.decompress(packed))
            packed = b""
            if self._frame.eof:
                packed, self._frame = self._frame.unused_data, None
        return b"".join(found)
