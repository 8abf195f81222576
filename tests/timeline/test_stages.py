"""The phases that bars and markers tell, in order."""

from __future__ import annotations

from collections.abc import Sequence

from postmortem.model import BarSpan, Event, Item, Place
from postmortem.text import LogText
from postmortem.timeline.stages import sample_steps, stages_of


def marker(line: int, phase: str, event: str, step: int | None = None) -> Event:
    """A line of the program's own that tells a phase, and perhaps a step."""
    groups = {} if step is None else {"step": LogText(str(step))}
    return Event(Place(line, line), event, "marker", LogText(event), groups, event=event, phase=phase)


def bar(line: int, name: str, n: int, *, event: str | None = None, phase: str | None = None) -> BarSpan:
    """A bar that moved to `n`."""
    return BarSpan(Place(line, line), Place(line, line), LogText(name), 60, 0, n, 2, event=event, phase=phase)


def told(items: Sequence[Item]) -> list[tuple[str, int | None]]:
    """The phases and steps of the stages."""
    return [(stage.phase, stage.step) for stage in stages_of(items, "mugs")]


def preview(line: int) -> BarSpan:
    """The bar of a preview, which does not say whether it is the one before training."""
    return bar(line, "Generating Samples", 2, event="bar_sampling", phase="sampling")


def test_a_preview_before_training_is_the_baseline_one() -> None:
    assert told([preview(1), bar(2, "mugs", 5), preview(3)]) == [
        ("baseline_sampling", None),
        ("training_step", 5),
        ("mid_sampling", 5),
    ]


def test_a_save_has_the_step_that_it_names_else_the_bars_count() -> None:
    items: list[Item] = [bar(1, "mugs", 20), marker(2, "saving", "saving", 20), marker(3, "saving", "saved_checkpoint")]
    assert told(items) == [("training_step", 20), ("saving", 20), ("saving", 20)]


def test_a_number_of_more_digits_than_any_count_is_none() -> None:
    assert told([bar(1, "mugs", 20), marker(2, "saving", "saving", 10**12 - 1)])[1] == ("saving", 10**12 - 1)
    assert told([bar(1, "mugs", 20), marker(2, "saving", "saving", 10**12)])[1] == ("saving", 20)


def test_a_save_that_is_printed_late_leaves_the_training_at_work() -> None:
    """What was held back in a buffer comes when the bar has long left its step, and so does what belongs to it."""
    late: list[Item] = [bar(1, "mugs", 40), marker(2, "saving", "saving", 20), marker(3, "saving", "saved_checkpoint")]
    assert told(late) == [("training_step", 40), ("training_step", 20), ("training_step", 40)]
    again = [*late, marker(4, "saving", "saving", 40), marker(5, "saving", "saved_checkpoint")]
    assert told(again)[3:] == [("saving", 40), ("saving", 40)]


def test_a_bar_called_like_the_latents_one_belongs_to_the_embeddings_that_were_announced() -> None:
    cached = bar(2, "Caching latents to disk", 9, event="bar_latents", phase="cache_latents")
    assert told([cached]) == [("cache_latents", None)]
    announced = marker(1, "cache_text_embeddings", "caching_text")
    assert told([announced, cached])[1:] == [("cache_text_embeddings", None)]


def test_a_preview_stands_in_the_step_after_a_bar_that_lags() -> None:
    stages = tuple(stages_of([bar(1, "mugs", 20), preview(2), preview(3), bar(4, "mugs", 40), preview(5)], "mugs"))
    assert sample_steps(stages, lags=False) == (20, 40)
    assert sample_steps(stages, lags=True) == (21, 41)
