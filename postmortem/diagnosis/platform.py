"""Where a run ran, by what its log shows: whose paths, whose codes. Possible causes and checks hang on it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from postmortem.knowledge.expressions import expression
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Attempt, JobConfig

PLACES = ("windows", "wsl", "linux", "container", "kubernetes", "slurm", "macos")
MAX_TEXTS = 600
MAX_CHARACTERS = 300
_PATHS = ("path", "folder", "name_or_path", "_dir")


def platform_facts(attempt: Attempt, config: JobConfig, knowledge: Knowledge) -> dict[str, Any]:
    """`run.on_windows`, `run.on_linux` …: true where the log shows it, unknown where it shows nothing at all;
    `run.can_spill`: whether the driver there pages VRAM to RAM in place of an OOM."""
    found: set[str] = set()
    for text in dict.fromkeys(islice(_texts(attempt, config), MAX_TEXTS)):
        found |= _shown_by(text, knowledge)
    if found & {"container", "kubernetes", "slurm"} and "windows" not in found:
        found.add("linux")
    facts: dict[str, Any] = {f"run.on_{place}": (place in found) if found else None for place in PLACES}
    spilled = any(_overdrawn(oom.sizes_mib) for oom in attempt.ooms)
    if spilled or found & {"windows", "wsl"}:
        facts["run.can_spill"] = True
    elif found & {"linux", "macos"}:
        facts["run.can_spill"] = False
    return facts


@lru_cache(maxsize=2)
def _entries(knowledge: Knowledge) -> list[tuple[Any, str]]:
    found = [(item.regex, item.sets.reason) for item in knowledge.patterns if item.role == "platform"]
    return [(expression(regex), reason) for regex, reason in found if reason]


@lru_cache(maxsize=4096)
def _shown_by(text: str, knowledge: Knowledge) -> frozenset[str]:
    """The places that `text` shows; many runs say the same."""
    return frozenset(reason for regex, reason in _entries(knowledge) if regex.search(text))


def _overdrawn(sizes: Any) -> bool:
    allocated, total = sizes.get("pytorch_allocated"), sizes.get("gpu_total")
    return allocated is not None and total is not None and allocated > total


def _texts(attempt: Attempt, config: JobConfig) -> Iterator[str]:
    """Paths of the config, frames, and lines that were recognised; no prompt, no caption, no job name."""
    yield attempt.last_text.reveal()[:MAX_CHARACTERS]
    end = attempt.end
    if end.event is not None:
        yield end.event.text.reveal()[:MAX_CHARACTERS]
    if end.traceback is not None:
        for frame in end.traceback.frames[:20]:
            yield frame.path.reveal()[:MAX_CHARACTERS]
    for key, value in config.values.items():
        if isinstance(value.value, str) and key.endswith(_PATHS):
            yield value.value[:MAX_CHARACTERS]
    if attempt.dump is not None and attempt.dump.value is not None:
        yield from _paths(attempt.dump.value, 0)
    for event in (*attempt.errors[-5:], *attempt.notes[-5:]):
        yield event.text.reveal()[:MAX_CHARACTERS]
    for bucket in attempt.buckets[:20]:
        yield bucket.dataset.reveal()[:MAX_CHARACTERS]
    for stage in attempt.stages[-100:]:
        if stage.event not in ("job_banner", "bar_main"):
            yield stage.text.reveal()[:MAX_CHARACTERS]


def _paths(value: Any, depth: int) -> Iterator[str]:
    """Strings of the dump (mappings and lists) whose key speaks of a path."""
    if depth > 6:
        return
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, str) and isinstance(key, str) and key.endswith(_PATHS):
            yield item[:MAX_CHARACTERS]
        elif isinstance(item, (dict, list)):
            yield from _paths(item, depth + 1)
