"""What of a job bears on memory, read off its effective config: or the reason why no number can be given for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from postmortem.knowledge.memory_schema import MemoryEncoder, MemoryModel, MemoryVae
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Bucket, JobConfig, is_whole

_BITS = re.compile(r"(\d+)")
_PLAIN_DTYPES = ("bf16", "bfloat16", "fp16", "float16")
_FUSED_ATTENTION = ("native", "flash", "sdpa", "sdp")
_MAX_DATASETS = 200
_LARGEST = 1 << 20
"""Sides, frames and batches beyond this are typing errors."""


class Refusal(msgspec.Struct, frozen=True):
    """Why no number is given: an id of a text, and what fills it."""

    id: str
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Batch(msgspec.Struct, frozen=True):
    """The largest batch of one dataset at one resolution: `pixels` of one frame, latent frames counted by the model."""

    size: int
    pixels: int
    frames: int
    controls: int


class Preview(msgspec.Struct, frozen=True):
    """One preview: its size, and whether guidance needs a second prediction."""

    width: int
    height: int
    frames: int
    guided: bool


class Job(msgspec.Struct, frozen=True):
    """A job as far as memory goes."""

    model: MemoryModel
    encoders: tuple[MemoryEncoder, ...]
    vae: MemoryVae | None
    qtype: str
    mode: str
    adapter: bool
    offload: float
    te_qtype: str
    te_offload: float
    te_resident: bool
    low_vram: bool
    checkpointing: bool
    latents_cached: bool
    batches: tuple[Batch, ...]
    previews: tuple[Preview, ...]
    sampling: bool
    rank: int
    optimizer: str
    ema: bool
    accumulates: bool
    preservation: bool
    target_controls: bool
    trained_experts: int


def read(config: JobConfig, arch: str | None, buckets: Sequence[Bucket], knowledge: Knowledge) -> Job | Refusal:
    """The job that `config` describes; `buckets` are the batch shapes that its log lists, which it cannot exceed."""
    if not config.known:
        return Refusal("no_config")
    model = _model(config, arch, knowledge)
    if isinstance(model, Refusal):
        return model
    unusual = _unusual(config, model)
    if unusual is not None:
        return unusual
    qtype = _qtype(config.get("model.quantize"), config.get("model.qtype")) if model.quantizes else "bf16"
    asked = config.get("model.layer_offloading") is True
    # the setting changes the packing of every model, but only some loaders offload
    qtype = "float8" if asked and qtype == "qfloat8" else qtype
    offloads = asked and model.offloads
    if qtype not in model.weights:
        return Refusal("qtype", {"value": qtype})
    batches = tuple(_batches(config, buckets))
    if not batches:
        return Refusal("no_datasets")
    if any(batch.frames == 0 for batch in batches):
        return Refusal("frames")
    if any(batch.controls for batch in batches) and model.control is None:
        return Refusal("controls", {"model": model.title})
    control = model.control
    return Job(
        model=model,
        encoders=tuple(_encoders(knowledge)[name] for name in model.encoders),
        vae=next((vae for vae in knowledge.memory_vaes if vae.id == model.vae), None),
        qtype=qtype,
        mode=_mode(qtype, asked),
        adapter="|" in str(config.get("model.qtype") or "") or bool(config.get("model.accuracy_recovery_adapter")),
        offload=_share(config.get("model.layer_offloading_transformer_percent")) if offloads else 0.0,
        te_qtype=_qtype(config.get("model.quantize_te"), config.get("model.qtype_te")) if model.quantizes else "bf16",
        te_offload=_share(config.get("model.layer_offloading_text_encoder_percent")) if offloads else 0.0,
        te_resident=not (_te_cached(config) or config.get("train.unload_text_encoder")),
        low_vram=config.get("model.low_vram") is True,
        checkpointing=config.get("train.gradient_checkpointing") is not False,
        latents_cached=_latents_cached(config),
        batches=batches,
        previews=tuple(_previews(config)),
        sampling=config.get("train.disable_sampling") is not True,
        rank=_whole(config.get("network.linear")) or 4,
        optimizer=str(config.get("train.optimizer") or "adamw").lower(),
        ema=config.get("train.ema_config.use_ema") is True,
        accumulates=_accumulation(config) > 1,
        preservation=bool(
            config.get("train.diff_output_preservation") or config.get("train.blank_prompt_preservation")
        ),
        trained_experts=_trained_experts(config, model),
        target_controls=bool(control and (control.target or (control.target_if and config.get(control.target_if)))),
    )


@lru_cache(maxsize=2)
def _encoders(knowledge: Knowledge) -> Mapping[str, MemoryEncoder]:
    return {encoder.id: encoder for encoder in knowledge.memory_encoders}


def _model(config: JobConfig, arch: str | None, knowledge: Knowledge) -> MemoryModel | Refusal:
    if arch is None:
        return Refusal("unknown_model")
    return _named(arch, str(config.get("model.name_or_path") or ""), knowledge)


@lru_cache(maxsize=128)
def _named(arch: str, name: str, knowledge: Knowledge) -> MemoryModel | Refusal:
    """The model by its arch and the name of its weights; each fix of a job asks for the same."""
    of_arch = [model for model in knowledge.memory_models if arch in model.arch]
    fitting = [
        model
        for model in of_arch
        if (model.name is None or re.search(model.name, name))
        and (model.not_name is None or not re.search(model.not_name, name))
    ]
    if len(fitting) == 1:
        return fitting[0]
    named = [model for model in fitting if model.name is not None]
    if len(named) == 1:
        return named[0]
    return Refusal("which_size" if of_arch else "not_measured", {"arch": arch})


def _unusual(config: JobConfig, model: MemoryModel) -> Refusal | None:
    """What the figures were not measured for."""
    network = str(config.get("network.type") or "lora").lower()
    given = [config.values.get(path) for path in ("network.linear", "network.type")]
    if all(value is None or value.source == "default" for value in given):
        return Refusal("full_fine_tune")
    if network != "lora":
        return Refusal("network", {"value": network})
    if model.cfg == "batch" and config.get("network.conv"):
        return Refusal("network", {"value": "lora with conv"})
    if config.get("train.train_text_encoder") is True:
        return Refusal("trains_text_encoder")
    if str(config.get("train.dtype") or "fp32").lower() not in _PLAIN_DTYPES:
        return Refusal("dtype", {"value": config.get("train.dtype")})
    if str(config.get("train.attention_backend") or "native").lower() not in _FUSED_ATTENTION:
        return Refusal("attention", {"value": config.get("train.attention_backend")})
    if config.get("model.compile") is True or config.get("model.block_compile") is True:
        return Refusal("compile")
    for path in ("train.do_cfg", "train.do_random_cfg", "train.train_turbo", "model.split_model_over_gpus"):
        if config.get(path) is True:
            return Refusal("setting", {"path": path})
    return None


def _trained_experts(config: JobConfig, model: MemoryModel) -> int:
    names = ("model.model_kwargs.train_high_noise", "model.model_kwargs.train_low_noise")
    left_out = sum(config.get(name) is False for name in names)
    return max(1, model.experts - left_out)


def _batches(config: JobConfig, buckets: Sequence[Bucket]) -> Iterator[Batch]:
    """The largest batch of each dataset and resolution: at most resolution² pixels, and no more than the log lists."""
    doubled = 2 if config.get("train.short_and_long_captions") is True else 1
    train_size = _whole(config.get("train.batch_size")) or 1
    listed = max((bucket.width * bucket.height for bucket in buckets), default=_LARGEST**2)
    longest = max((bucket.frames for bucket in buckets), default=0)
    for index in range(_MAX_DATASETS):
        head = f"datasets[{index}]."
        resolution = config.values.get(head + "resolution")
        if resolution is None:
            return
        sides = resolution.value if isinstance(resolution.value, list) else [resolution.value]
        size = _whole(config.get(head + "batch_size")) or train_size
        frames = _whole(config.get(head + "num_frames")) or 1
        if config.get(head + "auto_frame_count") is True:
            frames = longest  # each clip has its own length: only the log knows
        controls = sum(_count(config.get(head + name)) for name in ("control_path", *_NUMBERED))
        for side in sides:
            whole = _whole(side)
            if whole:
                yield Batch(size * doubled, min(whole * whole, listed), frames, controls)


_NUMBERED = tuple(f"control_path_{number}" for number in (1, 2, 3))


def _previews(config: JobConfig) -> Iterator[Preview]:
    base = [config.get(f"sample.{name}") for name in ("width", "height", "num_frames")]
    guided = _above_one(config.get("sample.guidance_scale"))
    own = False
    for index in config.indexes("sample.samples"):
        per = [config.get(f"sample.samples[{index}].{name}") for name in ("width", "height", "num_frames")]
        if all(value is None for value in per):
            continue
        own = True
        width, height, frames = (_whole(mine) or _whole(common) for mine, common in zip(per, base))
        yield Preview(width or 512, height or 512, frames or 1, guided)
    width, height, frames = (_whole(value) for value in base)
    if not own or width or height:
        yield Preview(width or 512, height or 512, frames or 1, guided)


def _qtype(quantize: Any, qtype: Any) -> str:
    return str(qtype or "qfloat8").split("|")[0].lower() if quantize is True else "bf16"


def _mode(qtype: str, offloads: bool) -> str:
    """How the quantised weights take part in a step; see the head of patterns/memory/models.yaml."""
    if qtype == "bf16":
        return "bf16"
    return "dequant" if offloads or qtype.startswith(("uint", "float")) else "quanto"


def _te_cached(config: JobConfig) -> bool:
    if config.get("train.cache_text_embeddings") is True:
        return True
    values = [
        value.value
        for path, value in config.values.items()
        if path.startswith("datasets[") and path.endswith("].cache_text_embeddings")
    ]
    return bool(values) and all(value is True for value in values)


def _latents_cached(config: JobConfig) -> bool:
    found = [
        bool(config.get(f"datasets[{index}].cache_latents") or config.get(f"datasets[{index}].cache_latents_to_disk"))
        for index in config.indexes("datasets")
        if f"datasets[{index}].resolution" in config.values
    ]
    return bool(found) and all(found)


def _accumulation(config: JobConfig) -> int:
    names = ("train.gradient_accumulation", "train.gradient_accumulation_steps")
    return max((_whole(config.get(name)) or 1 for name in names), default=1)


def _whole(value: Any) -> int | None:
    return value if is_whole(value) and 0 < value <= _LARGEST else None


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else int(bool(value))


def _above_one(value: Any) -> bool:
    return isinstance(value, bool) or not isinstance(value, (int, float)) or value > 1


def _share(value: Any) -> float:
    return min(1.0, max(0.0, float(value))) if isinstance(value, (int, float)) and not isinstance(value, bool) else 1.0
