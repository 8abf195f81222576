"""A log behind a URL or in an object store: copied here through fsspec, within limits, then opened like any other.

Loaded only when an argument is `scheme://…`; fsspec is the optional extra `remote`. What is fetched goes into a
temporary folder under names of our own; of a remote run folder only what an analysis reads is fetched.
"""

from __future__ import annotations

import errno
import io
import re
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec

from postmortem.intake.errors import IntakeError, Unreachable
from postmortem.intake.folders import CONFIG_NAMES, MAX_OLD_LOGS
from postmortem.intake.packed import Limits
from postmortem.intake.sources import LOG_SUFFIXES, Intake, open_path, printable_name
from postmortem.text import printable

STALL_S = 60.0
"""Seconds without a single byte after which a host counts as unreachable."""
CONNECT_S = 15.0
CHUNK = 1 << 20
MAX_LOOSE = 8
AT_ONCE = 16 << 20
"""Bytes that are asked for in one request, and held in memory for a moment."""
_PAGE = re.compile(rb"\s*(?:<\?xml[^>]{0,200}>\s*)?(?:<!--.{0,400}?-->\s*)?<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_ENCODINGS = ("identity", "gzip", "x-gzip", "zstd")
_OLD_LOG = re.compile(r"\d{1,6}_log\.txt")
_BESIDE = ("log.txt", *CONFIG_NAMES, "loss_log.db", "loss_log.db-wal", "loss_log.db-shm")


def open_url(url: str, limits: Limits | None = None, files: Sequence[tuple[str, int]] = ()) -> Intake:
    """The log, archive or run folder at `url`; where a listing is at hand, these `files` of it with their sizes
    (an empty name is the log itself).

    Raises IntakeError, in a line that names the URL without its secrets; Unreachable where another try may help.
    """
    try:
        shown = without_secrets(url)
    except ValueError:
        raise IntakeError("not a URL that can be read; check its host and brackets") from None
    scheme, rest = url.split(":", 1)
    url = f"{scheme.lower()}:{rest}"
    if (path := local_path(url)) is not None:
        return open_path(path, limits)
    if "::" in url:
        raise IntakeError(f"{shown}: a chain of file systems; give one URL")
    from postmortem.intake.archives import Home

    home = Home()
    copy = _Copy(url, home.path, (limits or Limits()).expanded_mib, files)
    try:
        target = _within_time(copy, shown)
        opened = open_path(target, limits)
    except IntakeError as error:
        # the reader knows the URL, not where we copied it to
        told = str(error)
        for ours in (str(home.path / "log"), str(home.path)):
            told = told.removeprefix(f"{ours}: ").replace(ours + "/", "")
        raise type(error)(told if told.startswith(shown) else f"{shown}: {told}") from None
    return msgspec.structs.replace(opened, source=shown, keep=(home, opened.keep))


def without_secrets(url: str) -> str:
    """`url` as it may be shown: no password, no signature in its query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return printable_name(f"{parts.scheme}://{host}{parts.path}")


def local_path(url: str) -> Path | None:
    """The path of a URL that means a file of this machine; None for any other. Raises IntakeError and ValueError."""
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("file", "local"):
        return None
    shown = without_secrets(url)
    if parts.netloc not in ("", "localhost"):
        raise IntakeError(f"{shown}: names another machine; give a path")
    return Path(url2pathname(parts.path))


def _within_time(copy: _Copy, shown: str) -> Path:
    """What `copy` made, or the reason why not; a transfer that stands still is left behind."""
    worker = threading.Thread(target=copy.run, daemon=True)
    worker.start()
    seen, since = -1, time.monotonic()
    while worker.is_alive():
        worker.join(0.05 if time.monotonic() - since < 1 else 0.5)
        if copy.moved != seen:
            seen, since = copy.moved, time.monotonic()
        elif worker.is_alive() and time.monotonic() - since > STALL_S:
            copy.stop = True
            raise Unreachable(f"{shown}: no answer within {STALL_S:.0f} s; download it and give the file")
    if copy.error is not None:
        kind = Unreachable if transient(copy.error) else IntakeError
        raise kind(f"{shown}: {reason(copy.error)}") from None
    assert copy.target is not None
    return copy.target


class _Copy:
    """One transfer, in a thread of its own: where it stands, and what came of it."""

    def __init__(self, url: str, home: Path, mib: int, files: Sequence[tuple[str, int]] = ()) -> None:
        self._url = url
        self._named = files
        self._home = home
        self._mib = mib
        self.moved = 0
        self.stop = False
        self.target: Path | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.target = self._fetch()
        except BaseException as error:  # whatever a file system of somebody's raises is told to the user in one line
            self.error = error

    def _fetch(self) -> Path:
        web = is_web(self._url)
        files, path = file_system(self._url)
        if self._named:
            for name, size in self._named:
                self._listed(files, f"{path.rstrip('/')}/{name}" if name else path, self._home / (name or "log"), size)
            return self._home if self._named[0][0] else self._home / "log"
        if not web and files.isdir(path):
            return self._folder(files, path)
        # as a stream: a server need not know about ranges
        options: dict[str, Any] = {"block_size": 0} if web else {}
        target = self._home / "log"
        with files.open(path, "rb", **options) as source:
            if web:
                _as_it_is(source)
            self._write(source.read, target)
        with target.open("rb") as file:
            if _PAGE.match(_first_of(file.read(1024))):
                raise IntakeError("a web page, not a log; give the address of the raw file")
        return target

    def _folder(self, files: Any, path: str) -> Path:
        """A run folder: the logs, configs and the database, laid out as they were."""
        found = {PurePosixPath(name).name: name for name in files.ls(path, detail=False)}
        wanted = {name: found[name] for name in _BESIDE if name in found}
        if "log.txt" not in wanted:
            loose = [name for name in sorted(found) if name.endswith(LOG_SUFFIXES)]
            wanted.update({name: found[name] for name in loose[:MAX_LOOSE]})
        if "logs" in found and files.isdir(found["logs"]):
            names = {PurePosixPath(name).name: name for name in files.ls(found["logs"], detail=False)}
            old = sorted((name for name in names if _OLD_LOG.fullmatch(name)), key=lambda name: int(name.split("_")[0]))
            wanted.update({f"logs/{name}": names[name] for name in old[-MAX_OLD_LOGS:]})
        if not wanted:
            raise IntakeError("a folder without a log; give the run's folder or its log")
        for name, remote in wanted.items():
            target = self._home / name
            target.parent.mkdir(exist_ok=True)
            with files.open(remote, "rb") as source:
                self._write(source.read, target)
        return self._home

    def _listed(self, files: Any, remote: str, target: Path, size: int) -> None:
        """A file of which the size is known: a small one in one request."""
        target.parent.mkdir(exist_ok=True)
        if size <= AT_ONCE:
            self._write(io.BytesIO(files.cat_file(remote)).read, target)
            return
        with files.open(remote, "rb") as source:
            self._write(source.read, target)

    def _write(self, read: Callable[[int], bytes], target: Path) -> None:
        with target.open("xb") as file:
            while piece := read(CHUNK):
                self.moved += len(piece)
                if self.moved > self._mib * 1024 * 1024:
                    raise IntakeError(f"larger than {self._mib} MiB (--max-expanded)")
                if self.stop:
                    raise TimeoutError
                file.write(piece)


def _as_it_is(source: Any) -> None:
    """Refuse what a server packed in a way that no archive is packed in. Raises IntakeError."""
    response = getattr(source, "r", None)
    encoding = str(response.headers.get("Content-Encoding") or "identity") if response is not None else "identity"
    if encoding.lower() not in _ENCODINGS:
        raise IntakeError(f"sent in an encoding that was not asked for ({printable(encoding[:20])}); download it")


def _first_of(head: bytes) -> bytes:
    """The beginning of what `head` begins, unpacked where a server packed it."""
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(31).decompress(head, 1024)
    except zlib.error:
        return head


def is_web(url: str) -> bool:
    """Whether `url` is a web server's: one that answers for files, not for folders."""
    return url.lower().startswith(("http://", "https://"))


def file_system(url: str, **options: Any) -> tuple[Any, str]:
    """fsspec's file system for `url`, and the path in it. Raises IntakeError, ImportError and what that raises."""
    try:
        import fsspec
        from fsspec.core import url_to_fs
    except ImportError:
        raise IntakeError("URLs need an extra: pip install 'aitk-postmortem[remote]'") from None
    if "::" in url:
        raise IntakeError("a chain of file systems; give one URL")
    if urlsplit(url).scheme.lower() not in fsspec.available_protocols():
        raise IntakeError("no such kind of URL; https, s3, gs, hf and others that fsspec knows can be read")
    return url_to_fs(url, **options, **(_web_options() if is_web(url) else {}))  # type: ignore[no-any-return]


def _web_options() -> dict[str, Any]:
    try:
        import aiohttp
    except ImportError:
        raise IntakeError("URLs need an extra: pip install 'aitk-postmortem[remote]'") from None
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=STALL_S)
    # what a server packs all the same stays packed, so that the limits of an archive hold for it
    as_it_is = {"auto_decompress": False, "headers": {"Accept-Encoding": "identity"}}
    return {"client_kwargs": {"timeout": timeout, "trust_env": True, **as_it_is}}


