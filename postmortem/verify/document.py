"""What a verification says, as a typed document for every format."""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.report.document import Tool
from postmortem.text import LogText

SCHEMA_VERSION = "1.0"


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What made the report that was checked."""

    tool_version: LogText
    patterns: LogText
    schema_version: LogText
    redacted: bool
    same_version: bool


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """How the claims of one group came out: `evidence`, `numbers`, `analysis`, `files`."""

    id: str
    same: int
    differs: int
    unchecked: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that is not confirmed. `path` is where it stands in the report; `why` says what is wrong or missing.

    `report` and `log` are what each says, null where one of them says nothing; `line` is where the log says it.
    """

    group: str
    path: LogText
    why: str
    says: str
    report: Any
    log: Any
    line: int | None


class Hint(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the reader should know or can do."""

    id: str
    text: str


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The result: `verdict` is `same`, `differs`, or `unproven`: nothing differs, but something cannot be checked."""

    schema_version: str
    tool: Tool
    report: Made
    verdict: str
    groups: list[Group]
    differs: list[Finding]
    unchecked: list[Finding]
    hints: list[Hint]
    lang: str
