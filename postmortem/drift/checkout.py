"""Read the sources of an AI Toolkit checkout as text: bounded, no link followed, nothing imported or run."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

MAX_FILES = 20_000
MAX_FILE_BYTES = 2_000_000
MAX_TOTAL_BYTES = 200_000_000
MAX_DEPTH = 20

_MARKS = ("run.py", "toolkit/config_modules.py")
"""Files that every checkout of AI Toolkit has."""
_SKIPPED = frozenset({"node_modules", "site-packages", "__pycache__", "venv", "env", "dist", "build", "testing"})
_SUFFIXES = (".py", ".ts", ".tsx", ".js")


class CheckoutError(ValueError):
    """The folder cannot be read as an AI Toolkit checkout; the message says why."""


class SourceFile(msgspec.Struct, frozen=True):
    """One source file: its path inside the checkout, with `/`, and its text."""

    path: str
    text: str


class Checkout(msgspec.Struct, frozen=True):
    """The sources of a checkout in path order, and the files that were passed over, each with the reason."""

    files: tuple[SourceFile, ...]
    passed_over: tuple[str, ...]


def read(folder: Path) -> Checkout:
    """The sources below `folder`. Raises CheckoutError when that is no AI Toolkit checkout, OSError when unreadable."""
    if not folder.is_dir():
        raise CheckoutError("not a folder; give a checkout of AI Toolkit")
    if not all((folder / mark).is_file() for mark in _MARKS):
        raise CheckoutError(f"no AI Toolkit checkout: it has no {' or no '.join(_MARKS)}")
    files: list[SourceFile] = []
    passed_over: list[str] = []
    total = 0
    for path, name in _walk(folder):
        if len(files) >= MAX_FILES or total >= MAX_TOTAL_BYTES:
            passed_over.append(f"{name}: and all after it: too many files, or too large together")
            break
        content = _content(path)
        if isinstance(content, str):
            passed_over.append(f"{name}: {content}")
            continue
        total += len(content)
        files.append(SourceFile(name, content.decode("utf-8-sig", "replace")))
    return Checkout(tuple(files), tuple(passed_over))


def _walk(folder: Path) -> list[tuple[Path, str]]:
    """Source files and their names inside the checkout, sorted; links are left alone, wherever they lead."""
    found: list[tuple[Path, str]] = []
    for at, folders, names in os.walk(folder, followlinks=False):
        here = Path(at)
        inside = here.relative_to(folder)
        folders[:] = (
            [name for name in folders if name not in _SKIPPED and not name.startswith(".")]
            if len(inside.parts) < MAX_DEPTH
            else []
        )
        found += [(here / name, (inside / name).as_posix()) for name in names if name.endswith(_SUFFIXES)]
        if len(found) > 2 * MAX_FILES:
            break
    return sorted(found, key=lambda entry: entry[1])


def _content(path: Path) -> bytes | str:
    """The bytes of one file, or why it is passed over."""
    try:
        if path.is_symlink() or not path.is_file():
            return "a link, or no plain file"
        if path.stat().st_size > MAX_FILE_BYTES:
            return f"larger than {MAX_FILE_BYTES} bytes"
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()
