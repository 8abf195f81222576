"""The last bytes of a log that is still written, as text: what a whole reading would make of them."""

from __future__ import annotations

from pathlib import Path

from postmortem.intake import decode, jsonlines

ALIGN = 4
"""Bytes of the widest character unit; a cut must not fall inside one."""


def read_tail(path: Path, size: int) -> bytes:
    """At most about `size` bytes from the end of the log, as UTF-8, from the start of a line on. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(decode.HEAD)
        file.seek(0, 2)
        start = max(0, file.tell() - size) // ALIGN * ALIGN
        file.seek(start)
        raw = file.read(size + ALIGN)
    encoding = decode.sniff(head)
    text = b"".join(decode.to_utf8([raw], encoding))
    if start:
        text = text[_line_start(text) :]
    if jsonlines.is_json_lines(b"".join(decode.to_utf8([head], encoding))):
        text = b"".join(jsonlines.texts([text]))
    return text


def _line_start(text: bytes) -> int:
    """Where the first line that is whole begins; bars are drawn on one line with carriage returns between."""
    found = [at for at in (text.find(b"\n"), text.find(b"\r")) if at >= 0]
    return min(found) + 1 if found else 0
