"""The mark that `watch` puts on a report, so that it knows its own files again and never lies with them.

A report file is three parts: the mark (one comment: which attempt, of which bytes, what was found, and a digest of the
body), the standing note (a sentence on the attempt, and what came after it), and the report as `analyze` writes it. A
file without a mark, or one whose body no longer fits its digest, belongs to somebody else.
"""

from __future__ import annotations

import html
import re
from hashlib import blake2b

import msgspec

from postmortem.report import encode_ticket as encode
from postmortem.text import Words

LAYOUT = 1
_MARK = re.compile(r"<!-- aitk-postmortem watch (\{[^\n]{1,2000}\}) -->\n")
_NOTE = "<!-- note -->\n"
_END = "<!-- /note -->\n"
_NOTED = re.compile(rf"{_NOTE}(.{{0,4000}}?){_END}", re.DOTALL)
_BODY = re.compile(r"<body[^>]{0,2000}>\n?")
_DOCTYPE = re.compile(r"<!doctype html>\n?", re.IGNORECASE)


class Stamp(msgspec.Struct, frozen=True):
    """Which failure a report is on.

    `attempt` counts from 1 in the run; `line` is the attempt's first in its log; `bytes` is how long that log was when
    it was read, and `tail` a digest of the last of these bytes; `claims` is a digest of the verdict. `note` says which
    standing note the file has.
    """

    attempt: int
    line: int
    bytes: int
    tail: str
    claims: str
    outcome: str
    note: str = ""
    body: str = ""
    layout: int = LAYOUT


def digest(content: bytes) -> str:
    """Sixteen hexadecimal digits."""
    return blake2b(content, digest_size=8).hexdigest()


def compose(suffix: str, stamp: Stamp, note: list[str], report: str) -> str:
    """The text of a report file. `suffix` is ``.md`` or ``.html``, `note` the sentences of the standing note."""
    stamp = msgspec.structs.replace(stamp, body=digest(report.encode("utf-8", "replace")))
    mark = f"<!-- aitk-postmortem watch {msgspec.json.encode(stamp).decode()} -->\n"
    if suffix == ".html":
        rows = "".join(f"<p><strong>{html.escape(line)}</strong></p>\n" for line in note)
        noted = f"{_NOTE}{rows}{_END}"
        first = _DOCTYPE.match(report)
        after = first.end() if first else 0
        body = _BODY.search(report, after)
        at = body.end() if body else after
        return f"{report[:after]}{mark}{report[after:at]}{noted}{report[at:]}"
    rows = "".join(f"> {encode.markdown(Words(line))}  \n" for line in note)
    return f"{mark}{_NOTE}{rows}\n{_END}\n{report}"


def parse(suffix: str, text: str) -> tuple[Stamp, str] | None:
    """The mark of a report file and the report in it; None where the file is not, or no longer, our own."""
    html_form = suffix == ".html"
    found = _MARK.search(text[:4000]) if html_form else _MARK.match(text)
    if found is None:
        return None
    try:
        stamp = msgspec.json.decode(found[1], type=Stamp)
    except msgspec.MsgspecError:
        return None
    rest = text[: found.start()] + text[found.end() :]
    noted = _NOTED.search(rest) if html_form else _NOTED.match(rest)
    if noted is None or stamp.layout != LAYOUT:
        return None
    report = rest[: noted.start()] + rest[noted.end() :]
    report = report if html_form else report.removeprefix("\n")
    return (stamp, report) if digest(report.encode("utf-8", "replace")) == stamp.body else None
