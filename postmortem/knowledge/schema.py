"""The shapes of the knowledge base: what an entry in ``patterns/`` may say, and all entries together.

Those about the lines of a log stand in log_schema.py, those of the memory model in memory_schema.py.
Every entry is validated against these types when it is loaded, so a misspelt key or a wrong type is an
error with a file and a line, never a rule that silently does nothing. docs/knowledge.md explains each
field for people who add entries.
"""

# No `from __future__ import annotations`: msgspec would have to evaluate each annotation's text at every start.
import datetime
from typing import Any, Literal

import msgspec

from postmortem.knowledge.log_schema import KeptWords, Pattern, PrivateSetting, Redaction, Seen, Status
from postmortem.knowledge.memory_schema import MemoryEncoder, MemoryModel, MemoryRule, MemoryVae


class Earlier(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A default that AI Toolkit had up to and including the commit day `until`."""

    default: Any
    until: datetime.date


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One config key that bears on memory, with AI Toolkit's true default and where the UI shows it.

    `seen` is since when AI Toolkit reads the key, where that is not since August 2024; `earlier` its older defaults.
    """

    path: str
    default: Any
    type: Literal["bool", "int", "float", "str", "int_list", "any"]
    source: str
    follows: str | None = None
    aliases: tuple[str, ...] = ()
    ui: str | None = None
    shown: bool = False
    seen: Seen | None = None
    earlier: tuple[Earlier, ...] = ()


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
    offloads: bool = False
    """Whether the family's loader knows `model.layer_offloading`."""
    quantizes: bool = True
    """Whether the family's loader knows `model.quantize`."""
    low_vram: bool = True
    """Whether the family's classes read `model.low_vram`."""
    te_first: bool = False
    """Whether the loader reads the (largest) text encoder before the transformer."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One circumstance in which an entry applies: all conditions hold. See docs/knowledge.md for the
    condition language. `rank` orders remedies (lower is earlier); `why` names a text."""

    why: str
    when: tuple[str, ...] = ()
    rank: int = 0
    unknown_ok: bool = False


Operation = Literal[
    "set",
    "halve",
    "drop_largest",
    "next_resolution",
    "scale_side",
    "scale_frames",
    "double",
    "multiply_by_batch_cut",
    "lower_bits",
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
    predict: tuple[str, ...] = ()
    """Phases in which the memory forecast knows what the changes save."""
    saves: str | None = None
    """A fact (MiB) that says what the fix frees at most, where no setting does it."""
    guide: str | None = None
    url: str | None = None
    status: Status = "stable"


class Factor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A circumstance that contributes to a failure; named in the report when its conditions hold."""

    id: str
    source: str
    when: tuple[str, ...]
    weight: int = 0


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What in the job or around it brings a failure about, so that two failures are the same or are not.

    The first entry whose conditions hold counts. `anywhere`: the phase and the place in the program play no part.
    """

    id: str
    source: str
    when: tuple[str, ...]
    anywhere: bool = False


Program = Literal["ai-toolkit", "torch"]
"""Whose version: AI Toolkit's is a date and a commit of its main branch, torch's a release."""


class Dating(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"from_": "from"}):
    """Something in a log that only versions of a certain time print.

    It holds where an event of one of `patterns` came, or (`observed`) where the scan saw a habit; `exception`
    and `contains` narrow it. `from` is the first date or release that can, `until` the first that cannot
    again; the commits are those of AI Toolkit's main branch.
    """

    id: str
    program: Program
    source: str
    patterns: tuple[str, ...] = ()
    observed: Literal["bar_last_step", "bar_completed", "stderr_doubled"] | None = None
    exception: str | None = None
    contains: str | None = None
    from_: str | None = None
    until: str | None = None
    from_commit: str | None = None
    until_commit: str | None = None


class Regression(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"from_": "from"}):
    """Versions that fail where others run the same job: `symptoms` are lists of conditions, one of which must hold."""

    id: str
    program: Program
    symptoms: tuple[tuple[str, ...], ...]
    source: str
    url: str
    from_: str | None = None
    until: str | None = None
    from_commit: str | None = None
    until_commit: str | None = None


class Risk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A combination of settings to treat as risky before a run; `instead_of`: entries that say less of the same."""

    id: str
    when: tuple[str, ...]
    severity: Literal["high", "medium"]
    source: str
    guide: str | None = None
    instead_of: tuple[str, ...] = ()


class FirstTry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The guide's safe first try for the families that `when` tells; `batch_max` is the largest batch of it."""

    id: str
    when: tuple[str, ...]
    source: str
    batch_max: int = 1


class ClassEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One failure class, kind or warning that `explain` can describe."""

    id: str
    what: Literal["class", "kind", "phase", "topic", "warning"]
    source: str


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


DriftKind = Literal["print", "log", "bar", "raise", "arch", "key", "default"]
"""What `patterns drift` lists: printed lines, logger calls, bars, raised messages, archs, config keys, defaults."""


class Watched(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Paths of an AI Toolkit checkout (globs, `*` also over folders) that bear on memory, phase or step."""

    id: str
    paths: tuple[str, ...]
    source: str


class Exclusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a checkout says and the knowledge base leaves out on purpose, with the reason.

    It holds for finds of the kinds `what` in `paths` whose text, with `{…}` for what varies, matches one of
    `strings` from its start, and nothing of `unless` anywhere.
    """

    id: str
    what: tuple[DriftKind, ...]
    reason: str
    paths: tuple[str, ...] = ("*",)
    strings: tuple[str, ...] = ("",)
    unless: tuple[str, ...] = ()


class Knowledge(msgspec.Struct, frozen=True, eq=False):
    """The whole knowledge base, as the pure core receives it.

    It is equal to itself only, so that what was worked out from it can be kept by it (`lru_cache`).
    """

    version: str
    patterns: tuple[Pattern, ...]
    settings: tuple[Setting, ...]
    families: tuple[Family, ...]
    remedies: tuple[Remedy, ...]
    factors: tuple[Factor, ...]
    classes: tuple[ClassEntry, ...]
    redactions: tuple[Redaction, ...]
    memory_models: tuple[MemoryModel, ...]
    memory_encoders: tuple[MemoryEncoder, ...]
    memory_vaes: tuple[MemoryVae, ...]
    memory_rules: tuple[MemoryRule, ...]
    watched: tuple[Watched, ...]
    exclusions: tuple[Exclusion, ...]
    variables: tuple[Variable, ...]
    texts: dict[str, dict[str, str]]
    datings: tuple[Dating, ...] = ()
    regressions: tuple[Regression, ...] = ()
    risks: tuple[Risk, ...] = ()
    first_tries: tuple[FirstTry, ...] = ()
    private_settings: tuple[PrivateSetting, ...] = ()
    kept_words: tuple[KeptWords, ...] = ()
    causes: tuple[Cause, ...] = ()
