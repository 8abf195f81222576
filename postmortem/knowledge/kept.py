"""The knowledge base as it is kept between runs, in the user's cache folder: compiled, and how its files stood.

Two kinds of files. What is compiled lies under a key of the content of every file, the tool's version and the engine;
it is MessagePack, as safe to read as the files themselves, and saves the 0.2 seconds that YAML costs. A stamp lies
under the place of the folders and says which key their files had when they stood as they stand now, so that a start
need not read them. Nothing of it is needed: what cannot be read or written is no error, and what is damaged is made
anew.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from postmortem import __version__
from postmortem.bounded import TooMuch
from postmortem.knowledge import expressions
from postmortem.knowledge.schema import Knowledge

try:
    from _blake2 import blake2b  # hashlib's own; through it, OpenSSL would be loaded at every start
except ImportError:
    from hashlib import blake2b

LAYOUT = 2
CHECK_BYTES = 4
"""A sum in front of what is compiled: a disk that flips a bit must not change a word. A digest takes six times that."""
MAX_BYTES = 64 << 20
"""Of a kept file; sixty times what there is."""
MAX_ENTRIES = 5_000
"""Files and folders that are looked at for those of a pack."""
KEEP_S = 7 * 86400
HALF_S = 3600
RACY_S = 2.0
"""A file that changed so shortly before it was read may change again within the resolution of its time."""


class File(msgspec.Struct, frozen=True):
    """One file of a folder of patterns: its path, the same below the folder with ``/``, and how it stands."""

    path: str
    name: str
    bytes: int
    standing: str
    """What changes when its content does; the time of the change to the inode cannot be set back."""
    changed_s: float


class Languages(Mapping[str, Mapping[str, str]]):
    """The texts by language, each decoded when first asked for: a report is in one."""

    def __init__(self, encoded: Mapping[str, bytes]) -> None:
        self._encoded = encoded
        self._texts: dict[str, dict[str, str]] = {}

    def __getitem__(self, language: str) -> dict[str, str]:
        if language not in self._texts:
            self._texts[language] = msgspec.msgpack.decode(self._encoded[language], type=dict[str, str])
        return self._texts[language]

    def __contains__(self, language: object) -> bool:
        return language in self._encoded

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded)

    def __len__(self) -> int:
        return len(self._encoded)


class _Compiled(msgspec.Struct, frozen=True, array_like=True):
    knowledge: Knowledge
    texts: dict[str, bytes]
    codes: dict[str, expressions.Code]


def home() -> Path | None:
    """The folder; None where the machine has no place for one, or nothing is to be kept."""
    if os.environ.get("POSTMORTEM_NO_CACHE"):
        return None
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return folder / "postmortem"


def listed(folder: Path, suffix: str) -> list[File]:
    """The files below `folder` whose names end in `suffix`, in the order of their paths; links to folders are not
    followed. Raises TooMuch."""
    found: list[File] = []
    looked = 0
    below = [""]
    while below:
        inner = below.pop()
        try:
            with os.scandir(os.path.join(folder, inner)) as entries:  # noqa: PTH118  (a tenth of what Path takes)
                for entry in entries:
                    looked += 1
                    if looked > MAX_ENTRIES:
                        raise TooMuch(f"more than {MAX_ENTRIES} files and folders")
                    name = f"{inner}/{entry.name}" if inner else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        below.append(name)
                    elif os.path.normcase(name).endswith(suffix) and entry.is_file():
                        found.append(_file(entry.path, name))
        except PermissionError:
            continue
    return sorted(found, key=lambda file: file.name.split("/"))


def _file(path: str, name: str) -> File:
    at = os.stat(path)  # noqa: PTH116
    standing = f"{at.st_dev}:{at.st_ino}:{at.st_size}:{at.st_mtime_ns}:{at.st_ctime_ns}:{stat.S_IFMT(at.st_mode)}"
    return File(path, name, at.st_size, standing, at.st_ctime)


class Stamp:
    """What is known of `files` of `folders` by how they stand. `began` is when they were listed, in seconds."""

    def __init__(self, home: Path | None, folders: Iterable[Path], files: Iterable[File], began: float) -> None:
        self._target: Path | None = None
        # elsewhere a file can be changed without a trace: st_ctime is when it was made, and the rest can be set back
        if home is None or os.name != "posix":
            return
        place, standing = blake2b(digest_size=12), blake2b(digest_size=24)
        for text in (__version__, *(os.path.abspath(folder) for folder in folders)):  # noqa: PTH100
            place.update(os.fsencode(text) + b"\0")
        newest = 0.0
        for file in files:
            standing.update(os.fsencode(f"{file.name}\0{file.standing}\0"))
            newest = max(newest, file.changed_s)
        self._target = home / f"knowledge-at-{place.hexdigest()}"
        self._standing = standing.hexdigest()
        self._settled = began - newest > RACY_S

    def key(self) -> str | None:
        """The key of the files' content, if they stand as they stood when it was written."""
        try:
            known = _read(self._target).decode("ascii").split() if self._target is not None else []
        except (OSError, ValueError):
            return None
        return known[1] if len(known) == 2 and known[0] == self._standing else None

    def write(self, key: str) -> None:
        """The content of the files has this key."""
        if self._target is not None and self._settled:
            _write(self._target, f"{self._standing} {key}".encode())


