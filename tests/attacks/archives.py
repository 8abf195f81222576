"""Archives that write beside themselves, that grow without end, that lie, that break off."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Mapping

import zstandard

from tests.attacks.case import DIED, KIND, Attack, files

GPU = {KIND: "gpu_oom"}
LOG = DIED.encode()


def zipped(entries: Mapping[str, bytes], **changes: int) -> bytes:
    """A zip archive; `changes` are set on each of its entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            for key, value in changes.items():
                setattr(info, key, value)
            file.writestr(info, data)
    return out.getvalue()


def tarred(*members: tuple[str, bytes, bytes, str], mode: str = "w") -> bytes:
    """A tar archive of (name, content, type, what it links to)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as file:  # type: ignore[call-overload]
        for name, data, kind, to in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size = kind, to, len(data)
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()


def claimed(name: str, size: int) -> bytes:
    """The header of a tar's entry that says it has this size."""
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def packed(
    name: str, data: bytes, status: int, *, tells: str = "", options: tuple[str, ...] = (), file: str = "run.pack"
) -> Attack:
    """An archive, whatever its name says."""
    says = GPU if status == 1 else {}
    return files(
        f"archive: {name}",
        {file: data},
        status,
        arguments=(f"{{}}/{file}", *options),
        says=says,
        tells=tells,
        hides=("/etc/passwd",) if status == 1 else (),
    )


def flipped(data: bytes, at: int) -> bytes:
    """`data` with one byte wrong."""
    wrong = bytearray(data)
    wrong[at] ^= 0xFF
    return bytes(wrong)


REGULAR, LINK, HARD, CHAR, BLOCK, PIPE, FOLDER = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.CHRTYPE,
    tarfile.BLKTYPE,
    tarfile.FIFOTYPE,
    tarfile.DIRTYPE,
)
GZ, BZ, XZ = gzip.compress(LOG, mtime=0), bz2.compress(LOG), lzma.compress(LOG)
ZST, EMPTY = (zstandard.ZstdCompressor().compress(data) for data in (LOG, b""))
ZERO = bytes(80 << 20)
ESCAPES = "\x1b[2J\u202e.log"