def transient(error: BaseException) -> bool:
    """Whether what failed may go well a little later: no answer, a broken connection, a server's own trouble."""
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        error = error.__cause__
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return status in (408, 425, 429) or status >= 500
    if isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)):
        return False
    return isinstance(error, (OSError, TimeoutError)) and getattr(error, "errno", None) not in (errno.ENOSPC,)


def reason(error: BaseException) -> str:
    """What went wrong, in words of ours: messages of other packages may hold keys and addresses."""
    if isinstance(error, IntakeError):
        return str(error)
    if isinstance(error, ImportError):
        return f"this kind of URL needs another package ({printable(str(error).splitlines()[0])[:300]})"
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:
        # fsspec's way of telling any failure of a web server
        error = error.__cause__
    if isinstance(error, FileNotFoundError) or getattr(error, "status", None) == 404:
        return "not found there"
    if isinstance(error, PermissionError):
        return "access denied; log in with the tool of that store, or download it and give the file"
    status = getattr(error, "status", None)
    if type(error).__name__ == "TooManyRedirects":  # of aiohttp, with a status of 0
        return "it leads from one address to the next without end; give the address of the raw file"
    if isinstance(status, int) and status:
        return f"the server answers {status}; download it and give the file"
    if isinstance(error, (OSError, TimeoutError)):
        return f"cannot be reached ({type(error).__name__}); download it and give the file"
    return f"cannot be read ({type(error).__name__}); download it and give the file"
