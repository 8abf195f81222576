"""The rows as a partitioned Parquet data set: a folder, here or in a store, into which many machines write at once.

Each part is written whole or not at all, under a name that says what it stands on; a part that is there already is not
made again. What a reader may rely on is said last, in one small file. pandas, DuckDB and Spark read the folder so.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from postmortem.files import write_whole
from postmortem.fleet.find import Target
from postmortem.fleet.row import Row
from postmortem.fleet.work import Done
from postmortem.intake import is_url
from postmortem.text import printable

LAYOUT = 1
MARK = "_postmortem.json"
"""Says which data set this is; rows and parts once all is written. Readers of Parquet pass over names with `_`."""
_PART = re.compile(r"part-\d{6,}-([0-9a-f]{32})\.parquet")
_KEYS = b"postmortem.keys"
_NO_KEY = bytes(16)
AT_ONCE = 16
"""Parts that are written again at once: what takes time is the store's answer."""


class DatasetError(Exception):
    """The data set cannot be written; the message is one line saying why."""


class Part(msgspec.Struct, frozen=True):
    """A part that is written: `keys` has 16 bytes a row, saying which bytes the row stands on (zeros: none)."""

    name: str
    rows: int
    failed: int
    errors: int
    keys: bytes
    copies: bool
    reused: bool = False


class Summary(msgspec.Struct, frozen=True):
    """What a data set holds."""

    layout: int
    build: str
    rows: int = 0
    failed: int = 0
    errors: int = 0
    copies: int = 0
    parts: int = 0
    reused: int = 0
    complete: bool = False


def digest(share: Sequence[Target], build: str, order: bytes) -> str:
    """What a part stands on: the runs with what tells their change, and the tool. Where a store tells nothing by which
    a change could be seen, it is another each time."""
    found = blake2b(f"{LAYOUT}\0{build}\0".encode() + order, digest_size=16)
    for target in share:
        found.update(f"{target.path}\0{target.name}\0{target.signature}\0".encode("utf-8", "surrogateescape"))
        if not target.signature:
            found.update(os.urandom(16))
    return found.hexdigest()


def part_name(number: int, digest: str) -> str:
    """The name of a part: parts in the order of their names are the runs in theirs."""
    return f"part-{number:06d}-{digest}.parquet"