ATTACKS = [
    *(packed(f"{name}, whole", data, 1) for name, data in (("gz", GZ), ("bz2", BZ), ("xz", XZ))),
    *(
        packed(f"{name} cut to {share}/8", data[: len(data) * share // 8], status)
        for name, data, share, status in (("bz2", BZ, 1, 3), ("bz2", BZ, 4, 3), ("xz", XZ, 1, 0), ("xz", XZ, 4, 0))
    ),
    *(packed(f"gz cut to {share}/8", GZ[: len(GZ) * share // 8], status) for share, status in ((1, 0), (7, 1))),
    packed("bz2, damaged", flipped(BZ, len(BZ) // 2), 3),
    packed("xz, damaged", flipped(XZ, len(XZ) // 2), 0),
    *(
        packed(f"{name}, only its first bytes", data[:6], 3, tells="breaks off")
        for name, data in (("gz", GZ), ("bz2", BZ), ("xz", XZ), ("zst", b"\x28\xb5\x2f\xfd\0\0"))
    ),
    packed("zst that lost its last bytes", ZST[:-30], 3, tells="breaks off"),
    packed("zst in frames, cut in the last of them", ZST + ZST[:-30], 1),
    packed("zst with something behind it", ZST + b"something else" * 200, 1),
    packed("zst, 20,000 empty frames in front", EMPTY * 20_000 + ZST, 1),
    packed("zst with a frame that is skipped", ZST + b"\x50\x2a\x4d\x18\3\0\0\0abc" + ZST, 1),
    packed("zst of 80 MiB of zeros", zstandard.ZstdCompressor().compress(ZERO), 3, tells="--max-ratio"),
    packed("a 7-Zip archive", b"7z\xbc\xaf\x27\x1c" + b"\0\4" * 200, 3, tells="a 7-Zip archive"),
    packed("a RAR archive", b"Rar!\x1a\7\1\0" + b"\0\4" * 200, 3, tells="a RAR archive"),
    packed("gz with a wrong sum", flipped(GZ, -6), 1),
    packed("gz with something behind it", GZ + b"something else", 1),
    packed("two gz", GZ + GZ, 1),
    packed("gz in gz", gzip.compress(GZ), 3, tells="inside"),
    packed(
        "gz whose name does not end", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (2 << 20), 3, tells="cannot be unpacked"
    ),
    packed("gz of nothing", gzip.compress(b""), 3),
    packed("gz of a name with escapes", b"\x1f\x8b\x08\x08\0\0\0\0\0\3" + ESCAPES.encode() + b"\0" + GZ[10:], 1),
    packed("zst that is none", b"\x28\xb5\x2f\xfd" + b"\xff" * 300, 3),
    packed("gz of 80 MiB of zeros", gzip.compress(ZERO, 9, mtime=0), 3, tells="--max-ratio"),
    packed(
        "more than is allowed",
        gzip.compress(b"x y\n" * 600_000, mtime=0),
        3,
        tells="--max-expanded",
        options=("--max-expanded", "1"),
    ),
    packed("a tar, all whole", tarred(("run/log.txt", LOG, REGULAR, "")), 1),
    packed("tar: up", tarred(("../../../up.log", LOG, REGULAR, "")), 1),
    packed("tar: from the root", tarred(("/etc/up.log", LOG, REGULAR, "")), 1),
    packed("tar: a link", tarred(("log.txt", b"", LINK, "/etc/passwd")), 3, tells="no log"),
    packed("tar: a hard link", tarred(("log.txt", b"", HARD, "/etc/passwd")), 3, tells="no log"),
    packed(
        "tar: a link to a folder, and into it", tarred(("a", b"", LINK, "/tmp"), ("a/run.log", LOG, REGULAR, "")), 1
    ),
    *(
        packed(f"tar: {what}", tarred(("log.txt", b"", kind, "")), 3, tells="no log")
        for what, kind in (("a device", CHAR), ("a disk", BLOCK), ("a pipe", PIPE), ("a folder", FOLDER))
    ),
    packed("tar: a name twice", tarred(("log.txt", LOG, REGULAR, ""), ("log.txt", b"x", REGULAR, "")), 1),
    packed(
        "tar: a file, and a folder of its name",
        tarred(("a.log", LOG, REGULAR, ""), ("a.log/log.txt", LOG, REGULAR, "")),
        1,
    ),
    packed("tar: a name with escapes", tarred((ESCAPES, LOG, REGULAR, "")), 1),
    packed("tar: a name of 4,000 letters", tarred(("d/" * 4 + "x" * 4_000 + ".log", LOG, REGULAR, "")), 1),
    packed("tar: 100 folders deep", tarred(("d/" * 100 + "run.log", LOG, REGULAR, "")), 3, tells="no log"),
    packed(
        "tar: names of a device on Windows", tarred(("CON.log", LOG, REGULAR, ""), ("NUL/x.bin", b"", REGULAR, "")), 1
    ),
    packed(
        "tar: 300 entries",
        tarred(*((f"x{n}.bin", b"", REGULAR, "") for n in range(300))),
        3,
        tells="--max-entries",
        options=("--max-entries", "200"),
    ),
    packed("tar: cut in a file", tarred(("run/log.txt", LOG * 40, REGULAR, ""))[: len(LOG) * 20], 0),
    packed("tar: cut in its header", tarred(("run/log.txt", LOG, REGULAR, ""))[:400], 3),
    packed("tar: a wrong sum", flipped(tarred(("run/log.txt", LOG, REGULAR, "")), 150), 3),
    packed(
        "tar: a size that is a lie",
        tarred(("run/log.txt", LOG, REGULAR, ""))[:124]
        + b"77777777777\0"
        + tarred(("run/log.txt", LOG, REGULAR, ""))[136:],
        3,
    ),
    packed("tar: a log of 1 EiB", claimed("run/log.txt", 1 << 60) + LOG, 3, tells="--max-expanded"),
    packed(
        "tar: 1 EiB to pass over",
        claimed("run/x.safetensors", 1 << 60) + tarred(("run/log.txt", LOG, REGULAR, "")),
        3,
        tells="--max-expanded",
    ),
    packed("tar: a name of 100 letters of three bytes", tarred(("학습" * 50 + ".log", LOG, REGULAR, "")), 1),
    packed("zip: a name of 100 letters of three bytes", zipped({"학습" * 50 + ".log": LOG}), 1),
    packed("zip: folders of 100 letters of three bytes", zipped({("학습" * 50 + "/") * 11 + "log.txt": LOG}), 1),
    packed("tar: two logs", tarred(("a.log", LOG, REGULAR, ""), ("b.log", LOG, REGULAR, "")), 3, tells="several logs"),
    packed(
        "tar: two runs",
        tarred(("a/log.txt", LOG, REGULAR, ""), ("b/log.txt", LOG, REGULAR, "")),
        3,
        tells="several logs",
    ),
    packed("tar: a zip in it", tarred(("run.zip", zipped({"log.txt": LOG}), REGULAR, "")), 3, tells="of its own"),
    packed("tar.gz cut", tarred(("run/log.txt", LOG * 40, REGULAR, ""), mode="w:gz")[:-40], 0),
    packed("zip, all whole", zipped({"run/log.txt": LOG}), 1),
    packed("zip: up", zipped({"../../../up.log": LOG}), 1),
    packed("zip: up, as Windows has it", zipped({"..\\..\\up.log": LOG}), 1),
    packed("zip: from a drive", zipped({"C:\\x\\up.log": LOG}), 1),
    packed("zip: a link", zipped({"log.txt": b"/etc/passwd"}, external_attr=0o120777 << 16), 3, tells="no log"),
    packed("zip: a name with escapes", zipped({ESCAPES: LOG}), 1),
    packed("zip: a NUL in its name", zipped({"a\0b.log": LOG}), 3),
    packed("zip: empty", zipped({}), 3),
    packed("zip: a bomb", zipped({"log.txt": ZERO}), 3, tells="--max-ratio"),
    packed("zip: a sum that is a lie", flipped(zipped({"run/log.txt": LOG}), 40), 3),
    packed("zip: its list is gone", zipped({"run/log.txt": LOG})[:-60], 3),
    packed("zip: its head only", b"PK\x03\x04", 3),
    packed("zip: its tail only", b"PK\x05\x06" + bytes(18), 3),
    packed(
        "zip: needs a password",
        zipped({"run/log.txt": LOG}).replace(b"PK\x01\x02\x14\x03\x14\0\0\0", b"PK\x01\x02\x14\x03\x14\0\1\0"),
        3,
    ),
    packed("zip: something before it", b"#!/bin/sh\n" + zipped({"run/log.txt": LOG}), 3),
    packed("zip: a method that is none", zipped({"run/log.txt": LOG}).replace(b"\x08\0", b"\x63\0"), 3),
    packed("zip: a zip in it", zipped({"run.zip": zipped({"log.txt": LOG})}), 3, tells="of its own"),
    packed(
        "zip: 300 entries",
        zipped({f"x{n}.bin": b"" for n in range(300)}),
        3,
        tells="--max-entries",
        options=("--max-entries", "200"),
    ),
    packed("zip: a config that is a bomb", zipped({"run/log.txt": LOG, "run/config.yaml": b"a: &a [*a]\n"}), 1),
    packed(
        "zip: a database that is none",
        zipped({"run/log.txt": LOG, "run/aitk_db.db": b"SQLite format 3\0" + b"x" * 900}),
        1,
    ),
    packed("a log that calls itself an archive", LOG, 1, file="run.tar.gz"),
    packed("an archive that calls itself a log", GZ, 1, file="run.log"),
    packed("7z", b"7z\xbc\xaf\x27\x1c" + b"\0\4" * 300, 3),
    packed("rar", b"Rar!\x1a\7\1\0" + b"\0\4" * 300, 3),
]
