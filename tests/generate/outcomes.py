"""From plan to fate: which steps are dropped, at which one the run dies, and what the right report is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.generate.plans import batches, largest, marks
from tests.generate.truth import Plan

PROVEN = 10
EPOCHS = 3


@dataclass(frozen=True)
class Fate:
    """What happens to the training of a plan: the steps without a result, and the step that never ended."""

    skipped: tuple[int, ...] = ()
    fatal: int | None = None

    @property
    def oom_steps(self) -> tuple[int, ...]:
        """All steps that ran out of memory."""
        return (*self.skipped, *(() if self.fatal is None else (self.fatal,)))


def streak(plan: Plan, first: int) -> Fate:
    """Every step from `first` on fails: dead at once in the first era, at the fourth since then."""
    if plan.era == "uncaught":
        return Fate((), first)
    return Fate(tuple(range(first, first + 3)), first + 3)


def fate(plan: Plan, random: Random) -> Fate:
    """The training steps that fail for GPU memory under `plan`."""
    start, stops = plan.start, marks(plan)
    if plan.failure == "early":
        return streak(plan, start + random.randint(0, PROVEN - 1))
    if plan.failure == "exp_avg":
        return Fate((0,), None)
    if plan.failure in ("after_sample", "after_save"):
        mark = next(step for step in stops if step + 1 >= start + PROVEN)
        if plan.era == "uncaught" or random.random() < 0.5:
            return streak(plan, mark + 1)
        length = random.randint(1, 3)
        later = [mark for mark in stops if mark >= start + PROVEN and mark + length < plan.steps]
        return Fate(tuple(mark + 1 + more for mark in later for more in range(length)))
    if plan.failure == "steady":
        return streak(plan, _quiet(plan, random, plan.steps - 4))
    if plan.failure in ("cublas", "bare"):
        return Fate((), _quiet(plan, random, plan.steps - 1))
    if plan.failure == "steady_lived":
        if plan.era == "uncaught":
            return Fate((), _quiet(plan, random, plan.steps - 1))
        free = [step for step in range(start + 1, plan.steps - 1) if step - 1 not in stops]
        return Fate(tuple(sorted(random.sample(free, random.randint(2, 5)))))
    if plan.failure in ("spike", "spike_cut"):
        return _spikes(plan, random)
    return Fate()


def _quiet(plan: Plan, random: Random, limit: int) -> int:
    """A step after ten good ones that does not follow a preview or a save."""
    stops = marks(plan)
    return random.choice([step for step in range(plan.start + PROVEN, limit) if step - 1 not in stops])


def _spikes(plan: Plan, random: Random) -> Fate:
    """Each batch of the largest shape fails, epoch after epoch in a new order, until four come in a row."""
    great = largest(plan.buckets)
    queue: list[str] = []
    skipped: list[int] = []
    row = 0
    for step in range(plan.start, plan.steps):
        if not queue:
            queue = batches(plan)
            random.shuffle(queue)
        row = row + 1 if queue.pop() in great else 0
        if row and plan.era == "uncaught":
            return Fate((), step)
        if row == 4:
            return Fate(tuple(skipped), step)
        if row:
            skipped.append(step)
    return Fate(tuple(skipped))


def classes(plan: Plan, done: Fate) -> tuple[str, ...]:
    """The classes that are right for failing training steps; more than one where the log cannot tell."""
    ooms = done.oom_steps
    good = (done.fatal if done.fatal is not None else plan.steps) - plan.start - len(done.skipped)
    if done.fatal is not None and good < PROVEN:
        return ("early_step",)
    stops = set(marks(plan))
    starts = [step for step in ooms if step - 1 not in ooms]
    if all(step - 1 in stops for step in starts):
        return ("after_sampling",)
    shapes = {label for table in plan.buckets for label, _ in table}
    if len(shapes) == 1:
        return ("steady_training",)
    if plan.failure in ("spike", "spike_cut") and (len(starts) > 1 or done.fatal is None):
        return ("bucket_spike",)
    if plan.failure == "spike" and plan.era == "uncaught":
        return ("bucket_spike",)
    if done.fatal is not None and good >= EPOCHS * len(batches(plan)):
        return ("steady_training",)
    return ("steady_training", "bucket_spike")


def host_class(plan: Plan, step: int) -> str:
    """The class of a host failure in a training step."""
    return "early_step" if step - plan.start < PROVEN else "steady_training"


def counters(skipped: Sequence[int]) -> list[int]:
    """The k of each banner's k/3."""
    found: list[int] = []
    for index, step in enumerate(skipped):
        follows = index > 0 and skipped[index - 1] == step - 1
        found.append(found[-1] + 1 if follows else 1)
    return found