def read(home: Path | None, key: str) -> Knowledge | None:
    """What is kept under `key`; its expressions' codes are used from now on."""
    if home is None:
        return None
    try:
        stored = memoryview(_read(_compiled(home, key)))
        content = stored[CHECK_BYTES:]
        if stored[:CHECK_BYTES] != _check(key, content):
            return None
        kept = msgspec.msgpack.decode(content, type=_Compiled)
    except (OSError, msgspec.MsgspecError):
        return None
    expressions.adopt(kept.codes)
    return msgspec.structs.replace(kept.knowledge, texts=Languages(kept.texts))


def write(home: Path | None, key: str, knowledge: Knowledge) -> None:
    """Keep `knowledge` under `key`, with the codes of its expressions, which are used from now on."""
    if home is None:
        return
    codes = expressions.codes_of(knowledge.patterns)
    expressions.adopt(codes)
    texts = {language: msgspec.msgpack.encode(found) for language, found in knowledge.texts.items()}
    kept = _Compiled(msgspec.structs.replace(knowledge, texts={}), texts, codes)
    content = msgspec.msgpack.encode(kept)
    _write(_compiled(home, key), _check(key, content) + content)
    _forget_old(home)


def _compiled(home: Path, key: str) -> Path:
    return home / f"knowledge-{LAYOUT}-{key}-{expressions.engine()}"


def _check(key: str, content: bytes | memoryview) -> bytes:
    return zlib.crc32(content, zlib.crc32(key.encode())).to_bytes(CHECK_BYTES, "big")


def _read(path: Path) -> bytes:
    """The content of a file, and of nothing else: a pipe would be waited for, a device never ends. Raises OSError."""
    at = path.stat()
    if not stat.S_ISREG(at.st_mode) or at.st_size > MAX_BYTES:
        raise OSError(f"{path}: nothing that was kept")
    with path.open("rb") as file:
        return file.read(at.st_size)


def _write(target: Path, content: bytes) -> None:
    """The file whole or not at all."""
    import tempfile

    name = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".knowledge-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(target)
        name = ""
    except OSError:
        pass  # no room, or Windows, where another start reads the old one
    finally:  # whatever ended it: what was written must not pile up
        if name:
            with contextlib.suppress(OSError):
                Path(name).unlink()


def _forget_old(home: Path) -> None:
    try:
        for old in home.glob("knowledge-*"):
            if old.stat().st_mtime < time.time() - KEEP_S:
                old.unlink(missing_ok=True)
        for half in home.glob(".knowledge-*"):  # of a start that was killed while it wrote
            if half.lstat().st_mtime < time.time() - HALF_S:
                half.unlink(missing_ok=True)
    except OSError:
        pass
