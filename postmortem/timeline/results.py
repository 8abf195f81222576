"""What of a run is not lost: the checkpoints in its folder, if that was read, else those that the log tells of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from postmortem.model import Attempt, Checkpoint, FolderWitness, JobConfig, Kept, Notice, is_whole
from postmortem.text import LogText

_ADAPTER = "_LoRA"
"""What AI Toolkit puts behind the job's name when it trains an adapter beside something else."""
_SAMPLING = ("baseline_sampling", "mid_sampling")
_SUFFIX = ".safetensors"
MAX_TORN = 3


def kept(
    attempt: Attempt, folder: FolderWitness | None, config: JobConfig, phase: str
) -> tuple[Kept, tuple[Notice, ...]]:
    """What a resume can start from, and what of the folder a reader should know. `phase`: where the run died."""
    if folder is None:
        return _by_log(attempt), ()
    found = _of_job(folder, attempt, config)
    best = _best(found, attempt)
    notices = list(_notices(attempt, folder, config, phase, found, best))
    if best is not None:
        return Kept(best.step, best.name, "folder"), tuple(notices)
    return Kept(source="nothing" if _nothing_saved(attempt, folder, config, found) else None), tuple(notices)


def _by_log(attempt: Attempt) -> Kept:
    name = _base(attempt.last_saved)
    if name is not None:
        # the final checkpoint has no number, and the log does not say its step
        numbered = attempt.last_saved_step is not None and f"_{attempt.last_saved_step:09d}" in name.reveal()
        return Kept(attempt.last_saved_step if numbered else None, name, "log")
    if attempt.resumed and attempt.start_step:
        return Kept(attempt.start_step, _base(attempt.resumed_from), "log")
    return Kept()


_NUMBERED = re.compile(r"_\d{6,12}$")


def finished(attempt: Attempt) -> bool:
    """Whether the log tells that the last checkpoint, the one without a number, was saved."""
    name = _base(attempt.last_saved)
    return name is not None and _NUMBERED.search(name.reveal().removesuffix(_SUFFIX)) is None


def _base(path: LogText | None) -> LogText | None:
    name = path.reveal().replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] if path is not None else ""
    return LogText(name) if name else None


def _of_job(folder: FolderWitness, attempt: Attempt, config: JobConfig) -> list[Checkpoint]:
    """The checkpoints that bear the job's name: that of the log, of the config, or of the folder."""
    known = next((name for name in (attempt.job_name, config.job_name) if name is not None), folder.name).reveal()
    return [item for item in folder.checkpoints if item.job.reveal() in (known, known + _ADAPTER)]


def _best(found: Sequence[Checkpoint], attempt: Attempt) -> Checkpoint | None:
    """The latest whole one; the final one by the step that its header tells, or if the run came to its end."""
    whole = [item for item in found if item.state == "whole"]
    final = [item for item in whole if item.final]
    if final and (attempt.end.outcome.startswith("completed") or len(final) == len(whole)):
        return final[-1]
    return max((item for item in whole if item.step is not None), key=lambda item: item.step or 0, default=None)


def _nothing_saved(attempt: Attempt, folder: FolderWitness, config: JobConfig, found: Sequence[Checkpoint]) -> bool:
    """Whether it is sure that the run has left no checkpoint, and is not a folder that was handed on without them."""
    every = config.get("save.save_every")
    return (
        not found
        and folder.whole
        and folder.optimizer is None
        and attempt.end.outcome in ("failed", "killed")
        and not attempt.resumed
        and not attempt.start_step
        and attempt.last_saved is None
        and attempt.last_bar is not None
        and is_whole(every)
        and attempt.last_bar < every
    )


def _notices(
    attempt: Attempt,
    folder: FolderWitness,
    config: JobConfig,
    phase: str,
    found: Sequence[Checkpoint],
    best: Checkpoint | None,
) -> Iterator[Notice]:
    bad = [item for item in found if item.state in ("torn", "empty")]
    for item in bad[-MAX_TORN:]:
        yield Notice(f"checkpoint_{item.state}", None, {"name": item.name})
    for name, why in folder.unread:
        yield Notice("folder_unread", None, {"file": name, "problem": why})
    if not folder.whole and not folder.unread:
        yield Notice("folder_too_full", None, {})
    if folder.passed_over:
        yield Notice("checkpoints_left_out", None, {"count": folder.passed_over})
    told = _base(attempt.last_saved)
    missed = told is not None and told.reveal().endswith(_SUFFIX) and not any(_same(item, told) for item in found)
    # a run that came to its end is often handed on without its weights, and nothing is to be resumed
    if missed and folder.whole and not attempt.end.outcome.startswith("completed"):
        yield Notice("checkpoint_missing", None, {"name": told})
    if best is not None and best.step is not None and attempt.last_bar is not None and best.step > attempt.last_bar + 1:
        yield Notice("checkpoint_ahead", None, {"name": best.name, "step": best.step, "last": attempt.last_bar})
    if (
        best is not None
        and folder.optimizer not in ("whole", "unchecked")
        and not attempt.end.outcome.startswith("completed")
    ):
        yield Notice("optimizer_missing" if folder.optimizer is None else "optimizer_torn", None, {})
    wanted = _previews(config) or 0
    if folder.preview_step is not None and phase in _SAMPLING and folder.preview_images < wanted:
        values = {"step": folder.preview_step, "images": folder.preview_images, "expected": wanted}
        yield Notice("preview_unfinished", None, values)


def _same(item: Checkpoint, name: LogText) -> bool:
    """Whether `name`, as the log prints it, is this checkpoint; one in two files is printed as if it were one."""
    told = name.reveal().removesuffix(_SUFFIX)
    number = f"_{item.step:09d}" if item.step is not None and not item.final else ""
    return told == item.job.reveal() + number


def _previews(config: JobConfig) -> int | None:
    """How many images a preview has; None where no config says so."""
    listed = config.get("sample.samples") or config.get("sample.prompts")
    return len(listed) if isinstance(listed, list) else None
