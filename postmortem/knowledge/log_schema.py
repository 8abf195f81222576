"""The shapes of entries about the lines of a log: what a wording says of a run, and what in a line is private."""

# No `from __future__ import annotations`: msgspec would have to evaluate each annotation's text at every start.
import datetime
from typing import Literal

import msgspec

Status = Literal["stable", "experimental", "legacy"]
"""How far to trust an entry: seen in real logs, inferred from source, or only in old releases."""

Role = Literal[
    # wrappers around a message
    "prefix",
    "carrier",
    # what in a line the user wrote or named
    "naming",
    # statements: what went wrong
    "oom",
    "host_oom",
    "other_error",
    "skip",
    "abort",
    "consequence",
    "kill",
    "crash",
    "exit",
    "stop",
    "result",
    "note",
    # markers: what the program is doing
    "marker",
    "bar",
    # single frames of a traceback
    "frame",
    # whose log this is
    "trainer",
    # where it ran
    "platform",
]


STATEMENTS = frozenset(
    (
        *("oom", "host_oom", "other_error", "skip", "abort", "consequence"),
        *("kill", "crash", "exit", "stop", "result", "note"),
    )
)
"""Roles of entries that state what went wrong; one layer, on which no two may claim a line."""


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a matching entry says about the run. Everything is optional; absent means "says nothing"."""

    kind: Literal["gpu_oom", "host_oom", "not_memory"] | None = None
    resource: Literal["vram", "host_ram", "pinned_host", "pagefile", "shm"] | None = None
    phase: str | None = None
    trainer: str | None = None
    event: str | None = None
    caught: bool | None = None
    weight: int = 0
    reason: str | None = None


class Examples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Lines that the entry must and must not claim; `patterns test` runs them all."""

    match: tuple[str, ...]
    no_match: tuple[str, ...] = ()


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"since": "from"}):
    """When AI Toolkit says something: the days of its first and last commit that do (``git log --format=%cs``).

    `since` is written ``from`` in YAML. No `until`: the newest checkout that was looked at still does.
    """

    since: datetime.date
    until: datetime.date | None = None


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One wording that AI Toolkit, torch, the kernel, a shell or another trainer prints.

    `anchors` are literal strings, at least one of which is in every line that the entry can match: the
    scan looks only at lines that hold an anchor of some entry. `regex` is tried at the start of the
    message, once prefixes and carriers are peeled off, or anywhere in it with `anywhere`. `seen` is given for
    AI Toolkit's own wordings, `versions` in words for all others and for what dates alone do not say.
    """

    id: str
    role: Role
    regex: str
    examples: Examples
    source: str
    anchors: tuple[str, ...] = ()
    anywhere: bool = False
    sets: Facts = Facts()
    fields: dict[str, str] = {}
    yields_to: tuple[str, ...] = ()
    versions: str | None = None
    seen: Seen | None = None
    status: Status = "stable"


class Redaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something personal or secret that logs carry; group `secret` is what a report hides. See docs/knowledge.md.

    It is tried on lines that hold one of `anchors` (any case; without any, on every line). What fully matches an
    expression of the lists `keep` stays. `parts` cuts the secret, and each part is judged by itself; the last one, if
    it ends in what `tail` matches, keeps that and gets the label `last`. `spreads`: what was found once is hidden
    everywhere. `exact`: case tells two of them apart.
    """

    id: str
    regex: str
    label: str
    source: str
    examples: Examples
    anchors: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    parts: str | None = None
    last: str | None = None
    tail: str | None = None
    spreads: bool = False
    exact: bool = False


class PrivateSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Config keys whose value is private: it is hidden there, and wherever else it stands as a whole word.

    `paths` may hold `[]` for any index and `*` for any part of a key. `kind` says how the value is found again: `name`
    as it stands · `path` and its last folder · `folder` its folders, those of every installation left out · `repo` and
    its name · `prose` any three of its words in a row. What fully matches an expression of the lists `keep` is public.
    """

    id: str
    paths: tuple[str, ...]
    label: str
    kind: Literal["name", "path", "folder", "repo", "prose"]
    source: str
    keep: tuple[str, ...] = ()


class KeptWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A list of what is no secret, as expressions of any case that must match the whole."""

    id: str
    words: tuple[str, ...]
    source: str
