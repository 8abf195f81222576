"""The shapes of `patterns/memory/`: sizes of models, encoders and VAEs, and the numbers that hold for all."""

# No `from __future__ import annotations`: msgspec would have to evaluate each annotation's text at every start.
from typing import Literal

import msgspec


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
