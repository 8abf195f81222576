"""A compressed log, or a run packed into one file, laid out in a temporary folder as it was before.

Strangers make these files: what is taken out is chosen by name, written under names of our own making, and counted
against limits while it is unpacked. Links, devices and archives inside archives are never followed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import struct
import sys
import tarfile
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, BinaryIO, cast

import msgspec

from postmortem.bounded import TooMuch, ZipFile
from postmortem.files import sweep_folders
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
_WANTED = re.compile(
    r"(?i).+\.(?:log|txt|out|err|ya?ml|json)(?:\.\d+)?|(?:loss_log|aitk_db)\.db(?:-wal|-shm)?|[\w-]*log"
)
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz", ".7z", ".rar")
_WEIGHTS = (".safetensors", "optimizer.pt")
"""What a run leaves and an analysis does not unpack."""
MAX_DICTIONARY = 128 << 20
"""Bytes of what was unpacked that a codec may go back to, and so keeps in memory; as in xz.py."""
TOO_WIDE = f"a dictionary of more than {MAX_DICTIONARY >> 20} MiB"
_STRANGE = re.compile(r"[^\w. +()\[\]-]")
_DEVICE = re.compile(r"(?i)(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])\s*(?:\..*)?")
"""Names that Windows takes for a device, whatever the folder and whatever comes behind a dot."""
_BROKEN = (
    *(OSError, EOFError, MemoryError, ValueError, NotImplementedError, RuntimeError, struct.error),
    *(zlib.error, tarfile.TarError, zipfile.BadZipFile),
)
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
        self.expanded += size
        if self.expanded > self.limits.expanded_mib * 1024 * 1024:
            raise IntakeError(f"{self.name}: unpacks to more than {self.limits.expanded_mib} MiB (--max-expanded)")
        if self.expanded > _FREE_BYTES and self.expanded > self.limits.ratio * max(1, self.packed):
            raise IntakeError(f"{self.name}: unpacks to more than {self.limits.ratio} times its size (--max-ratio)")

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
        self._budget = budget
        self.room: int | None = None
        """Bytes that may still be read, where that is bounded."""

    def read(self, size: int = -1) -> bytes:
        if self._head:
            taken = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(taken) :]
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
            except _broken():
                break
            if not more:
                break
            self._head += more
        return self._head


def _decompressor(codec: str, stream: Any, name: str) -> Any:
    if codec == "gz":
        import gzip

        return gzip.GzipFile(fileobj=stream)
    if codec == "bz2":
        import bz2

        return bz2.BZ2File(stream)
    if codec == "xz":
        from postmortem.intake.xz import XzFile

        return XzFile(stream)
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=MAX_DICTIONARY).stream_reader(stream, read_across_frames=True)


def _copy(source: Any, target: Path, budget: _Budget, size: int = CHUNK) -> bool:
    """Write `source` to `target`; whether it broke off before its end. What came before that is kept."""
    read = getattr(source, "read1", source.read)
    with target.open("xb") as file:
        while True:
            try:
                piece = read(size)
            except IntakeError:
                raise
            except _broken() as error:
                if not file.tell():
                    raise EOFError(str(error)) from None
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
        guarded = ZipFile(whole, max(LEAST_DIRECTORY, DIRECTORY_ENTRY * budget.limits.entries))
        with zipfile.ZipFile(cast(BinaryIO, guarded)) as archive:
            guarded.opened = True
            for info in archive.infolist():
                budget.enter(info.filename)
                mode = info.external_attr >> 16
                target = _target(info.filename, root) if not stat.S_ISLNK(mode) and not info.is_dir() else None
                if target is None:
                    continue
                if info.flag_bits & 1:
                    raise IntakeError(f"{budget.name}: needs a password; unpack it and give the log")
                if info.compress_type == zipfile.ZIP_LZMA and _dictionary(whole, info) > MAX_DICTIONARY:
                    raise TooMuch(TOO_WIDE)
                with archive.open(info) as source:
                    _copy(source, target, budget)
                files.append(target)
    return tuple(files), False, False


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
        with tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|") as archive:
            for member in _members(archive, budget, stream):
                target = _target(member.name, root) if member.isreg() else None
                source = archive.extractfile(member) if target is not None else None
                if target is None or source is None:
                    # what is passed over is decompressed too
                    budget.spend(max(0, member.size))
                    continue
                files.append(target)
                cut = _copy(source, target, budget, TAR_PIECE) or cut
    except IntakeError:
        raise
    except _broken():
        if not files:
            raise
        cut = True
    return tuple(files), False, cut


def _members(archive: tarfile.TarFile, budget: _Budget, stream: _Counted) -> Iterator[tarfile.TarInfo]:
    for member in archive:
        budget.enter(member.name)
        # its content, which is read or passed over before the next one's headers
        stream.room = max(0, member.size) + MAX_HEADERS
        # a streamed archive remembers every member it has passed
        archive.members = []  # type: ignore[attr-defined]
        yield member


def _target(name: str, root: Path) -> Path | None:
    """Where an entry is written, if it is one that an analysis can use: its own folders, in harmless letters."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", ".", "..")]
    if not parts or len(parts) > 12 or not _WANTED.fullmatch(parts[-1]) or parts[0] == "__MACOSX":
        return None
    clean = [_no_device(_STRANGE.sub("_", part)[:100].strip(" .") or "_") for part in parts[:-1]]
    last = _STRANGE.sub("_", parts[-1])
    target = root.joinpath(*clean, _no_device(last if len(last) < 120 else last[-100:]))
    if target.exists():
        return None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        return None
    return target


def _no_device(name: str) -> str:
    return f"_{name}" if _DEVICE.fullmatch(name) else name


def _broken() -> tuple[type[Exception], ...]:
    """All that the readers of archives raise on a damaged one; a codec's own error where that codec was loaded."""
    loaded = ((sys.modules.get(module), name) for module, name in _CODEC_ERRORS)
    return (*_BROKEN, *(getattr(module, name) for module, name in loaded if module is not None))


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS):
        return f"where temporary files go: {(error.strerror or 'cannot write').lower()}"
    if isinstance(error, TooMuch):
        return f"it has {error}"
    if "memory" in str(error).lower():  # by its words, a codec's own limit: none has an error of its own for it
        return f"it has {TOO_WIDE}"
    return "it breaks off" if isinstance(error, EOFError) else "it is damaged"
