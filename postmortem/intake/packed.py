"""What an archive looks like from outside, and how much of one is unpacked; light, since every start needs it."""

from __future__ import annotations

import msgspec

HEAD = 512
CODECS = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zst"))
ZIP = (b"PK\x03\x04", b"PK\x05\x06")


class Limits(msgspec.Struct, frozen=True):
    """How much of an archive is unpacked: MiB in all, unpacked over packed size, entries."""

    expanded_mib: int = 4096
    ratio: int = 1000
    entries: int = 10_000


def is_archive(head: bytes) -> bool:
    """Whether `head` (512 bytes do) is the start of an archive that can be unpacked."""
    return head.startswith(ZIP) or is_tar(head) or any(head.startswith(magic) for magic, _ in CODECS)


def is_tar(head: bytes) -> bool:
    """Whether `head` is the start of a tar archive."""
    return head[257:262] == b"ustar"
