"""The shapes of the knowledge base: what an entry in ``patterns/`` may say.

Every entry is validated against these types when it is loaded, so a misspelt key or a wrong type is an
error with a file and a line, never a rule that silently does nothing. docs/knowledge.md explains each
field for people who add entries.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Status = Literal["stable", "experimental", "legacy"]
"""How far to trust an entry: seen in real logs, inferred from source, or only in old releases."""

Role = Literal[
    # wrappers around a message
    "prefix",
    "carrier",
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

    kind: str | None = None
    resource: str | None = None
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


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One wording that AI Toolkit, torch, the kernel, a shell or another trainer prints.

    `anchors` are literal strings, at least one of which is in every line that the entry can match: the
    scan looks only at lines that hold an anchor of some entry. `regex` is tried at the start of the
    message, once prefixes and carriers are peeled off, or anywhere in it with `anywhere`.
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
    status: Status = "stable"


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One config key that bears on memory, with AI Toolkit's true default and where the UI shows it."""

    path: str
    default: Any
    type: Literal["bool", "int", "float", "str", "int_list", "any"]
    source: str
    follows: str | None = None
    aliases: tuple[str, ...] = ()
    ui: str | None = None
    shown: bool = False


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One model family: its display name, the `arch` names and old flags that select it."""

    id: str
    name: str
    arch: tuple[str, ...]
    source: str
    flags: tuple[str, ...] = ()
    marker: str | None = None
    media: Literal["image", "video", "audio"] = "image"
    edit: bool = False
    divisor_px: int | None = None
    risk: str | None = None


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One circumstance in which an entry applies: all conditions hold. See docs/knowledge.md for the
    condition language. `rank` orders remedies (lower is earlier); `why` names a text."""

    why: str
    when: tuple[str, ...] = ()
    rank: int = 0
    unknown_ok: bool = False


Operation = Literal[
    "set", "halve", "drop_largest", "scale_side", "scale_frames", "double", "multiply_by_batch_cut", "lower_bits"
]


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One config edit. Exactly one operation is given; `path` may hold `[]` for every list element.

    `when` are conditions on the run: which half of the job an edit touches depends on what failed.
    """

    path: str
    set: Any = None
    op: Operation = "set"
    floor: int = 1
    given_only: bool = False
    when: tuple[str, ...] = ()


class Remedy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One fix of the contract's list: when it may be offered, what it changes, where it stands."""

    id: str
    source: str
    offer: tuple[Rule, ...]
    requires: tuple[str, ...] = ()
    will_not_help: tuple[Rule, ...] = ()
    changes: tuple[Change, ...] = ()
    guide: str | None = None
    url: str | None = None
    status: Status = "stable"


class Factor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A circumstance that contributes to a failure; named in the report when its conditions hold."""

    id: str
    source: str
    when: tuple[str, ...]
    weight: int = 0


class ClassEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One failure class, kind or warning that `explain` can describe."""

    id: str
    what: Literal["class", "kind", "phase", "topic", "warning"]
    source: str


class Redaction(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something personal or secret that logs carry; group `secret` is what a report hides."""

    id: str
    regex: str
    label: str
    source: str
    examples: Examples


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings that count as one change when two attempts are compared; the first entry that takes a path has it.

    `paths` may hold `[]` for any index and end in `*`. `same_product`: the entry takes its paths only where the
    product of these settings stayed the same. `bears: false` means no bearing on memory; `bears_on` limits the
    bearing to failures of these kinds, phases or classes (or `baseline_before`: a baseline preview ran before it).
    `identity` marks what makes it another job.
    """

    id: str
    paths: tuple[str, ...]
    source: str
    bears: bool = True
    bears_on: tuple[str, ...] = ()
    same_product: tuple[str, ...] = ()
    identity: bool = False


class Knowledge(msgspec.Struct, frozen=True):
    """The whole knowledge base, as the pure core receives it."""

    version: str
    patterns: tuple[Pattern, ...]
    settings: tuple[Setting, ...]
    families: tuple[Family, ...]
    remedies: tuple[Remedy, ...]
    factors: tuple[Factor, ...]
    classes: tuple[ClassEntry, ...]
    redactions: tuple[Redaction, ...]
    variables: tuple[Variable, ...]
    texts: dict[str, dict[str, str]]
