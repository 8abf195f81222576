"""Everything that conditions may ask about, worked out once from the attempt, the config and the sizes.

Paths, besides every setting's effective value (`train.batch_size`, `model.low_vram`, …):

- `failure.kind|resource|phase|class|signature|step`, `failure.call` (the code line of the innermost own frame),
  `failure.inner_call` (that of the innermost frame of all), `failure.functions` (those of all frames, in one text)
- `run.trainer|family|arch|risk|outcome|media|edit|offloads|quantizes|low_vram|te_first|parked|last_event|
  quantizing_seen|backend|unified|good_steps|resumed|skips|after_preview|baseline_done|
  preview_unplaced|last_preview|finished|
  oom_caught_era|device_full_elsewhere|config_known|train_era|on_windows|on_wsl|on_linux|on_container|
  on_kubernetes|on_slurm|on_macos|can_spill` (see platform.py)
- `memory.*` (MiB, the contract's names) and `memory.other_share|allocated_share|own_share|unaccounted`,
  `memory.spilled` (allocated exceeds the card), `memory.fragmented` (the request would fit into what is
  reserved but unallocated), `memory.had_room` (the request was small against what was free), `memory.request_share`,
  `memory.request_b_per_preview_px|request_b_per_bucket_px`
- `job.batch_size|max_resolution|min_resolution|resolutions|shapes|num_frames|video|sample_frames|preview_side|
  preview_pixels|samples|max_pixels|controls|controls_each|auto_frames|latents_on_disk|workers|prefetch|preservation|te_cached|te_resident|rank|
  optimizer_8bit|quantized|quant_bits|te_quantized|offload|regularisation`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from postmortem.knowledge.schema import Family, Knowledge
from postmortem.model import Bucket, JobConfig, Stage, is_whole

_BITS = re.compile(r"(\d+)")
_ROOM_MIB = 2048
"""Free beyond the request: more than an allocator rounds up, or a neighbour gives back between failure and message."""
_CONTROLS = ("control_path", "control_path_1", "control_path_2", "control_path_3")


def family_of(config: JobConfig, stages: Sequence[Stage], knowledge: Knowledge) -> tuple[Family | None, str | None]:
    """The model family and the arch name: by `model.arch`, by an old `is_…` flag, else by what the load printed."""
    arch = config.get("model.arch")
    if isinstance(arch, str) and arch:
        return next((f for f in knowledge.families if arch in f.arch), None), arch
    for family in knowledge.families:
        if any(config.get(f"model.{flag}") is True for flag in family.flags):
            return family, family.arch[0]
    texts = [stage.text.reveal() for stage in stages if stage.event in ("load_model", "status")]
    for family in knowledge.families:
        if family.marker and any(re.search(family.marker, text) for text in texts):
            return family, None
    return None, None


def family_facts(family: Family | None, arch: str | None) -> dict[str, Any]:
    """`run.*` of the model."""
    return {
        "run.family": family.id if family else None,
        "run.arch": arch,
        "run.risk": family.risk if family else None,
        "run.media": family.media if family else None,
        "run.edit": family.edit if family else None,
        "run.offloads": family.offloads if family else None,
        "run.quantizes": family.quantizes if family else True,
        "run.low_vram": family.low_vram if family else True,
        "run.te_first": family.te_first if family else False,
    }


def job_facts(config: JobConfig, buckets: Sequence[Bucket], family: Family | None) -> dict[str, Any]:
    """`job.*`: what the settings amount to over all datasets and samples; nothing where no config is known."""
    facts: dict[str, Any] = {}
    shapes = {bucket.label for bucket in buckets}
    frames = list(_all(config, "datasets", "num_frames"))
    frames.extend(bucket.frames for bucket in buckets)
    given = [config.values.get(path) for path in ("network.linear", "network.type")]
    facts["job.full_fine_tune"] = config.known and all(one is None or one.source == "default" for one in given)
    if not config.known:
        facts["job.shapes"] = len(shapes) or None
        facts["job.video"] = bool(family and family.media == "video") or any(frame > 1 for frame in frames) or None
        facts["job.num_frames"] = max(frames, default=None)
        return facts
    facts["job.block_batches"] = block_batches(config, max((bucket.block for bucket in buckets), default=0))
    facts["job.regularisation"] = any(value is True for value in _all(config, "datasets", "is_reg"))
    resolutions = sorted({side for sides in _all(config, "datasets", "resolution") for side in _ints(sides)})
    batches = [size for size in _all(config, "datasets", "batch_size") if is_whole(size)]
    batch = config.get("train.batch_size")
    facts["job.batch_size"] = max([*batches, *([batch] if is_whole(batch) else [])], default=None)
    facts["job.max_resolution"] = resolutions[-1] if resolutions else None
    facts["job.min_resolution"] = resolutions[0] if resolutions else None
    facts["job.resolutions"] = len(resolutions) or None
    facts["job.shapes"] = len(shapes) or (len(resolutions) if len(resolutions) > 1 else None)
    if not shapes and len(resolutions) == 1:
        buckets_on = any(value is not False for value in _all(config, "datasets", "buckets"))
        facts["job.shapes"] = None if buckets_on else 1
    facts["job.num_frames"] = max((frame for frame in frames if is_whole(frame)), default=None)
    facts["job.video"] = (facts["job.num_frames"] or 1) > 1 or bool(family and family.media == "video" and not frames)
    facts.update(_preview_facts(config))
    facts["job.controls"] = sum(
        1
        for key in config.values
        if "control_path" in key and re.fullmatch(r"datasets\[\d+\]\.control_path(_\d)?", key) and config.get(key)
    )
    facts["job.controls_each"] = max(
        (
            sum(_count(config.get(f"datasets[{index}].{name}")) for name in _CONTROLS)
            for index in config.indexes("datasets")
        ),
        default=0,
    )
    facts["job.auto_frames"] = any(value is True for value in _all(config, "datasets", "auto_frame_count"))
    on_disk = list(_all(config, "datasets", "cache_latents_to_disk"))
    in_memory = list(_all(config, "datasets", "cache_latents"))
    facts["job.latents_on_disk"] = bool(on_disk) and all(value is True for value in on_disk)
    facts["job.latents_cached"] = facts["job.latents_on_disk"] or (
        bool(in_memory) and all(value is True for value in in_memory)
    )
    facts["job.workers"] = max((n for n in _all(config, "datasets", "num_workers") if is_whole(n)), default=None)
    facts["job.prefetch"] = max((n for n in _all(config, "datasets", "prefetch_factor") if is_whole(n)), default=None)
    facts["job.preservation"] = bool(
        config.get("train.diff_output_preservation") or config.get("train.blank_prompt_preservation")
    )
    te_cached = config.get("train.cache_text_embeddings") or any(_all(config, "datasets", "cache_text_embeddings"))
    facts["job.te_cached"] = bool(te_cached)
    facts["job.te_resident"] = not (te_cached or config.get("train.unload_text_encoder"))
    rank = config.get("network.linear")
    facts["job.rank"] = rank if is_whole(rank) else None
    optimizer = config.get("train.optimizer")
    facts["job.optimizer_8bit"] = bool(
        isinstance(optimizer, str) and ("8" in optimizer or optimizer.lower() in ("adafactor", "automagic"))
    )
    facts["job.quantized"] = bool(config.get("model.quantize"))
    bits = _BITS.search(str(config.get("model.qtype") or "").split("|")[0])
    facts["job.quant_bits"] = int(bits[1]) if bits and facts["job.quantized"] else None
    facts["job.te_quantized"] = bool(config.get("model.quantize_te"))
    facts["job.offload"] = bool(config.get("model.layer_offloading"))
    return facts


def block_batches(config: JobConfig, blocks: int) -> tuple[int, ...] | None:
    """The batch size of each printed bucket table, in order: a dataset has one table per resolution."""
    usual = config.get("train.batch_size")
    sizes: list[int] = []
    for index in config.indexes("datasets"):
        sides = config.values.get(f"datasets[{index}].resolution")
        if sides is None:
            return None
        own = config.get(f"datasets[{index}].batch_size")
        size = own if is_whole(own) and own > 0 else usual if is_whole(usual) else 1
        sizes.extend([size] * (len(_ints(sides.value)) or 1))
    return tuple(sizes) if sizes and len(sizes) == blocks else None


def _preview_facts(config: JobConfig) -> dict[str, Any]:
    width, height, frames = (config.get(f"sample.{name}") for name in ("width", "height", "num_frames"))
    sizes = [(width, height, frames)]
    for index in config.indexes("sample.samples"):
        per = [config.get(f"sample.samples[{index}].{name}") for name in ("width", "height", "num_frames")]
        if any(value is not None for value in per):
            sizes.append((per[0] or width, per[1] or height, per[2] or frames))
    sides = [side for size in sizes for side in size[:2] if is_whole(side)]
    largest = max((side for value in _all(config, "datasets", "resolution") for side in _ints(value)), default=None)
    return {
        "job.samples": config.get("train.disable_sampling") is not True
        and bool(config.get("sample.samples") or config.get("sample.prompts")),
        "job.max_pixels": largest * largest if largest else None,
        "job.preview_side": max(sides, default=None),
        "job.preview_pixels": max(
            (w * h for w, h, _ in sizes if is_whole(w) and is_whole(h) and w > 0 < h), default=None
        ),
        "job.sample_frames": max((f for _, _, f in sizes if is_whole(f)), default=None),
    }


def memory_facts(memory: Mapping[str, float | None]) -> dict[str, Any]:
    """`memory.*` with the shares and verdicts that conditions need."""
    facts: dict[str, Any] = {f"memory.{key}": value for key, value in memory.items()}
    total = memory.get("gpu_total")
    allocated = memory.get("pytorch_allocated")
    other = memory.get("other_processes")
    reserved = memory.get("reserved_unallocated")
    tried = memory.get("tried_to_allocate")
    own = memory.get("process_in_use")
    if total:
        if other is not None:
            facts["memory.other_share"] = other / total
        if allocated is not None:
            facts["memory.allocated_share"] = allocated / total
            facts["memory.spilled"] = allocated > total
        if own is not None:
            facts["memory.own_share"] = own / total
    if reserved is not None and tried is not None:
        spilled = total is not None and allocated is not None and allocated > total
        facts["memory.fragmented"] = reserved >= tried and reserved >= 512 and not spilled
    free = memory.get("free")
    facts["memory.had_room"] = free is not None and tried is not None and free >= tried + _ROOM_MIB
    if total and free is not None and allocated is not None and reserved is not None and allocated <= total:
        held = own if own is not None else allocated + reserved
        facts["memory.unaccounted"] = max(0.0, total - free - held - (other or 0.0))
        facts["memory.unaccounted_share"] = facts["memory.unaccounted"] / total
    return facts


def request_facts(memory: Mapping[str, float | None], job: Mapping[str, Any]) -> dict[str, Any]:
    """`memory.request_*`: the failed request as a share of the card, and its bytes a pixel of preview or bucket.

    Some operators ask for a fixed number of bytes a pixel: the size alone names them.
    """
    tried, total = memory.get("tried_to_allocate"), memory.get("gpu_total")
    if tried is None:
        return {}
    facts: dict[str, Any] = {"memory.request_share": tried / total if total else None}
    preview, side = job.get("job.preview_pixels"), job.get("job.max_resolution")
    if preview:
        facts["memory.request_b_per_preview_px"] = tried * 1048576 / preview
    if side:
        facts["memory.request_b_per_bucket_px"] = tried * 1048576 / (side * side)
    return facts


def setting_facts(config: JobConfig) -> dict[str, Any]:
    """The effective value of every setting that is not per dataset or sample."""
    return {path: value.value for path, value in config.values.items() if "[" not in path}


def _all(config: JobConfig, head: str, name: str) -> Iterator[Any]:
    """The values of a setting of the list `head`, of each of its elements that has one."""
    values = (config.get(f"{head}[{index}].{name}") for index in config.indexes(head))
    return (value for value in values if value is not None)


def _count(value: Any) -> int:
    """How many folders a control path names: one, or a list of them."""
    return len(value) if isinstance(value, list) else int(bool(value))


def _ints(value: Any) -> list[int]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if is_whole(item) and item > 0]
