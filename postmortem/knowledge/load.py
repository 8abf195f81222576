"""Read `patterns/` into a validated `Knowledge`, through what is kept of it between runs (see kept.py)."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from postmortem import __version__
from postmortem.bounded import TooMuch
from postmortem.knowledge import kept
from postmortem.knowledge.history import History, history_in
from postmortem.knowledge.schema import Knowledge

try:
    from _blake2 import blake2b  # hashlib's own; through it, OpenSSL would be loaded at every start
except ImportError:
    from hashlib import blake2b

MAX_BYTES = 4_000_000
MAX_FILES = 500
MAX_TOTAL = 16_000_000
"""Files of one folder of patterns, and their bytes; the built-in ones take a tenth of either."""


class KnowledgeError(ValueError):
    """The knowledge base cannot be used; the message names file, line and entry."""


def home() -> Path:
    """The folder of the knowledge base: beside the package in a checkout, inside it when installed."""
    installed = Path(__file__).resolve().parent.parent / "_patterns"
    return installed if installed.is_dir() else Path(__file__).resolve().parents[2] / "patterns"


def load(pack: Path | None = None, *, cache: bool = True) -> Knowledge:
    """The built-in knowledge, with the entries of the folder `pack` added (an entry of the same id replaces).

    Raises KnowledgeError when a file is not valid.
    """
    folders = [home(), *([pack] if pack else [])]
    began = time.time()
    files = _listed(home())
    own = len(files)
    if pack is not None:
        files += _listed(pack)
    place = kept.home() if cache else None
    stamp = kept.Stamp(place, folders, files, began)
    known = stamp.key()
    if known is not None and (found := kept.read(place, known)) is not None:
        return found
    contents = [Path(file.path).read_bytes() for file in files]
    key = _key(files, contents)
    found = kept.read(place, key)
    if found is None:
        found = _compile(files, contents, key, own)
        kept.write(place, key, found)
    stamp.write(key)
    return found


def _listed(folder: Path) -> list[kept.File]:
    if not folder.is_dir():
        raise KnowledgeError(f"{folder}: not a folder of patterns; give a folder that holds .yaml files")
    try:
        files = kept.listed(folder, ".yaml")
    except TooMuch as error:
        raise KnowledgeError(f"{folder}: {error}; give a folder of patterns") from None
    if not files:
        raise KnowledgeError(f"{folder}: no .yaml file in it; give a folder of patterns")
    for file in files:
        if file.bytes > MAX_BYTES:
            raise KnowledgeError(f"{file.path}: larger than {MAX_BYTES} bytes; that is no file of patterns")
    if len(files) > MAX_FILES or sum(file.bytes for file in files) > MAX_TOTAL:
        raise KnowledgeError(f"{folder}: more than {MAX_FILES} files or {MAX_TOTAL} bytes; give a folder of patterns")
    return files


def _key(files: Sequence[kept.File], contents: Sequence[bytes]) -> str:
    """A digest of the tool's version and all that the files say: the version of the knowledge."""
    digest = blake2b(__version__.encode(), digest_size=12)
    for file, content in zip(files, contents):
        digest.update(os.fsencode(file.name) + b"\0" + len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


@lru_cache(maxsize=1)
def history() -> History:
    """The built-in tables of AI Toolkit's history, each read when first needed, once a process."""
    return history_in(home())


def _compile(files: Sequence[kept.File], contents: Sequence[bytes], key: str, own: int = 0) -> Knowledge:
    """The knowledge in `files`, of which the first `own` are the built-in ones."""
    from postmortem.knowledge import entries

    try:
        return entries.knowledge_in(files, contents, key, own)
    except entries.Invalid as problem:
        raise KnowledgeError(str(problem)) from None
