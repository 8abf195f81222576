"""Which of a log's bars is the training's."""

from __future__ import annotations

from postmortem.model import BarSpan, Event, Place
from postmortem.text import LogText
from postmortem.timeline import training_bar

HERE = Place(1, 0)


def bar(name: str, total: int = 60, *, event: str | None = None, postfix: str = "") -> BarSpan:
    """A bar that stands at 7."""
    return BarSpan(HERE, HERE, LogText(name), total, 0, 7, 8, postfix=LogText(postfix), event=event)


def test_the_bar_of_the_jobs_name_is_it_whatever_else_is_drawn() -> None:
    items = [bar("Fetching", 900, postfix="loss: 1"), bar("mugs", 60)]
    assert training_bar.name_of(items, "mugs") == "mugs"


def test_without_a_name_what_shows_a_loss_is_it_then_the_longest() -> None:
    unknown = [bar("Fetching", 900), bar("mugs", 60, postfix="lr: 1e-4 loss: 0.3")]
    assert training_bar.name_of(unknown, None) == "mugs"
    assert training_bar.name_of([bar("a", 10), bar("b", 20)], None) == "b"
    assert training_bar.name_of([*unknown, bar("cups", 5, event="bar_main")], None) == "cups"


def test_bars_of_another_kind_never_are() -> None:
    assert training_bar.name_of([bar("Generating Samples", event="bar_sampling")], None) is None
    assert training_bar.spans([bar("Generating Samples", event="bar_sampling")], None) == []


def test_its_spans_come_in_order_and_are_cited_by_where_they_stood() -> None:
    first, last = bar("mugs", 60), bar("mugs", 80)
    other = Event(HERE, "toolkit.saving", "marker", LogText("mugs"))
    assert training_bar.spans([first, other, bar("cups"), last], "mugs") == [first, last]
    assert training_bar.counts(last).reveal() == "mugs: 7/80"
