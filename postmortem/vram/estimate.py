"""What a job needs on the card in one phase, part by part, as ranges. All sizes in MiB.

The figures and how they were found stand in patterns/memory/; nothing here is a constant of the field.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from postmortem.knowledge.memory_schema import Activations, LoadStep, MemoryEncoder, MemoryRule, VaePeak
from postmortem.knowledge.schema import Knowledge
from postmortem.vram.job import Batch, Job, Preview, Refusal

GIB = 1024.0
KIB = 1.0 / 1024.0
BYTE = 1.0 / 1024.0 / 1024.0
TRAINING = ("training_step",)
SAMPLING = ("baseline_sampling", "mid_sampling")


class Part(msgspec.Struct, frozen=True):
    """One thing that lies on the card: lowest, likely and highest size in MiB, and what the figure stands on."""

    id: str
    low: float
    likely: float
    high: float
    basis: str


class Rules:
    """The numbers that hold for every model, by id."""

    def __init__(self, rules: Iterable[MemoryRule]) -> None:
        self._by_id: Mapping[str, MemoryRule] = {rule.id: rule for rule in rules}

    def __getitem__(self, name: str) -> MemoryRule:
        return self._by_id[name]

    def optimizer(self, name: str) -> MemoryRule:
        """Bytes of state a parameter, by the optimiser's name in the config."""
        return self._by_id.get(f"optimizer.{name}_b") or self._by_id["optimizer.other_b"]


@lru_cache(maxsize=2)
def rules_of(knowledge: Knowledge) -> Rules:
    """The rules of a knowledge base."""
    return Rules(knowledge.memory_rules)


def parts(job: Job, phase: str, knowledge: Knowledge) -> tuple[Part, ...] | Refusal:
    """What lies on the card at the peak of `phase`, or why that is not known."""
    rules = rules_of(knowledge)
    if phase in TRAINING:
        return (*_resident(job, rules), _activations(job, rules))
    if phase in SAMPLING:
        preview = _preview(job, rules)
        return preview if isinstance(preview, Refusal) else (*_resident(job, rules), *preview)
    if phase == "cache_latents":
        return _encoding(job, rules)
    for step in job.model.load:
        if step.phase == phase:
            return _loading(job, step, rules)
    return Refusal("phase", {"phase": phase})


def _scaled(name: str, size_mib: float, rule: MemoryRule, basis: str) -> Part:
    return Part(name, size_mib * rule.low, size_mib * rule.likely, size_mib * rule.high, basis)


def _resident(job: Job, rules: Rules) -> list[Part]:
    """Everything that stays on the card between steps."""
    found = [_weights(job, rules)]
    if job.te_resident:
        found.append(_encoders(job.encoders, job.te_qtype, rules, job.te_offload))
    if job.vae is not None and not job.latents_cached:
        found.append(_scaled("vae", job.vae.weights_gib * GIB, rules["weights_share"], "counted"))
    params = job.model.lora_params_per_rank * job.rank * job.trained_experts * BYTE
    each = [rules["lora_weight_b"], rules.optimizer(job.optimizer)]
    each += [rules["ema_b"]] if job.ema else []
    each += [rules["lora_gradient_b"]] if job.accumulates else []
    found.append(
        Part(
            "lora",
            params * math.fsum(rule.low for rule in each),
            params * math.fsum(rule.likely for rule in each),
            params * math.fsum(rule.high for rule in each),
            "counted",
        )
    )
    return found


def _weights(job: Job, rules: Rules) -> Part:
    experts = 1 if job.low_vram else job.model.experts
    whole = job.model.weights[job.qtype] * GIB * experts
    adapter = rules["weights_adapter_share"]
    packed = rules["weights_uint_share" if job.qtype.startswith("uint") else "weights_share"]
    found = _scaled("weights", whole, adapter if job.adapter else packed, "counted")
    if not job.offload:
        return found
    spread, staged = rules["offload_spread_share"], rules["offload_staged_gib"]
    left = whole * (1 - job.offload)
    return Part(
        "weights",
        min(found.low, left * spread.low + staged.low * GIB),
        min(found.likely, left * spread.likely + staged.likely * GIB),
        min(found.high, left * spread.high + staged.high * GIB),
        "assumed",
    )


def _encoders(encoders: Iterable[MemoryEncoder], qtype: str, rules: Rules, offload: float) -> Part:
    low = likely = high = 0.0
    for encoder in encoders:
        share = rules["weights_share"]
        if qtype == "bf16":
            small = large = encoder.bf16_gib
        elif qtype in ("qfloat8", "float8"):
            small = large = encoder.qfloat8_gib
        else:
            # packed tighter than eight bits, by how much was not counted
            small, large = encoder.qfloat8_gib / 2, encoder.qfloat8_gib
        low += small * share.low
        likely += (small + large) / 2
        high += large * share.high
    kept = (1 - offload) * GIB
    staged = rules["offload_staged_gib"].high * GIB if offload else 0.0
    basis = "assumed" if offload else "counted"
    return Part("text_encoder", low * kept, likely * kept, high * kept + staged, basis)


