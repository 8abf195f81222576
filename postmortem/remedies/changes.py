"""A remedy's edits, worked out on the effective config: from which value to which, at which path of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from postmortem.knowledge.schema import Change
from postmortem.model import ConfigChange, JobConfig, is_whole

_SMALLER = 0.71
"""Half the pixels of a preview: a smaller step would be a wasted run."""
_BITS = re.compile(r"(\d+)")


def work_out(changes: tuple[Change, ...], config: JobConfig) -> tuple[ConfigChange, ...]:
    """The edits that change something in `config`; none where no config is known."""
    found: list[ConfigChange] = []
    for change in changes:
        limit = _limit(change, config)
        for path in _paths(change.path, config):
            value = config.values.get(path)
            if change.given_only and (value is None or value.source == "default"):
                continue
            before = value.value if value else None
            after = _after(change, before, config, path)
            if limit is not None:
                # one that is no larger than what the largest comes down to sets no peak
                after = limit if is_whole(before) and before > limit else None
            if after is not None and after != before:
                found.append(ConfigChange(path, before, after))
    return tuple(found)


def _limit(change: Change, config: JobConfig) -> int | None:
    """What the largest of several datasets comes down to, where an edit lowers them by a number each."""
    if change.op not in ("halve", "scale_frames") or not change.path.startswith("datasets[]"):
        return None
    values = [config.values[path].value for path in _paths(change.path, config)]
    numbers = [value for value in values if is_whole(value)]
    return _after(change, max(numbers), config) if numbers else None


def _paths(pattern: str, config: JobConfig) -> Iterator[str]:
    if "[]" not in pattern:
        if config.known:
            yield pattern
        return
    opening = pattern.split("[]", 1)[0] + "["
    shape = _shape(pattern)
    yield from (path for path in config.values if path.startswith(opening) and shape.fullmatch(path))


@lru_cache(maxsize=256)
def _shape(pattern: str) -> re.Pattern[str]:
    head, tail = pattern.split("[]", 1)
    return re.compile(re.escape(head) + r"\[\d+\]" + re.escape(tail))


def _after(change: Change, before: Any, config: JobConfig, path: str = "") -> Any:
    """The new value of `path`, or None when the operation does not apply to the old one."""
    if change.op == "set":
        return change.set if before != change.set and not (before is None and change.set is False) else None
    if change.op == "drop_largest":
        return _without_largest(before, config)
    if change.op == "next_resolution":
        return _next_resolution(before, config)
    if change.op == "lower_bits":
        return _lower_bits(before)
    if change.op == "multiply_by_batch_cut":
        batch = config.get("train.batch_size")
        if not is_whole(batch) or batch < 2:
            return None
        return accumulated(before, batch // (batch // 2))
    if isinstance(before, bool) or not isinstance(before, (int, float)):
        return None
    if change.op == "halve":
        after = max(change.floor, int(before) // 2)
    elif change.op == "double":
        after = int(before) * 2
    elif change.op == "scale_side":
        factor = _preview_factor(config)
        if _pixels(path, config) <= factor * factor * _most_pixels(config):
            return None  # one that is no larger than what the largest comes down to sets no peak
        after = max(256, int(before * factor) // 64 * 64)
    elif change.path.startswith("sample.") and 1 <= (trained := _longest_clip(config)) < before:
        after = (trained - 1) // 4 * 4 + 1
    else:
        # 8n+1 suits LTX (8n+1) and Wan (4n+1) alike
        after = max(1, (int(before) - 1) // 16 * 8 + 1)
    return after if after < before or change.op == "double" else None


def accumulated(before: Any, cut: int) -> int | None:
    """How many batches a step has to take once each is `cut` times smaller; None where `before` is no number."""
    if before is not None and not is_whole(before):
        return None
    return max(1, before or 1) * cut


def _preview_factor(config: JobConfig) -> float:
    """Down to the largest training resolution, and at least to half the pixels."""
    sides = [value for _, value in _numbers(config, "sample.", r"sample\.(?:samples\[\d+\]\.)?(?:width|height)")]
    trained = _largest_resolution(config)
    return min(_SMALLER, trained / max(sides)) if sides and trained else _SMALLER


_USUAL = (256, 512, 768, 1024, 1280, 1536, 2048)
"""Resolutions that the form offers, and those beside them that people train at."""


def _next_resolution(before: Any, config: JobConfig) -> Any:
    """The next smaller usual resolution in place of the job's only one. A number stays a number, a list a list."""
    used = _resolutions(config)
    smaller = [side for side in _USUAL if used and side < used[-1]]
    if len(used) != 1 or not smaller or before not in (used[-1], used):
        return None
    return [smaller[-1]] if isinstance(before, list) else smaller[-1]


_SIDE = re.compile(r"sample\.(?:samples\[\d+\]\.)?(?:width|height)")


def _pixels(path: str, config: JobConfig) -> int:
    """The pixels of the preview whose width or height `path` is; a side that it does not give is the general one."""
    of = path.rpartition(".")[0]
    sides = [config.get(f"{of}.{name}") or config.get(f"sample.{name}") for name in ("width", "height")]
    known = [side for side in sides if is_whole(side)]
    return known[0] * known[-1] if known else 0


def _most_pixels(config: JobConfig) -> int:
    return max((_pixels(path, config) for path in config.values if _SIDE.fullmatch(path)), default=0)


def _without_largest(before: Any, config: JobConfig) -> Any:
    """`before` without the job's largest resolution; a dataset that has no other one takes the next smaller in use.

    Datasets that do not have it set no peak and stay as they are. A number stays a number, a list a list.
    """
    used = _resolutions(config)
    sides = before if isinstance(before, list) else [before]
    if len(used) < 2 or used[-1] not in sides:
        return None
    rest = [side for side in sides if side != used[-1]] or [used[-2]]
    return rest if isinstance(before, list) else rest[0]


def _largest_resolution(config: JobConfig) -> int:
    return max(_resolutions(config), default=0)


def _resolutions(config: JobConfig) -> list[int]:
    """All resolutions of all datasets, smallest first."""
    found = [config.get(f"datasets[{index}].resolution") for index in config.indexes("datasets")]
    sides = {side for value in found for side in (value if isinstance(value, list) else [value])}
    return sorted(side for side in sides if is_whole(side))


def _longest_clip(config: JobConfig) -> int:
    return max((value for _, value in _numbers(config, "datasets[", r"datasets\[\d+\]\.num_frames")), default=0)


def _numbers(config: JobConfig, opening: str, pattern: str) -> Iterator[tuple[str, int]]:
    for path, value in config.values.items():
        if path.startswith(opening) and re.fullmatch(pattern, path) and is_whole(value.value):
            yield path, value.value


def _lower_bits(before: Any) -> str | None:
    """The next smaller type that AI Toolkit knows with an adapter; what is at three bits or less stays."""
    found = _BITS.search(str(before).split("|")[0])
    bits = int(found[1]) if found else 0
    return "uint4" if bits > 4 else "uint3" if bits > 3 else None
