"""Bytes as they lie on disk → UTF-8 bytes, chunk by chunk, and the verdict whether they are text at all."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

HEAD = 64 * 1024
_NULS = re.compile(rb"\0+")
_NOT_ASCII = re.compile(r"[\x00-\x7f]+")
_HIGH = re.compile(rb"[\x80-\xff]+")
_HANGUL = (("\uac00", "\ud7a3"),)
_HAN = (("\u4e00", "\u9fff"), ("\u3000", "\u303f"), ("\uff00", "\uffef"))
"""Ranges of letters. As expressions they would take milliseconds to compile, at every start."""
_NARROW = re.compile(rb"[\t\n\r\x1b -~]{48}")
"""What UTF-16 never holds: so many characters of ASCII without a NUL between."""
_CONTROLS = bytes((*range(1, 7), *range(14, 27), *range(28, 32)))
"""Of ASCII, what no text has."""
_ENOUGH = 4
"""Characters that show a script."""
CODE_PAGES = frozenset({"cp949", "gbk", "cp1252"})
"""Encodings that are told by what the text looks like in them: a guess."""
_MAGIC = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x28\xb5\x2f\xfd", "a zstd file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
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
    if sniff(head).startswith(("utf-16", "utf-32")):
        return None
    sample = head[:HEAD]
    if 0 in sample:
        # a disk that lost power leaves runs of NUL, and an append in another encoding one after each letter
        sample = _NULS.sub(b"\0", sample)
        if 2 * sample.count(0) > len(sample) + 8:
            return "binary data"
        sample = sample.replace(b"\0", b"")
    odd = len(sample) - len(sample.translate(None, _CONTROLS))
    if sample and odd > max(8, len(sample) // 50):
        return "binary data"
    return None


def sniff(head: bytes) -> str:
    """The encoding by byte order mark, by the stride of NUL bytes that UTF-16 has, or by the script of a code page."""
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
    return _code_page(head)


def _code_page(head: bytes) -> str:
    """UTF-8, unless what is not ASCII in `head` is Korean, Chinese or Western text of a Windows console."""
    if head.isascii() or 0 in head:
        return "utf-8"
    text = head.decode("utf-8", "replace")
    strays = text.count("\ufffd")
    if strays <= 1 or len(_NOT_ASCII.sub("", text)) - strays >= strays:
        return "utf-8"
    runs = _HIGH.findall(head)
    # an accented letter is one byte among ASCII; Korean and Chinese letters are two each, and stand together
    pairs = sum(len(run) > 1 for run in runs) >= 0.8 * len(runs)
    for name, script in (("cp949", _HANGUL), ("gbk", _HAN)):
        found = _NOT_ASCII.sub("", head.decode(name, "replace"))
        hits = sum(any(low <= letter <= high for low, high in script) for letter in found)
        # one broken character may be the last, cut in two
        if pairs and len(found) >= _ENOUGH and found.count("\ufffd") <= 1 and hits >= 0.9 * (len(found) - 1):
            return name
    return "cp1252"


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
    source = iter(chunks)
    after: list[bytes] = []
    for chunk in _wide(source, after, big=encoding.endswith("be")) if encoding.startswith("utf-16") else source:
        text = decoder.decode(chunk)
        if first_text and text:
            text = text.removeprefix("\ufeff")
            first_text = False
        if text:
            yield text.encode("utf-8", "replace")
    rest = decoder.decode(b"", True)
    if rest:
        yield rest.encode("utf-8", "replace")
    if after:
        yield from to_utf8(chain(after, source), "utf-8")


def _wide(source: Iterator[bytes], after: list[bytes], *, big: bool) -> Iterator[bytes]:
    """The UTF-16 part of `source`; where a program that writes UTF-8 went on, the start of that goes into `after`.

    What stands behind the last NUL is held back: in UTF-16 every other byte of a log is one.
    """
    held = b""
    for chunk in source:
        held += chunk
        narrow = _NARROW.search(held)
        end = held.rfind(0, 0, narrow.start() if narrow else len(held)) + 1 + big
        if narrow:
            yield held[:end]
            after.append(held[end:])
            return
        if len(held) - end > HEAD:
            end = len(held)
        yield held[:end]
        held = held[end:]
    yield held
