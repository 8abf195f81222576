"""Container logs that keep each write as a JSON object (`{"log": "…", "stream": "…"}`): the text inside."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from postmortem.bounded import integer

KEYS = ("log", "message", "msg", "MESSAGE", "textPayload", "line")
"""Under which of its keys a record keeps the text: Docker's json-file driver, journald, cloud and common collectors."""
MAX_RECORD = 1 << 20


def is_json_lines(head: bytes) -> bool:
    """Whether `head` starts with records of one object a line that hold a piece of log each."""
    lines = [line for line in head.split(b"\n", 20)[:20] if line.strip()]
    complete = lines[:-1] if len(lines) > 1 else lines
    return bool(complete) and all(_text(line) is not None for line in complete)


def texts(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The text of the records, as it was written; a line that is no record, or too long for one, is passed on as it is.

    The same whatever the chunks.
    """
    rest = b""
    passing = False
    """Whether `rest` is the end of a line that was too long."""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        out: list[bytes] = []
        for line in lines:
            out.append(line + b"\n" if passing else _one(line))
            passing = False
        if passing or len(rest) > MAX_RECORD:
            out.append(rest)
            rest, passing = b"", True
        if out:
            yield b"".join(out)
    if passing or rest.strip():
        yield rest + b"\n" if passing else _one(rest)


def _one(line: bytes) -> bytes:
    text = _text(line)
    if text is None:
        return line + b"\n"
    # a writer's own newline is in the record; a collector that strips it meant one
    return text.encode("utf-8", "replace") if text.endswith(("\n", "\r")) else (text + "\n").encode("utf-8", "replace")


def _text(line: bytes) -> str | None:
    stripped = line.strip()
    if not stripped.startswith(b"{") or len(line) > MAX_RECORD:
        return None
    try:
        record = json.loads(stripped, parse_int=integer)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or len(record) < 2:
        return None
    return next((record[key] for key in KEYS if isinstance(record.get(key), str)), None)