class Folder:
    """The folder of a data set."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/") if is_url(url) else str(Path(url).absolute())
        self._files: Any = None
        if is_url(url):
            from postmortem.intake import remote

            self._files, self._base = remote.file_system(self.url, use_listings_cache=False)
        else:
            self._base = self.url

    def begin(self, build: str) -> None:
        """Make the folder, and mark it as not complete. Raises DatasetError, also where other things lie in it."""
        try:
            if self._files is None:
                Path(self._base).mkdir(parents=True, exist_ok=True)
            strange = [name for name in self._names() if name != MARK and not _PART.fullmatch(name)]
            if strange:
                shown = printable(strange[0])[:100]
                raise DatasetError(f"{printable(self.url)}: holds other files ({shown}); give a folder of its own")
            self._put(MARK, msgspec.json.encode(Summary(LAYOUT, build)))
        except DatasetError:
            raise
        except Exception as error:  # what a file system of somebody's raises
            raise DatasetError(f"{printable(self.url)}: cannot write ({type(error).__name__})") from None

    def has_mark(self) -> bool:
        """Whether this machine sees the folder."""
        try:
            self._get(MARK)
        except Exception:
            return False
        return True

    def known(self) -> dict[str, str]:
        """The parts that are there, by what they stand on."""
        return {found[1]: name for name in self._names() if (found := _PART.fullmatch(name))}

    def write(self, name: str, done: Iterable[Done]) -> Part:
        """Write a part. Raises OSError, ImportError, and what a store raises."""
        kept = [one for one in done if one.row.status != "not_a_log"]
        keys = b"".join(_key(one) for one in kept)
        return self._write(name, [one.row for one in kept], keys, {})

    def reuse(self, known: str, name: str) -> Part | None:
        """The part `known`, under its new name; None if it cannot be read."""
        import pyarrow.parquet as parquet  # type: ignore[import-untyped]

        try:
            content = self._get(known)
            table = parquet.read_table(io.BytesIO(content), columns=["kind", "status", "duplicate_of"])
            if known != name:
                self._put(name, content)
        except Exception:  # damaged, or gone: it is made again
            return None
        keys = (table.schema.metadata or {}).get(_KEYS, b"")
        if len(keys) != 32 * table.num_rows:
            return None
        kinds = table.column("kind").to_pylist()
        states = table.column("status").to_pylist()
        copies = table.column("duplicate_of").null_count < table.num_rows
        return Part(
            name, table.num_rows, _failed(kinds), states.count("error"), bytes.fromhex(keys.decode()), copies, True
        )

    def commit(self, parts: Sequence[Part], build: str) -> Summary:
        """Say which runs have the same bytes, remove what no part of this run is, and mark the whole as complete."""
        copies = self._mark_copies(parts)
        current = {part.name for part in parts}
        for name in self._names():
            if _PART.fullmatch(name) and name not in current:
                self._remove(name)
        summary = Summary(
            LAYOUT,
            build,
            rows=sum(part.rows for part in parts),
            failed=sum(part.failed for part in parts),
            errors=sum(part.errors for part in parts),
            copies=copies,
            parts=len(parts),
            reused=sum(part.reused for part in parts),
            complete=True,
        )
        self._put(MARK, msgspec.json.encode(summary))
        return summary

    def _mark_copies(self, parts: Sequence[Part]) -> int:
        """Of several rows that stand on the same bytes, the first stands for all: the others name it."""
        import numpy as np

        every = np.frombuffer(b"".join(part.keys for part in parts), dtype="V16")
        _, first, group = np.unique(every, return_index=True, return_inverse=True)
        stands = first[group]
        has_key = every != np.void(_NO_KEY)
        wanted = np.flatnonzero((stands != np.arange(len(every))) & has_key)
        starts = np.cumsum([0, *(part.rows for part in parts)])
        names = self._names_of(parts, starts, sorted({int(stands[at]) for at in wanted}))
        again: list[tuple[Part, dict[int, str]]] = []
        for number, part in enumerate(parts):
            low, high = starts[number], starts[number + 1]
            mine = wanted[np.searchsorted(wanted, low) : np.searchsorted(wanted, high)]
            if len(mine) or part.copies:
                again.append((part, {int(at - low): names[int(stands[at])] for at in mine}))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            list(threads.map(lambda one: self._write(one[0].name, self._rows(one[0].name), one[0].keys, one[1]), again))
        return len(wanted)

    def _names_of(self, parts: Sequence[Part], starts: Any, rows: Sequence[int]) -> dict[int, str]:
        """The names of the runs at these places of the whole."""
        import numpy as np

        found: dict[int, str] = {}
        held: tuple[int, list[Row]] | None = None
        for at in rows:
            number = int(np.searchsorted(starts, at, side="right")) - 1
            if held is None or held[0] != number:
                held = (number, self._rows(parts[number].name))
            found[at] = held[1][at - int(starts[number])].run
        return found

    def _rows(self, name: str) -> list[Row]:
        import pyarrow.parquet as parquet

        table = parquet.read_table(io.BytesIO(self._get(name)))
        return [msgspec.convert(row, Row) for row in table.to_pylist()]

    def _write(self, name: str, rows: list[Row], keys: bytes, copies: dict[int, str]) -> Part:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        from postmortem.fleet.table import frame

        shown = [msgspec.structs.replace(row, duplicate_of=copies.get(at)) for at, row in enumerate(rows)]
        table = pa.Table.from_pandas(frame(shown), preserve_index=False)
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), _KEYS: keys.hex().encode()})
        buffer = io.BytesIO()
        parquet.write_table(table, buffer, compression="zstd")
        self._put(name, buffer.getvalue())
        errors = sum(row.status == "error" for row in rows)
        return Part(name, len(rows), _failed([row.kind for row in rows]), errors, keys, bool(copies))

    def _names(self) -> list[str]:
        if self._files is None:
            return sorted(name for name in os.listdir(self._base) if not name.startswith(".postmortem-"))  # noqa: PTH208
        try:
            found = self._files.ls(self._base, detail=False)
        except FileNotFoundError:
            return []
        names = (str(name).rstrip("/") for name in found)
        return sorted(name.rsplit("/", 1)[-1] for name in names if name != self._base.rstrip("/"))

    def _get(self, name: str) -> bytes:
        if self._files is None:
            return Path(self._base, name).read_bytes()
        found: bytes = self._files.cat_file(f"{self._base}/{name}")
        return found

    def _put(self, name: str, content: bytes) -> None:
        if self._files is not None:
            self._files.pipe_file(f"{self._base}/{name}", content)
            return
        write_whole(content, Path(self._base, name))

    def _remove(self, name: str) -> None:
        if self._files is not None:
            self._files.rm_file(f"{self._base}/{name}")
        else:
            Path(self._base, name).unlink(missing_ok=True)


def _failed(kinds: Iterable[Any]) -> int:
    return sum(kind in ("gpu_oom", "host_oom", "vram_spill") for kind in kinds)


def _key(done: Done) -> bytes:
    """16 bytes for the content of a run; what is keyed otherwise is hashed to as many."""
    if done.key is None:
        return _NO_KEY
    if len(done.key) == 32:
        return bytes.fromhex(done.key)
    return blake2b(done.key.encode(), digest_size=16).digest()
