"""Bytes as they lie on disk → UTF-8 bytes, chunk by chunk, and the verdict whether they are text at all."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

HEAD = 64 * 1024
_NULS = re.compile(rb"\0+")
_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"%PDF", "a PDF"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"\x80\x02", "a pickle"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the start of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def what_binary(head: bytes) -> str | None:
    """What `head` is the start of, in words, if it is no text; None for text."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if sniff(head) not in ("utf-8",):
        return None
    # a disk that lost power leaves runs of NUL, and an append in another encoding one after each letter
    sample = _NULS.sub(b"\0", head[:HEAD])
    if 2 * sample.count(0) > len(sample) + 8:
        return "binary data"
    sample = sample.replace(b"\0", b"")
    odd = sum(sample.count(bytes([code])) for code in (*range(1, 7), *range(14, 27), *range(28, 32)))
    if sample and odd > max(8, len(sample) // 50):
        return "binary data"
    return None


def sniff(head: bytes) -> str:
    """The encoding by byte order mark, or by the stride of NUL bytes that UTF-16 text has."""
    for bom, name in _BOMS:
        if head.startswith(bom):
            return name
    sample = head[:4096]
    if len(sample) >= 8:
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        half = len(sample) // 2
        if odd > half * 0.6 and even < half * 0.1:
            return "utf-16-le"
        if even > half * 0.6 and odd < half * 0.1:
            return "utf-16-be"
    return "utf-8"


def to_utf8(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """`chunks` as UTF-8. UTF-8 passes as it is, stray bytes included; only a byte order mark and NULs are dropped."""
    if encoding == "utf-8":
        for chunk in chunks:
            yield chunk.replace(b"\0", b"") if 0 in chunk else chunk
        return
    if encoding == "utf-8-sig":
        first = b""
        started = False
        for chunk in chunks:
            if not started:
                first += chunk
                if len(first) < 3:
                    continue
                started = True
                chunk = first.removeprefix(codecs.BOM_UTF8)
            yield chunk
        if not started:
            yield first
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    first_text = True
    for chunk in chunks:
        text = decoder.decode(chunk)
        if first_text and text:
            text = text.removeprefix("\ufeff")
            first_text = False
        if text:
            yield text.encode("utf-8", "replace")
    rest = decoder.decode(b"", True)
    if rest:
        yield rest.encode("utf-8", "replace")
