"""What the fuzzers start from: for each target some inputs that go deep, made by code, and words to put into them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.forms import LESS, SAME
from tests.generate import make
from tests.hostile import HOSTILE, lexicon
from tests.patch.examples import ALL

ROOT = Path(__file__).parents[2]
FOUND = Path(__file__).parent / "found"
"""Inputs that once broke a promise, a folder for each target."""
MAX_SEED = 24_000


def seeds(target: str) -> Iterator[bytes]:
    """The first inputs of a target: those that broke it once, and its own."""
    for path in sorted((FOUND / target).glob("*")):
        yield path.read_bytes()
    yield from OF[target]()


def logs() -> Iterator[bytes]:
    """Short logs of every kind: generated ones, the ends of fixtures, every entry's examples."""
    for seed in range(24):
        data = make(seed).log.encode()
        yield data[:MAX_SEED]
        yield data[-3000:]
    for path in sorted((ROOT / "fixtures").glob("*/log.txt")):
        yield path.read_bytes()[-4000:]
    for pattern in lexicon().knowledge.patterns:
        yield "\n".join(pattern.examples.match).encode()
    for text in HOSTILE:
        yield f"Running 1 job\n{text}\nCUDA out of memory. Tried to allocate 2.00 GiB\n{text}".encode(
            "utf-8", "replace"
        )


def handed_over() -> Iterator[bytes]:
    """Logs in the forms in which people hand them over, and packed ones."""
    for number, form in enumerate([*SAME.values(), *LESS.values()]):
        yield form(make(number).log[-2500:])
    yield from archives_()


def raw_archives() -> Iterator[bytes]:
    """An archive of each kind."""
    log = make(1).log.encode()[-1500:]
    yield gzip.compress(log, mtime=0)
    yield bz2.compress(log)
    yield lzma.compress(log)
    import zstandard

    yield zstandard.compress(log)
    names = (
        "run/log.txt",
        "run/config.yaml",
        "run/logs/0_log.txt",
        "../../up.log",
        "run/aitk_db.db",
        "x" * 120 + ".log",
    )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            file.writestr(name, log)
    yield out.getvalue()
    for mode in ("w", "w:gz"):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode=mode) as tar:
            for name in names:
                member = tarfile.TarInfo(name)
                member.size = len(log)
                tar.addfile(member, io.BytesIO(log))
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE):
                member = tarfile.TarInfo("link.log")
                member.type, member.linkname = kind, "/etc/passwd"
                tar.addfile(member)
        yield out.getvalue()


def archives_() -> Iterator[bytes]:
    """The same, behind the byte that says how to take them; and what entries are made of."""
    for raw in raw_archives():
        yield b"\0" + raw
    for how in (1, 2, 3, 65, 66, 67, 129, 130, 131):
        yield bytes([how]) + b"run/x/log.txt" * 20 + bytes(range(64))


def configs() -> Iterator[bytes]:
    """Job configs in every style."""
    for text in ALL.values():
        yield text.encode()
    for path in sorted((ROOT / "fixtures").glob("*/config.yaml"))[:12]:
        yield path.read_bytes()
    yield b"config: &a\n  process:\n  - &b {train: {batch_size: 4}, model: {arch: flux}}\n  - <<: *b\n    x: !!int 3\n"
    yield json.dumps({"job": "extension", "config": {"name": "x", "process": [{"train": {"steps": 1e400}}]}}).encode()
    yield b"train: {lr: .nan, steps: 0x10, batch_size: 1_000, ema: 2001-01-01}\ndatasets: [{resolution: [512, '768']}]\n"


def packs() -> Iterator[bytes]:
    """The knowledge base's own files, and small packs."""
    for path in sorted((ROOT / "patterns").rglob("*.yaml")):
        data = path.read_bytes()
        if "text" not in path.parts and len(data) < 60_000:
            yield data[:MAX_SEED]
    yield (
        b"patterns:\n- id: my.oom\n  role: oom\n  anchors: ['no more room']\n  regex: 'no more room for (?P<what>\\w+)'\n"
        b"  sets: {kind: gpu_oom, resource: vram}\n  source: mine\n  examples: {match: [no more room for x]}\n"
    )


def databases() -> Iterator[bytes]:
    """The two databases, and some that only look like them."""
    scripts = (
        "CREATE TABLE Job (id TEXT PRIMARY KEY, name TEXT, job_config TEXT, status TEXT, step INTEGER, info TEXT);"
        "INSERT INTO Job VALUES ('1', 'mugs', '{}', 'error', 250, 'CUDA out of memory');",
        "CREATE TABLE metrics (step INTEGER, key TEXT, value_real REAL, value_text TEXT);"
        "INSERT INTO metrics VALUES (1, 'learning_rate', 0.0, NULL), (2, 'loss/loss', 0.3, NULL);",
        "CREATE VIEW Job AS SELECT 1 AS id, 2 AS name;",
        "CREATE TABLE Job (id, name); CREATE TRIGGER t AFTER INSERT ON Job BEGIN SELECT 1; END;"
        "INSERT INTO Job VALUES (x'ff00', 'a' || char(27) || 'b');",
        "CREATE TABLE Job (id TEXT, name TEXT AS (hex(zeroblob(9))) VIRTUAL, info BLOB); INSERT INTO Job(id) VALUES (1);",
    )
    for script in scripts:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.db"
            with closing(sqlite3.connect(path)) as file:
                file.executescript("PRAGMA page_size = 512;" + script)
            yield path.read_bytes()


def beside() -> Iterator[bytes]:
    """Headers of checkpoints and pictures, size databases."""
    header = json.dumps({"__metadata__": {"training_info": '{"step": 250}'}, "a": {"data_offsets": [0, 4]}}).encode()
    yield len(header).to_bytes(8, "little") + header + b"abcd"
    yield json.dumps({"/1.jpg": [512, 768, "x"], "2.webp": [0, -1, 1], "x": None}).encode()
    yield b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\2\0\0\0\3\0\x08\2\0\0\0"
    yield b"\xff\xd8\xff\xe1\0\x20Exif\0\0II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\0\0\xff\xc0\0\x11\x08\1\0\2\0\3\xff\xda"
    for kind in (b"VP8 ", b"VP8L", b"VP8X"):
        yield b"RIFF\x40\0\0\0WEBP" + kind + b"\x20\0\0\0/\1\2\3\x9d\1\x2a\0\2\0\3\0\0\0\0\0"
    yield b"PK\x03\x04" + bytes(40) + b"PK\x05\x06" + bytes(18)


OF = {
    "intake": handed_over,
    "reading": handed_over,
    "scan": logs,
    "jobconfig": configs,
    "patterns": packs,
    "archives": archives_,
    "databases": databases,
    "beside": beside,
}


def words() -> Iterator[bytes]:
    """What a fuzzer does not guess: the literals of the knowledge base, the keys of configs, and some syntax."""
    for pattern in lexicon().knowledge.patterns:
        for anchor in pattern.anchors:
            yield anchor.encode()
    for setting in lexicon().knowledge.settings:
        yield setting.path.rpartition(".")[2].encode()
    for word in (
        "Traceback (most recent call last):\n",
        '  File "x.py", line 3, in f\n',
        "\r",
        "%|",
        "| 3/9 [00:01<00:02]",
    ):
        yield word.encode()
    for word in (
        "data_offsets",
        "__metadata__",
        "regex:",
        "anchors:",
        "(?P<value>",
        "!!python/object",
        "<<: *a",
        "&a ",
    ):
        yield word.encode()
    yield from (b"PK\x05\x06", b"ustar", b"\x1f\x8b", b"CREATE TABLE Job", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[2J")
