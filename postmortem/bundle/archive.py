"""A zip whose bytes depend on its content alone, and the careful reading of one that came from elsewhere."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Mapping
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
    """The files of a bundle. Raises BadBundle on anything that `pack` cannot have written."""
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
                with archive.open(entry) as file:
                    content = file.read(MAX_FILE + 1)
                if len(content) > MAX_FILE:
                    raise BadBundle(f"{entry.filename} is larger than {MAX_FILE >> 20} MiB")
                found[entry.filename] = content
    except BadBundle:
        raise
    # what else a broken or encrypted zip makes the library raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise BadBundle("is a damaged zip, or one with a password") from error
    if "report.json" not in found or "manifest.json" not in found:
        raise BadBundle("holds no report.json with a manifest.json; give a ticket made by `postmortem bundle`")
    return found