def tokens(job: Job, batch: Batch, text: int) -> float:
    """Transformer tokens of one sample of `batch`, its control images included."""
    token = job.model.token
    image = batch.pixels / (token.side_px * token.side_px) * ((batch.frames - 1) // token.frames + 1)
    control = job.model.control
    per_control = (image if job.target_controls else float(control.tokens)) if control else 0.0
    return image + text + batch.controls * per_control


def _fit(job: Job, checkpointing: bool) -> Activations:
    fits = [fit for fit in job.model.activations if fit.checkpointing is checkpointing]
    return next((fit for fit in fits if fit.mode == job.mode), fits[0])


def _activations(job: Job, rules: Rules) -> Part:
    """The largest batch decides. Peaks of one step: forward, loss, backward."""
    fit = _fit(job, job.checkpointing)
    best = max((_step(job, fit, batch) for batch in job.batches), key=lambda sizes: sizes[1])
    share = rules["activations_checkpointed_share" if job.checkpointing else "activations_kept_share"]
    derived = rules["activations_derived_share"]
    low, likely, high = best[0] * share.low, best[1], best[2] * share.high
    if fit.basis == "derived":
        low, high = low * derived.low, high * derived.high
    if job.checkpointing:
        least = rules["activations_checkpointed_gib"]
        low, high = min(low, max(0.0, likely + least.low * GIB)), max(high, likely + least.high * GIB)
    return Part("activations", low, likely, high, fit.basis)


def _step(job: Job, fit: Activations, batch: Batch) -> tuple[float, float, float]:
    low, likely, high = (_peak(job, fit, batch, text) for text in job.model.token.text)
    return low, likely, high


def _peak(job: Job, fit: Activations, batch: Batch, text: int) -> float:
    sample = tokens(job, batch, text)
    count = sample * batch.size
    square = sample * sample * batch.size * BYTE
    peak = count * fit.a_kib * KIB + fit.c_mib + fit.squared_b * square
    if fit.second:
        peak = max(peak, count * fit.second[0] * KIB + fit.second[1])
    stored = count * (fit.stored_kib if fit.stored_kib is not None else fit.a_kib) * KIB + fit.stored_mib
    peak = max(peak, job.model.mask_b * square + stored) if job.model.mask_b else peak
    # a prediction to preserve has a graph of its own, alive until the one backward pass
    return peak + stored if job.preservation else peak


def _preview(job: Job, rules: Rules) -> list[Part] | Refusal:
    if job.vae is None:
        return Refusal("vae", {"model": job.model.title})
    vae = job.vae
    working = [_preview_peak(job, vae.peaks, preview, rules) for preview in job.previews]
    found = [Part("preview", *max(working, key=lambda sizes: sizes[1]), "assumed")]
    if job.latents_cached:
        found.append(_scaled("vae", job.vae.weights_gib * GIB, rules["weights_share"], "counted"))
    return found


def _preview_peak(job: Job, peaks: Sequence[VaePeak], preview: Preview, rules: Rules) -> tuple[float, float, float]:
    """Denoising and decoding follow each other: the larger counts."""
    together = 2 if preview.guided and job.model.cfg == "batch" else 1
    size = Batch(together, preview.width * preview.height, preview.frames, 0)
    forward = _fit(job, True).forward_kib or 0.0
    denoise = tokens(job, size, job.model.token.text[1]) * size.size * forward * KIB
    decode = vae_peak_gib(peaks, size.pixels, preview.frames, "decode_gib") * GIB
    share = rules["preview_decode_share"]
    return max(denoise, decode * share.low), max(denoise, decode * share.likely), max(denoise, decode * share.high)


def vae_peak_gib(peaks: Sequence[VaePeak], pixels: int, frames: int, which: str) -> float:
    """Working memory at a size, GiB: what was measured a pixel, at the next larger number of frames that was."""
    longest = max(peak.frames for peak in peaks)
    length = min((peak.frames for peak in peaks if peak.frames >= frames), default=longest)
    per_pixel = (getattr(peak, which) / (peak.width * peak.height) for peak in peaks if peak.frames == length)
    return float(max(per_pixel)) * pixels


def _encoding(job: Job, rules: Rules) -> tuple[Part, ...] | Refusal:
    """Latents are cached one file at a time, with the transformer and the text encoder off the card."""
    if job.vae is None:
        return Refusal("vae", {"model": job.model.title})
    vae = job.vae
    peak = max(vae_peak_gib(vae.peaks, batch.pixels, batch.frames, "encode_gib") for batch in job.batches) * GIB
    share = rules["preview_decode_share"]
    return (
        _scaled("vae", vae.weights_gib * GIB, rules["weights_share"], "counted"),
        _scaled("encode", peak, share, "assumed"),
    )


def _loading(job: Job, step: LoadStep, rules: Rules) -> tuple[Part, ...] | Refusal:
    holds = step.low_vram if job.low_vram else step.holds
    if not holds or job.offload:
        return Refusal("phase", {"phase": step.phase})
    share = rules["load_share"]
    found: list[Part] = []
    for held in holds:
        if held == "encoders_bf16":
            size = max(encoder.bf16_gib for encoder in job.encoders) * GIB
            found.append(_scaled("text_encoder", size, share, "counted"))
        else:
            size = job.model.weights["bf16" if held == "transformer_bf16" else job.qtype] * GIB
            found.append(_scaled("weights", size, share, "counted"))
    return tuple(found)
