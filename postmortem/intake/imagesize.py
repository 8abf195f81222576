"""The size of a PNG, JPEG or WebP image out of its header, turned as a JPEG's EXIF orientation says.

AI Toolkit turns images so before it measures them. Nothing is decoded, and only headers are read.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

Size = tuple[int, int]
MAX_SEGMENTS = 2_000
MAX_FILL = 64
"""Bytes of filling before a segment."""
MAX_EXIF = 65_536
MAX_TAGS = 500
_ORIENTATION = 0x0112
_NO_FRAMES = (0xC4, 0xC8, 0xCC)


def size_of(path: Path) -> Size | None:
    """Width and height in pixels as the image is shown; None where the header does not tell."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
            if head.startswith(b"\x89PNG\r\n\x1a\n") and head[12:16] == b"IHDR" and len(head) >= 24:
                return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
            if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and len(head) >= 30:
                return _webp(head)
            if head.startswith(b"\xff\xd8"):
                return _jpeg(file)
    except OSError:
        pass
    return None


def _webp(head: bytes) -> Size | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = int.from_bytes(head[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return int.from_bytes(head[26:28], "little") & 0x3FFF, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


def _jpeg(file: BinaryIO) -> Size | None:
    """Walk the segments up to the image's data."""
    file.seek(2)
    size: Size | None = None
    turned: bool | None = None
    for _ in range(MAX_SEGMENTS):
        head = file.read(2)
        for _ in range(MAX_FILL):
            if head != b"\xff\xff":
                break
            head = b"\xff" + file.read(1)
        if len(head) < 2 or head[0] != 0xFF:
            return None
        kind = head[1]
        if kind == 0xDA:
            return (size[1], size[0]) if size and turned else size
        if kind == 0x01 or 0xD0 <= kind <= 0xD8:
            continue
        length = int.from_bytes(file.read(2), "big") - 2
        if length < 0:
            return None
        body = file.tell()
        if 0xC0 <= kind <= 0xCF and kind not in _NO_FRAMES and size is None:
            frame = file.read(5)
            size = int.from_bytes(frame[3:5], "big"), int.from_bytes(frame[1:3], "big")
        elif kind == 0xE1 and turned is None:
            turned = _is_turned(file.read(min(length, MAX_EXIF)))
        file.seek(body + length)
    return None


def _is_turned(exif: bytes) -> bool | None:
    """Whether an EXIF block says that the image lies on its side; None for another block."""
    if not exif.startswith(b"Exif\0\0"):
        return None
    tiff = exif[6:]
    order = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, length: int) -> int:
        return int.from_bytes(tiff[at : at + length], order)  # type: ignore[arg-type]

    tags = number(4, 4)
    for index in range(min(number(tags, 2), MAX_TAGS)):
        at = tags + 2 + 12 * index
        if number(at, 2) == _ORIENTATION:
            return 5 <= number(at + 8, 2) <= 8
    return False
