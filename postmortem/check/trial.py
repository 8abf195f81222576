"""The guide's conditions for trying gradient checkpointing off (its section 6), each tested or left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from postmortem.check.phases import PREVIEWS, TRAINING, Phase, find
from postmortem.compare.changes import CHECKPOINTING, Change, between_configs
from postmortem.compare.reach import failed
from postmortem.knowledge.schema import FirstTry, Knowledge
from postmortem.model import Bucket, ConfigChange, Diagnosis, JobConfig
from postmortem.pipeline import Analysis
from postmortem.remedies.edited import edited
from postmortem.vram import Card, Forecast, Refusal, forecast
from postmortem.vram.forecast import FITS, UNKNOWN

MANY_STEPS = 100
"""Good steps that count as stable training; the guide gives no number."""
LARGE_BATCH = 4
"""From here on a batch is large for any family; see the head of patterns/risks.yaml."""
WATCH = ("early_steps", "sampling", "bucket_spikes")
_DATA = ("dataset", "resolution", "num_frames")
"""Changes after which the batch shapes of a log say nothing of the job."""


class Condition(msgspec.Struct, frozen=True):
    """One condition: whether it holds (None: cannot be said), and why, as the id of a text and what fills it."""

    id: str
    holds: bool | None
    reason: str
    values: Mapping[str, Any] = msgspec.field(default_factory=dict)


class Trial(msgspec.Struct, frozen=True):
    """The conditions and what follows: `verdict` is yes, no, open or proven; `changes` is the one edit to try."""

    on: bool
    conditions: tuple[Condition, ...]
    verdict: str
    changes: tuple[ConfigChange, ...]


class Stable(msgspec.Struct, frozen=True):
    """The run whose log was given, and the variables in which the job differs from it (None: its config is unknown)."""

    run: Analysis
    changes: tuple[Change, ...] | None

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The batch shapes of the log, where they are those of the job too."""
        same = self.changes is not None and not any(change.id in _DATA for change in self.changes)
        return self.run.attempt.buckets if same else ()


def against(run: Analysis | None, config: JobConfig, knowledge: Knowledge) -> Stable | None:
    """The stable run held against the job."""
    if run is None:
        return None
    if not run.config.known:
        return Stable(run, None)
    return Stable(run, between_configs(run.config, config, lambda variable: variable.bears, knowledge))


def trial(
    config: JobConfig,
    training: Diagnosis,
    weighed: Sequence[Phase],
    card: Card,
    stable: Stable | None,
    first: FirstTry | None,
    knowledge: Knowledge,
) -> Trial:
    """The six conditions, and whether to try. `weighed` is the job as it is; a step is weighed with both settings."""
    buckets = stable.buckets if stable else ()
    is_on = config.get(CHECKPOINTING) is not False

    def step(checkpointing: bool) -> Forecast | Refusal:
        change = ConfigChange(CHECKPOINTING, is_on, checkpointing)
        wanted = edited(config, (change,), knowledge)
        return forecast(wanted, training.arch, buckets, TRAINING, card, knowledge)

    on, off = step(True), step(False)
    conditions = (
        _stable(stable),
        _batch(training.facts, first),
        _largest(on, stable),
        _previews(training.facts, find(weighed, *PREVIEWS), on),
        _headroom(off),
        _one_variable(stable),
    )
    answers = [condition.holds for condition in conditions]
    verdict = "yes" if all(answers) else "no" if False in answers else "open"
    if not is_on and _proven(stable) and conditions[0].holds and conditions[-1].holds:
        verdict = "proven"
    changes = (ConfigChange(CHECKPOINTING, True, False),) if is_on and verdict == "yes" else ()
    if not is_on and verdict == "no":
        changes = (ConfigChange(CHECKPOINTING, False, True),)
    return Trial(is_on, conditions, verdict, changes)


def is_stable(stable: Stable | None) -> bool:
    """Whether the log shows a stable run."""
    return _stable(stable).holds is True


def _proven(stable: Stable | None) -> bool:
    return stable is not None and stable.run.config.known and stable.run.config.get(CHECKPOINTING) is False


def _stable(stable: Stable | None) -> Condition:
    name = "stable"
    if stable is None:
        return Condition(name, None, "no_log")
    run = stable.run
    if run.attempt.ooms or run.diagnosis.kind in ("gpu_oom", "host_oom", "vram_spill"):
        return Condition(name, False, "ran_out")
    if failed(run):
        return Condition(name, False, "failed")
    if run.attempt.end.outcome == "completed" and run.attempt.trained:
        return Condition(name, True, "completed")
    good = {"count": run.attempt.good_steps}
    return (
        Condition(name, True, "many_steps", good)
        if good["count"] >= MANY_STEPS
        else Condition(name, None, "few_steps", good)
    )


def _batch(facts: Mapping[str, Any], first: FirstTry | None) -> Condition:
    name, size = "batch_conservative", facts.get("job.batch_size")
    limit = first.batch_max if first else 1
    values = {"batch": size, "limit": limit}
    if not isinstance(size, int) or size < 1:
        return Condition(name, None, "unknown")
    if size <= limit:
        return Condition(name, True, "small", values)
    if first is None and size < LARGE_BATCH:
        return Condition(name, None, "no_number", values)
    return Condition(name, False, "large", values)


def _largest(on: Forecast | Refusal, stable: Stable | None) -> Condition:
    name = "largest_bucket"
    if stable is not None and any(oom.phase == TRAINING for oom in stable.run.attempt.ooms):
        return Condition(name, False, "ran_out")
    return _room(name, on, "at_limit")


def _headroom(off: Forecast | Refusal) -> Condition:
    return _room("headroom", off, "short")


def _room(name: str, found: Forecast | Refusal, short: str) -> Condition:
    """Whether a training step surely fits; near the limit is too near."""
    if isinstance(found, Refusal):
        return Condition(name, None, "no_forecast")
    values = {"need": found.need, "card": found.usable}
    if found.fits == UNKNOWN:
        return Condition(name, None, "card_unknown", values)
    return Condition(name, True, "room", values) if found.fits == FITS else Condition(name, False, short, values)


def _previews(facts: Mapping[str, Any], preview: Forecast | None, on: Forecast | Refusal) -> Condition:
    name = "previews_light"
    if not facts["job.samples"]:
        return Condition(name, True, "off")
    if preview is not None and isinstance(on, Forecast):
        values = {"preview": preview.need, "need": on.need}
        light = preview.need.likely <= on.need.likely
        return Condition(name, light, "lighter" if light else "heavier", values)
    larger = _exceeds(facts, "job.preview_pixels", "job.max_pixels")
    longer = not facts["job.auto_frames"] and _exceeds(facts, "job.sample_frames", "job.num_frames")
    return Condition(name, False, "larger") if larger or longer else Condition(name, None, "no_forecast")


def _exceeds(facts: Mapping[str, Any], one: str, other: str) -> bool:
    mine, theirs = facts.get(one), facts.get(other)
    return isinstance(mine, int) and isinstance(theirs, int) and mine > theirs


def _one_variable(stable: Stable | None) -> Condition:
    name = "one_variable"
    if stable is None:
        return Condition(name, None, "no_log")
    if stable.changes is None:
        return Condition(name, None, "config_unknown")
    others = list(_others(stable.changes))
    return Condition(name, False, "others", {"names": others}) if others else Condition(name, True, "alone")


def _others(changes: Sequence[Change]) -> Iterator[Change]:
    for change in changes:
        if change.bears and not any(edit.path == CHECKPOINTING for edit in change.edits):
            yield change
