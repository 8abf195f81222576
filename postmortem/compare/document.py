"""The comparison as a typed document: what the JSON holds, and what the other formats print.

Steps are AI Toolkit's own 0-based step numbers. Text out of a log keeps its own type until an encoder takes it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.report.document import RedactedPart, Tool
from postmortem.text import LogText, Words

SCHEMA_VERSION = "1.0"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pass


class EditItem(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
    """One setting that differs; null where a side does not have it."""

    path: LogText
    from_: Any
    to: Any


class VariableItem(_Part, frozen=True, kw_only=True):
    """One variable that changed: an entry's id or a path; `bears` says whether it bears on the failure."""

    id: LogText
    title: Words
    bears: bool
    edits: list[EditItem]


class CircumstanceItem(_Part, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Something besides the config that both logs tell and that differs."""

    id: str
    title: str
    from_: LogText
    to: LogText


class ConclusionItem(_Part, frozen=True, kw_only=True):
    """What the later attempt proves. `passes` is how it stands to the failure."""

    id: str
    proven: bool
    passes: str
    run_until_step: int | None
    revert_first: LogText | None
    text: Words
    advice: list[Words]


class AttemptItem(_Part, frozen=True, kw_only=True, rename={"class_": "class"}):
    """One attempt. `changes` and `conclusion` are against the attempt before; null for the first, or unknown config."""

    number: int
    source: LogText
    attempt: int
    job_name: LogText | None
    outcome: str
    kind: str
    class_: str | None
    phase: str
    start_step: int
    failure_step: int | None
    last_completed_step: int | None
    total_steps: int | None
    skipped_batches: int
    config_known: bool
    changes: list[VariableItem] | None
    conclusion: str | None


class NextFix(_Part, frozen=True, kw_only=True):
    """The best fix of the last failing attempt that no earlier attempt has tried."""

    id: str
    title: str
    changes: list[EditItem]


class NoteItem(_Part, frozen=True, kw_only=True):
    """Something that the reader should know about the comparison."""

    id: str
    text: Words


class Comparison(_Part, frozen=True, kw_only=True):
    """What changed between two attempts, and what that proves; `history` holds all attempts given."""

    schema_version: str
    tool: Tool
    failed: int
    retry: int
    conclusion: ConclusionItem
    variables: int | None
    changes: list[VariableItem] | None
    no_bearing: list[VariableItem] | None
    circumstances: list[CircumstanceItem]
    history: list[AttemptItem]
    helped: list[VariableItem]
    in_vain: list[VariableItem]
    next_fix: NextFix | None
    notes: list[NoteItem]
    lang: str
    redacted: RedactedPart | None = None
