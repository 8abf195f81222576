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
    offloads: bool = False
    """Whether the family's loader knows `model.layer_offloading`."""
    quantizes: bool = True
    """Whether the family's loader knows `model.quantize`."""


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


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one transformer token covers: `side_px` squared, and `frames` frames. `text`: text tokens of a sample."""

    side_px: int
    frames: int = 1
    text: tuple[int, int, int] = (0, 0, 0)


class Control(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one control image adds: a fixed number of tokens, or as many as the target has."""

    tokens: int = 0
    target: bool = False
    target_if: str | None = None


class Activations(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Peak of one training step by tokens; see the head of patterns/memory/models.yaml."""

    checkpointing: bool
    mode: Literal["bf16", "quanto", "dequant"]
    a_kib: float
    c_mib: float
    basis: Literal["measured", "derived"]
    squared_b: float = 0.0
    second: tuple[float, float] | None = None
    stored_kib: float | None = None
    stored_mib: float = 0.0
    forward_kib: float | None = None


class LoadStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What lies on the card in one phase of loading, and what with `model.low_vram`."""

    phase: str
    holds: tuple[Literal["transformer_bf16", "transformer", "encoders_bf16"], ...]
    low_vram: tuple[Literal["transformer_bf16", "transformer", "encoders_bf16"], ...]


class MemoryModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The memory of one model: weights, LoRA, activations. GiB where not said otherwise."""

    id: str
    title: str
    arch: tuple[str, ...]
    token: Token
    weights: dict[str, float]
    lora_params_per_rank: int
    encoders: tuple[str, ...]
    activations: tuple[Activations, ...]
    source: str
    name: str | None = None
    not_name: str | None = None
    quantizes: bool = True
    offloads: bool = False
    experts: int = 1
    vae: str | None = None
    cfg: Literal["batch", "passes"] | None = None
    control: Control | None = None
    mask_b: float = 0.0
    load: tuple[LoadStep, ...] = ()


class MemoryEncoder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text encoder's weights."""

    id: str
    params: int
    bf16_gib: float
    qfloat8_gib: float
    source: str


class VaePeak(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Working memory of a VAE at one size."""

    width: int
    height: int
    frames: int
    decode_gib: float
    encode_gib: float


class MemoryVae(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A VAE's weights and working memory."""

    id: str
    weights_gib: float
    peaks: tuple[VaePeak, ...]
    source: str


class MemoryRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A number that holds for every model, as a range; the unit stands in the id."""

    id: str
    low: float
    likely: float
    high: float
    basis: Literal["measured", "counted", "assumed"]
    source: str


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
    memory_models: tuple[MemoryModel, ...]
    memory_encoders: tuple[MemoryEncoder, ...]
    memory_vaes: tuple[MemoryVae, ...]
    memory_rules: tuple[MemoryRule, ...]
    texts: dict[str, dict[str, str]]
