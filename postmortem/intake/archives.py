"""A compressed log, or a run packed into one file, laid out in a temporary folder as it was before.

Strangers make these files: what is taken out is chosen by name, written under names of our own making, and counted
against limits while it is unpacked. Links, devices and archives inside archives are never followed.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import sys
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import msgspec

from postmortem.bounded import TarStream, TooMuch, ZipFile
from postmortem.files import sweep_folders
from postmortem.intake.entrynames import target_of
from postmortem.intake.errors import IntakeError
from postmortem.intake.packed import CODECS, HEAD, ZIP, Limits, is_archive, is_tar

CHUNK = 1 << 18
TAR_PIECE = 4096
"""Where a tar breaks off, the piece that is being read is lost."""
PREFIX = "postmortem-unpacked-"
LEAST_DIRECTORY = 1 << 20
DIRECTORY_ENTRY = 400
"""Bytes that an entry takes in a zip's directory at most, on average; the library reads that as a whole."""
MAX_HEADERS = 1 << 20
"""Bytes of a tar's headers in front of one entry: long names and the like, which the library keeps in memory."""
_FREE_BYTES = 64 * 1024 * 1024
"""What may be unpacked whatever the ratio: a log of nothing but progress bars shrinks to a hundredth."""
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz", ".7z", ".rar")
_WEIGHTS = (".safetensors", "optimizer.pt")
"""What a run leaves and an analysis does not unpack."""
MAX_DICTIONARY = 128 << 20
"""Bytes of what was unpacked that a codec may go back to, and so keeps in memory; as in xz.py."""
TOO_WIDE = f"a dictionary of more than {MAX_DICTIONARY >> 20} MiB"
_BROKEN = (
    *(OSError, EOFError, MemoryError, ValueError, NotImplementedError, RuntimeError, struct.error),
    *(zlib.error, tarfile.TarError, zipfile.BadZipFile, LookupError, ArithmeticError),
)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_NO_WAY = (errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
_CODEC_ERRORS = (("lzma", "LZMAError"), ("zstandard", "ZstdError"))


class Home:
    """A temporary folder that goes with this value, or at the latest with the process."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        sweep_folders(self.path.parent, PREFIX)
        self.remove = weakref.finalize(self, shutil.rmtree, self.path, True)


class Unpacked(msgspec.Struct, frozen=True):
    """The temporary folder (removed with this value), its files, and whether the archive broke off."""

    home: Home
    files: tuple[Path, ...]
    single: bool
    cut: bool
    nested: str | None = None
    weights: bool = False

    @property
    def folder(self) -> Path:
        """The folder that holds the files."""
        return self.home.path


def unpack(stream: BinaryIO, head: bytes, name: str, limits: Limits) -> Unpacked:
    """Unpack `stream`, of which `head` was read already. Raises IntakeError, naming the archive `name`."""
    home = Home()
    budget = _Budget(limits, name)
    packed: Any = _Counted(stream, head, budget)
    root = home.path
    try:
        if head.startswith(ZIP):
            return Unpacked(home, *_zip(packed, root, budget), budget.nested, budget.weights)
        codec = next((codec for magic, codec in CODECS if head.startswith(magic)), None)
        inner: Any = packed if codec is None else _Counted(_decompressor(codec, packed, name), b"", None)
        start = inner.peek(HEAD)
        if is_tar(start):
            return Unpacked(home, *_tar(inner, root, budget), budget.nested, budget.weights)
        if is_archive(start):
            raise IntakeError(f"{name}: an archive inside an archive; unpack the outer one first")
        target = root / "log"
        cut = _copy(inner, target, budget)
        return Unpacked(home, (target,), True, cut)
    except _broken() as error:
        home.remove()
        if isinstance(error, IntakeError):
            raise
        raise IntakeError(f"{name}: cannot be unpacked ({_why(error)}); give the log itself") from None


class _Budget:
    """What has been unpacked so far, against the limits."""

    def __init__(self, limits: Limits, name: str) -> None:
        self.limits = limits
        self.name = name
        self.packed = 0
        self.expanded = 0
        self.entries = 0
        self.nested: str | None = None
        self.weights = False

    def spend(self, size: int) -> None:
        self.afford(size)
        self.expanded += size
        if self.expanded > _FREE_BYTES and self.expanded > self.limits.ratio * max(1, self.packed):
            raise IntakeError(f"{self.name}: unpacks to more than {self.limits.ratio} times its size (--max-ratio)")

    def afford(self, size: int) -> None:
        """Refuse what says itself that it is too large, before any of it is read."""
        if self.expanded + size > self.limits.expanded_mib * 1024 * 1024:
            raise IntakeError(f"{self.name}: unpacks to more than {self.limits.expanded_mib} MiB (--max-expanded)")

    def enter(self, name: str) -> None:
        self.entries += 1
        if name.lower().endswith(_WEIGHTS):
            self.weights = True
        if name.lower().endswith(_PACKED):
            self.nested = PurePosixPath(name).name[:200]
        if self.entries > self.limits.entries:
            raise IntakeError(f"{self.name}: holds more than {self.limits.entries} entries (--max-entries)")


class _Counted:
    """A stream that gives back what was read of it already, and counts what the archive itself takes."""

    def __init__(self, stream: Any, head: bytes, budget: _Budget | None) -> None:
        self._stream = stream
        # of what is unpacked in one piece, all would be lost where its end is damaged
        self._read = stream.read if budget is not None else getattr(stream, "read1", stream.read)
        self._head = head
        self._failed: Exception | None = None
        self._budget = budget
        self.room: int | None = None
        """Bytes that may still be read, where that is bounded."""

    def read(self, size: int = -1) -> bytes:
        if self._head:
            taken = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(taken) :]
        elif self._failed is not None:  # a reader that has failed once may say of the rest that there is none
            raise self._failed
        else:
            taken = self._read(size if size >= 0 else CHUNK) or b""
        if self._budget is not None:
            self._budget.packed += len(taken)
        if self.room is not None:
            self.room -= len(taken)
            if self.room < 0:
                raise TooMuch("headers that do not end")
        return bytes(taken)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, which stay to be read."""
        while len(self._head) < size:
            try:
                more = self._read(size - len(self._head))
            except _broken() as error:
                self._failed = error
                break
            if not more:
                break
            self._head += more
        return self._head


class _Gzip:
    """The stream of a gzip file, whose reader looks for the end of names and comments byte by byte, and for ever."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._room = MAX_HEADERS

    def read(self, size: int = -1) -> bytes:
        if size == 1:
            self._room -= 1
            if self._room < 0:
                raise TooMuch("headers that do not end")
        return bytes(self._stream.read(size))


def _decompressor(codec: str, stream: Any, name: str) -> Any:
    if codec == "gz":
        import gzip

        return gzip.GzipFile(fileobj=cast(BinaryIO, _Gzip(stream)))
    if codec == "bz2":
        import bz2

        return bz2.BZ2File(stream)
    if codec == "xz":
        from postmortem.intake.xz import XzFile

        return XzFile(stream)
    from postmortem.intake.zst import ZstFile

    return ZstFile(stream, MAX_DICTIONARY)


def _copy(source: Any, target: Path, budget: _Budget, size: int = CHUNK) -> bool:
    """Write `source` to `target`; whether it broke off before its end. What came before that is kept."""
    read = getattr(source, "read1", source.read)
    with target.open("xb") as file:
        while True:
            try:
                piece = read(size)
            except _broken() as error:
                if isinstance(error, IntakeError) or _of_this_machine(error) or not file.tell():
                    raise
                return True
            if not piece:
                return False
            budget.spend(len(piece))
            file.write(piece)


def _zip(packed: Any, root: Path, budget: _Budget) -> tuple[tuple[Path, ...], bool, bool]:
    with tempfile.TemporaryFile() as whole:
        while piece := packed.read(CHUNK):
            budget.spend(len(piece))
            whole.write(piece)
        budget.expanded = 0
        files: list[Path] = []
        failed: Exception | None = None
        cut = False
        guarded = ZipFile(whole, max(LEAST_DIRECTORY, DIRECTORY_ENTRY * budget.limits.entries))
        with zipfile.ZipFile(cast(BinaryIO, guarded)) as archive:
            guarded.opened = True
            for info in archive.infolist():
                budget.enter(info.filename)
                mode = info.external_attr >> 16
                target = target_of(info.filename, root) if not stat.S_ISLNK(mode) and not info.is_dir() else None
                if target is None:
                    continue
                if info.flag_bits & 1:
                    raise IntakeError(f"{budget.name}: needs a password; unpack it and give the log")
                if info.compress_type == zipfile.ZIP_LZMA and _dictionary(whole, info) > MAX_DICTIONARY:
                    raise TooMuch(TOO_WIDE)
                try:
                    with archive.open(info) as source:
                        cut = _copy(source, target, budget) or cut
                except _broken() as error:
                    if isinstance(error, IntakeError) or _of_this_machine(error):
                        raise
                    failed = error  # the others stand on their own
                    target.unlink(missing_ok=True)
                else:
                    files.append(target)
    if failed is not None and not files:
        raise failed
    return tuple(files), False, cut or failed is not None


def _dictionary(file: IO[bytes], entry: zipfile.ZipInfo) -> int:
    """Bytes of the dictionary that an LZMA entry asks for: they stand before its data, behind its own header."""
    file.seek(entry.header_offset)
    name, extra = struct.unpack("<HH", file.read(30)[26:])
    file.seek(name + extra, os.SEEK_CUR)
    return int.from_bytes(file.read(9)[5:], "little")


def _tar(stream: _Counted, root: Path, budget: _Budget) -> tuple[tuple[Path, ...], bool, bool]:
    files: list[Path] = []
    cut = False
    try:
        stream.room = MAX_HEADERS
        file = TarStream(stream, budget.spend)  # what is passed over is decompressed too
        with tarfile.TarFile(fileobj=cast(BinaryIO, file)) as archive:
            for member in _members(archive, file, budget, stream):
                target = target_of(member.name, root) if member.isreg() else None
                source = archive.extractfile(member) if target is not None else None
                if target is not None and source is not None:
                    files.append(target)
                    cut = _copy(source, target, budget, TAR_PIECE) or cut
    except IntakeError:
        raise
    except _broken() as error:
        if not files or _of_this_machine(error):
            raise
        cut = True
    return tuple(files), False, cut


def _members(archive: tarfile.TarFile, file: TarStream, budget: _Budget, stream: _Counted) -> Iterator[tarfile.TarInfo]:
    """The entries whose claims are within what may be unpacked."""
    for member in archive:
        budget.enter(member.name)
        takes = max(0, archive.offset - file.tell())  # up to the next one's headers
        budget.afford(max(takes, member.size if member.isreg() else 0))
        stream.room = takes + MAX_HEADERS
        pieces = cast("list[tuple[int, int]] | None", member.sparse)
        if pieces is not None and not _in_order(pieces, member.size):
            raise tarfile.ReadError("pieces out of order")
        # a streamed archive remembers every member it has passed
        archive.members = []  # type: ignore[attr-defined]
        yield member


def _in_order(pieces: Sequence[tuple[int, int]], size: int) -> bool:
    """Whether the pieces of a file with holes follow each other: the library looks for each from the last one on, and
    round again."""
    at = 0
    for start, length in pieces:
        if start < at or length < 0:
            return False
        at = start + length
    return at <= size


def _broken() -> tuple[type[Exception], ...]:
    """All that the readers of archives raise on a damaged one; a codec's own error where that codec was loaded."""
    loaded = ((sys.modules.get(module), name) for module, name in _CODEC_ERRORS)
    return (*_BROKEN, *(getattr(module, name) for module, name in loaded if module is not None))


def _of_this_machine(error: BaseException) -> bool:
    """Whether it is this machine that has no room or no right, and the archive may be sound."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in (*_NO_ROOM, *_NO_WAY))


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        said = (error.strerror or "it cannot be read").lower()
        return f"where temporary files go: {said}" if error.errno in _NO_ROOM else said
    if isinstance(error, MemoryError):
        return "there is too little memory"
    if isinstance(error, TooMuch):
        return f"it has {error}"
    if "memory" in str(error).lower():  # by its words, a codec's own limit: none has an error of its own for it
        return f"it has {TOO_WIDE}"
    return "it breaks off" if isinstance(error, EOFError) else "it is damaged"
