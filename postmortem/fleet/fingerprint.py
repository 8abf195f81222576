"""What makes two failures the same: the kind, the place in the program, and what in the job brought it about.

Never a number, a path or a name of the user's own: the same failure of many users and versions is one group.
"""

from __future__ import annotations

from hashlib import blake2b

from postmortem.pipeline import Analysis
from postmortem.timeline.frames import innermost_own

SCALED = ("training_step",)
"""Phases where the line at which memory ran out is chance: which tensor of a step was one too many."""
PASSING = ("after_", "late_", "log_", "silent_")


def fingerprint(analysis: Analysis) -> str | None:
    """Sixteen hexadecimal digits; None where nothing failed."""
    parts = parts_of(analysis)
    if parts is None:
        return None
    return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def parts_of(analysis: Analysis) -> tuple[str, ...] | None:
    """What the fingerprint is made of, in order: kind, resource, class, phase, signature or place, causes."""
    diagnosis = analysis.diagnosis
    if diagnosis.kind == "none":
        return None
    memory = diagnosis.kind in ("gpu_oom", "host_oom", "vram_spill")
    place = "" if diagnosis.phase in SCALED and memory else _place(analysis)
    signature = "" if diagnosis.kind == "gpu_oom" else diagnosis.signature or ""
    first = analysis.suggestions[0].id if analysis.suggestions else ""
    return (
        diagnosis.kind,
        diagnosis.resource or "",
        diagnosis.class_ or "",
        diagnosis.phase,
        signature,
        place,
        first if memory else "",
    )


def _place(analysis: Analysis) -> str:
    """The innermost function of the program's own: its file's name and its own, no line."""
    traceback = analysis.attempt.end.traceback
    frame = innermost_own(traceback) if traceback is not None else None
    if frame is None:
        return ""
    file = frame.path.reveal().replace("\\", "/").rsplit("/", 1)[-1]
    return f"{file}:{frame.function}"
