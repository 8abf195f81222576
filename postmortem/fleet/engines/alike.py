"""Whether two machines would give the same rows: the tool, its code and its knowledge, each as a short text."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import msgspec

import postmortem
from postmortem.knowledge import load as knowledge


class Build(msgspec.Struct, frozen=True):
    """What a machine runs; equal texts give equal rows."""

    version: str
    code: str
    patterns: str

    def __str__(self) -> str:
        return f"{self.version} (code {self.code}, patterns {self.patterns})"


@lru_cache(maxsize=1)
def here() -> Build:
    """What this machine runs. Raises OSError."""
    package = Path(postmortem.__file__).parent
    patterns = knowledge.home()
    return Build(postmortem.__version__, _digest(package, (".py",)), _digest(patterns, (".yaml", ".json")))


def _digest(folder: Path, suffixes: tuple[str, ...]) -> str:
    digest = blake2b(digest_size=6)
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.suffix in suffixes}
    for name in sorted(files):
        if name.startswith("_patterns/"):
            continue
        content = files[name].read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
