"""A zip whose bytes depend on its content alone, and the careful reading of one that came from elsewhere."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO, cast

from postmortem.bounded import ZipFile

NAMES = ("report.html", "report.md", "report.json", "log-excerpt.txt", "config.yaml", "README.txt", "manifest.json")
"""Everything that a bundle may hold; no name in it comes from an input."""
MAX_FILE = 64 << 20
"""Largest file of a bundle that is read, bytes."""
MAX_DIRECTORY = 128 << 10
LEVEL = 9
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can hold: a bundle says nothing of when it was made."""
_REGULAR = 0o100644 << 16
_ENTRY = 46
"""Bytes of an entry in a zip's directory, less its name."""
_WRITTEN = (
    *("orig_filename", "date_time", "compress_type", "create_system", "create_version", "extract_version", "reserved"),
    *("flag_bits", "volume", "internal_attr", "external_attr", "header_offset", "extra", "comment"),
)
"""What the directory says of an entry besides its sizes and checksum."""
REPACKED = "was not packed by `postmortem bundle`, or was changed since (data around its files, other order or marks)"


class BadBundle(ValueError):
    """Not a bundle, or a damaged one; the message says what is wrong."""


def pack(files: Mapping[str, bytes]) -> bytes:
    """`files` (of `NAMES`) as a zip: sorted, without times, users or extra fields."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in sorted(files):
            if name not in NAMES:
                raise ValueError(f"{name} is no part of a bundle")
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # the same on every machine
            entry.external_attr = _REGULAR
            archive.writestr(entry, files[name], compresslevel=LEVEL)
    return held.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """The files of a bundle. Raises BadBundle on anything that `pack` cannot have written, also around and between the
    files, where one unpacker sees what another does not."""
    found: dict[str, bytes] = {}
    try:
        guarded = ZipFile(io.BytesIO(data), MAX_DIRECTORY)
        with zipfile.ZipFile(cast(BinaryIO, guarded)) as archive:
            guarded.opened = True
            entries = archive.infolist()
        if len(entries) > len(NAMES):
            raise BadBundle("holds more files than a ticket has")
        for entry in entries:
            if entry.filename not in NAMES or entry.filename in found:
                raise BadBundle("holds a file that a ticket does not have, or one twice")
            if entry.file_size > MAX_FILE:
                raise BadBundle(f"{entry.filename} is larger than {MAX_FILE >> 20} MiB")
            found[entry.filename] = b""
        for entry, held in _held(entries, data):
            found[entry.filename] = _content(entry, held)
    except BadBundle:
        raise
    # what else a broken or encrypted zip makes the library raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise BadBundle("is a damaged zip, or one with a password") from error
    if "report.json" not in found or "manifest.json" not in found:
        raise BadBundle("holds no report.json with a manifest.json; give a ticket made by `postmortem bundle`")
    return found


def _held(entries: Sequence[zipfile.ZipInfo], data: bytes) -> Iterator[tuple[zipfile.ZipInfo, bytes]]:
    """Each entry and its compressed bytes, where all of `data` but these is what `pack` writes for such entries."""
    at = 0
    for entry in entries:
        plain = zipfile.ZipInfo(entry.filename, _EPOCH)
        plain.compress_type, plain.create_system, plain.external_attr = zipfile.ZIP_DEFLATED, 3, _REGULAR
        plain.CRC, plain.compress_size, plain.file_size = entry.CRC, entry.compress_size, entry.file_size
        plain.header_offset, plain.orig_filename = at, entry.filename
        header = plain.FileHeader()
        if any(getattr(entry, name) != getattr(plain, name) for name in _WRITTEN) or not data.startswith(header, at):
            raise BadBundle(REPACKED)
        yield entry, data[at + len(header) : at + len(header) + entry.compress_size]
        at += len(header) + entry.compress_size
    directory = sum(_ENTRY + len(entry.filename) for entry in entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(entries), len(entries), directory, at, 0)
    if [entry.filename for entry in entries] != sorted(entry.filename for entry in entries):
        raise BadBundle(REPACKED)
    if data[at + directory :] != end or not data.startswith(b"PK\1\2", at):
        raise BadBundle(REPACKED)


def _content(entry: zipfile.ZipInfo, held: bytes) -> bytes:
    """What an entry unpacks to, all of its bytes used."""
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    content = stream.decompress(held, MAX_FILE + 1)
    if len(content) > MAX_FILE:
        raise BadBundle(f"{entry.filename} is larger than {MAX_FILE >> 20} MiB")
    if not stream.eof or len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
        raise zipfile.BadZipFile(entry.filename)
    if stream.unused_data:
        raise BadBundle(REPACKED)
    return content
