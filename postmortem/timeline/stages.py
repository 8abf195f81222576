"""What the program was doing, in order: the phases that bars and markers tell, and the steps with a preview."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postmortem.model import BarSpan, Event, Item, Stage
from postmortem.timeline import training_bar

_SAMPLING = "sampling"
"""What entries say that cannot tell a baseline preview from one mid-run; resolved here."""


def stages_of(items: Sequence[Item], name: str | None) -> Iterator[Stage]:
    """The stages of an attempt whose training bar is called `name`: one for each bar and marker that tells a phase."""
    trained = False
    count: int | None = None
    told: str | None = None
    stale = False
    for item in items:
        if training_bar.is_span(item, name):
            trained = True
            count = item.last_n
            text = training_bar.counts(item)
            yield Stage(item.last_place, "training_step", "bar_main", text, count, item.place.stamp)
        elif isinstance(item, BarSpan):
            if not item.phase:
                continue
            phase = _resolved(item.phase, trained=trained)
            if phase == "cache_latents" and told == "cache_text_embeddings":
                phase = told  # for two months the bar of the text embeddings was called like the latents' one
            at = count if trained else None
            yield Stage(item.last_place, phase, item.event or "bar", item.description, at, item.place.stamp)
        elif isinstance(item, Event) and item.role == "marker" and item.phase:
            phase = _resolved(item.phase, trained=trained)
            step = item.number("step")
            if step is not None and count is not None and step < count - 1:
                # printed late: the bar had long left that step
                stale = True
            elif step is not None or item.event not in ("saved_checkpoint", "saved_optimizer"):
                stale = False
            if stale and phase in ("saving", "mid_sampling"):
                phase = "training_step"
            told = phase
            at = step if step is not None else count
            yield Stage(item.place, phase, item.event or "status", item.text, at, pattern=item.pattern)


def _resolved(phase: str, *, trained: bool) -> str:
    if phase != _SAMPLING:
        return phase
    return "mid_sampling" if trained else "baseline_sampling"


def sample_steps(stages: Sequence[Stage], *, lags: bool) -> tuple[int, ...]:
    """Steps inside which a mid-run preview was made: the bar's count then, or the step after it if the bar `lags`."""
    found: list[int] = []
    for stage in stages:
        if stage.phase == "mid_sampling" and stage.step is not None:
            step = stage.step + (lags and stage.event.startswith("bar_sampling"))
            if step not in found[-1:]:
                found.append(step)
    return tuple(found)
