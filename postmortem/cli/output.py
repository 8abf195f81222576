"""Where a command's result goes: stdout, or a file that is written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal

from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

Kind = Literal["text", "json", "html"]
"""What a text is, where stdout has not all its characters: `text` has stand-ins, `json` escapes, `html` is UTF-8."""


def write(
    text: str, target: Path | None, encoding: str = "utf-8", kind: Kind = "text", *, private: bool = False
) -> None:
    """Write `text` to `target`, or to stdout. Raises Failure when the file cannot be written.

    `encoding` is the file's; line breaks go out as they stand in `text`. `private`: for its owner's eyes only.
    """
    if target is None:
        _stdout(text, kind)
    else:
        write_bytes(text.encode(encoding), target, private=private)


def write_bytes(content: bytes, target: Path, *, private: bool = False) -> None:
    """Write `content` to `target`, whole or not at all; `private`: for its owner's eyes only.

    Raises Failure when the file cannot be written.
    """
    from postmortem import files

    try:
        # a device or a pipe is written to, never replaced; of a link, the target is what the user means
        if _is_device(target):
            _pour(content, target)
            return
        place = files.destination(target)
        _refuse(place)
        files.write_whole(content, place, private=private)
        files.sweep(place.parent)
    except (OSError, RuntimeError) as error:
        raise Failure(f"{printable(str(target))}: cannot write: {_reason(error)}") from None


def check(target: Path | None) -> None:
    """Say that `target` cannot be written before hours go into what it is to hold. Raises Failure."""
    from postmortem import files

    if target is None:
        return
    try:
        if _is_device(target):
            _refuse_odd(target, target.stat().st_mode)
        else:
            _refuse(files.destination(target))
    except (OSError, RuntimeError) as error:
        raise Failure(f"{printable(str(target))}: cannot write: {_reason(error)}") from None


def _is_device(target: Path) -> bool:
    return target.exists() and not target.is_file() and not target.is_dir()


def _pour(content: bytes, target: Path) -> None:
    """Write to a character device, or to a pipe that somebody reads: on any other we would wait for ever."""
    _refuse_odd(target, target.stat().st_mode)
    if not hasattr(os, "O_NONBLOCK"):
        with target.open("wb") as stream:
            stream.write(content)
        return
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise Failure(f"{printable(str(target))}: a pipe that nobody reads; start its reader first") from None
        raise
    with os.fdopen(descriptor, "wb") as stream:
        _refuse_odd(target, os.fstat(descriptor).st_mode)
        os.set_blocking(descriptor, True)
        stream.write(content)


def _refuse_odd(target: Path, mode: int) -> None:
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        raise Failure(f"{printable(str(target))}: neither a file nor a pipe; give a file name", USAGE)


def _refuse(target: Path) -> None:
    """Raises Failure where the file could not stand there, whatever the rights."""
    if target.is_symlink():  # resolved, and still a link: from 3.13 on pathlib does not say that they go in a circle
        raise RuntimeError("links in a circle")
    if target.is_dir():
        raise Failure(f"{printable(str(target))}: is a folder; give a file name")
    if not target.parent.is_dir():
        raise Failure(f"{printable(str(target.parent))}: no such folder; make it first")


def _reason(error: OSError | RuntimeError) -> str:
    """Why, in words; pathlib of some Pythons says RuntimeError where links go round in a circle."""
    return (getattr(error, "strerror", None) or "too many levels of symbolic links").lower()


def _all_of(data: bytes, out: Any) -> None:
    """Write all of it: with `PYTHONUNBUFFERED`, as in many containers, one write is one of the system's, which a pipe
    cuts short where the process is stopped meanwhile (Ctrl-Z and `fg`), or which is not taken where nobody may wait."""
    left = memoryview(data)
    while left:
        taken = out.write(left)
        if taken is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        left = left[taken:]


def _stdout(text: str, kind: Kind) -> None:
    if sys.stdout is None:
        raise Failure("stdout: is closed; give -o FILE")
    name = encoding()
    raw = getattr(sys.stdout, "buffer", None)
    try:
        if raw is None:
            sys.stdout.write(text)
        elif kind == "html":
            _all_of(text.encode("utf-8"), raw)
        else:
            _all_of(text.encode(name, _errors(kind, name)), raw)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Failure(f"stdout: cannot write: {(error.strerror or type(error).__name__).lower()}") from None


def prepare() -> None:
    """Let whatever is printed on a console that lacks our characters come out in those that it has."""
    for stream in (sys.stdout, sys.stderr):
        known = (getattr(stream, "encoding", None) or "utf-8").lower()
        if known.replace("-", "").replace("_", "") not in ("utf8", "utf8sig") and hasattr(stream, "reconfigure"):
            with contextlib.suppress(OSError, ValueError):
                if not _encodes(known):
                    known = "utf-8"
                    stream.reconfigure(encoding=known)
                stream.reconfigure(errors=_errors("text", known))


def _encodes(encoding: str) -> bool:
    """Whether any line at all can be printed in it: idna, which an environment may ask for, is one of host names."""
    try:
        return bool(f"postmortem: {'x' * 80}.\n".encode(encoding))
    except (UnicodeError, LookupError):
        return False


def _errors(kind: Kind, encoding: str) -> str:
    """The name of the handler for what `encoding` lacks; the error itself does not name the code page."""
    import codecs

    name = f"postmortem.{kind}.{encoding}"
    codecs.register_error(name, _json_errors if kind == "json" else partial(_text_errors, encoding=encoding))
    return name


def _text_errors(error: UnicodeError, encoding: str) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    from postmortem.report.glyphs import stand_in

    lost = error.object[error.start : error.end]
    return "".join(stand_in(character, encoding) for character in lost), error.end


def _json_errors(error: UnicodeError) -> tuple[str, int]:
    """JSON has an escape for every character, so nothing is lost there."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import json

    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def write_diff(text: str) -> None:
    """Write a diff to stdout: exact where a program reads it, on a terminal without anything that acts there."""
    if sys.stdout is not None and not sys.stdout.isatty() and hasattr(sys.stdout, "buffer"):
        try:
            _all_of(text.encode("utf-8"), sys.stdout.buffer)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(f"stdout: cannot write: {(error.strerror or type(error).__name__).lower()}") from None
        return
    _stdout("".join(printable(line.expandtabs()) + "\n" for line in text.split("\n")[:-1]), "text")


def tell(text: str) -> None:
    """One line for the person on stderr, harmless; nobody may be there to read it."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"postmortem: {printable(text)}\n")
        sys.stderr.flush()


def encoding() -> str:
    """The encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def tells_in() -> str:
    """The encoding of stderr."""
    return getattr(sys.stderr, "encoding", None) or "utf-8"


def colour_stdout() -> bool:
    """Whether to colour: `NO_COLOR` and `FORCE_COLOR` decide, else whether stdout is a terminal that can."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return False
    return sys.platform != "win32" or _console_understands()


def _console_understands() -> bool:
    """Whether a Windows console acts on escapes: the one of Windows 10 shows them, unless it was told otherwise."""
    from rich.console import detect_legacy_windows

    return not detect_legacy_windows()


def columns() -> int:
    """The width to lay out for: `COLUMNS`, else the terminal's, else 80."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and wanted.isascii() and 0 < len(wanted) < 5 and int(wanted) > 0:
        return int(wanted)
    if sys.stdout is not None and sys.stdout.isatty():
        try:
            return os.get_terminal_size(sys.stdout.fileno()).columns
        except OSError:
            pass
    return 80
