"""The pictures: positions are the document's numbers to scale, and stay inside."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.knowledge.schema import Knowledge
from postmortem.report import Report
from postmortem.report import document as doc
from postmortem.report.html import picture_memory, picture_phases, picture_steps
from postmortem.report.html.buckets import shapes
from postmortem.report.html.geometry import ceiling, percent, ticks
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from tests.test_fixtures import report_on

replace = msgspec.structs.replace


@pytest.fixture(scope="module")
def texts(knowledge: Knowledge) -> Texts:
    return Texts(knowledge, "en")


@pytest.fixture(scope="module")
def failed(lexicon: Lexicon) -> Report:
    return report_on("sampling-mid-run-checkpointing-off", lexicon)


def ledger(failed: Report, tried: float | None, **sizes: float | None) -> Report:
    nothing: dict[str, float | str | None] = dict.fromkeys(doc.LedgerPart.__struct_fields__)
    part = doc.LedgerPart(**{**nothing, **sizes})  # type: ignore[arg-type]
    return replace(failed, ledger=part, memory=replace(failed.memory, tried_to_allocate=tried))


@given(st.floats(1e-3, 1e9))
def test_an_axis_ends_at_a_round_number(value: float) -> None:
    end = ceiling(value)
    assert value <= end * (1 + 1e-6) and end <= 2 * value * (1 + 1e-6)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_ticks_are_few_and_inside(first: int, length: int) -> None:
    found = list(ticks(first, first + length))
    assert len(found) <= 6
    assert all(first <= tick <= first + length for tick in found)
    assert len({after - before for before, after in pairwise(found)}) <= 1


def test_percentages_are_clamped_and_rounded() -> None:
    assert (percent(1, 3), percent(5, 4), percent(-1, 4), percent(1, 0)) == (33.3, 100.0, 0.0, 0.0)


def test_the_request_sticks_out_by_what_is_missing(failed: Report, texts: Texts) -> None:
    report = ledger(failed, 200, capacity=1000, allocated=800, free=100, unexplained=100, shortage=100)
    picture = picture_memory.at_failure(report, texts)
    assert picture is not None and picture.below is not None and picture.over is not None
    # 900 held + 200 asked for = 1100 across the picture
    assert [(piece.x, piece.width) for piece in picture.pieces] == [(0.0, 72.7), (72.7, 9.1), (81.8, 9.1)]
    assert (picture.below.x, picture.below.width) == (81.8, 18.2)
    assert (picture.edge, picture.over.x, picture.over.width) == (90.9, 90.9, 9.1)
    assert "short by 100 MiB" in picture.sentence


def test_what_the_driver_moved_away_stands_over_the_cards_edge(failed: Report, texts: Texts) -> None:
    report = ledger(failed, None, capacity=1000, allocated=1250, free=0, overdrawn=250)
    picture = picture_memory.at_failure(report, texts)
    assert picture is not None
    assert (picture.edge, picture.pieces[0].width, picture.below) == (80.0, 100.0, None)


def test_sizes_that_are_no_whole_are_not_drawn(failed: Report, texts: Texts) -> None:
    picture = picture_memory.at_failure(ledger(failed, 2048, capacity=24000, free=1000), texts)
    assert picture is not None and not picture.drawn
    assert [row.size for row in picture.totals] == ["2.0 GiB", "23.4 GiB"]
    assert picture_memory.at_failure(ledger(failed, None), texts) is None


@given(st.lists(st.floats(0, 1e6), min_size=5, max_size=5), st.floats(0, 1e6), st.floats(1, 1e6))
def test_no_part_leaves_the_picture(
    failed: Report, texts: Texts, parts: list[float], tried: float, capacity: float
) -> None:
    names = ("other_processes", "non_pytorch", "allocated", "reserved_unallocated", "free")
    report = ledger(failed, tried, capacity=capacity, **dict(zip(names, parts)))
    picture = picture_memory.at_failure(report, texts)
    assert picture is not None
    for piece in picture.pieces:
        assert 0 <= piece.x <= 100 and piece.x + piece.width <= 100.1


def test_the_forecast_reaches_over_the_card(failed: Report, texts: Texts) -> None:
    found = failed.forecast
    assert found is not None and found.usable is not None
    picture = picture_memory.forecast(failed, texts)
    assert picture is not None and picture.reach is not None and picture.below is not None
    assert picture.reach.x + picture.reach.width == 100.0
    assert picture.below.width == percent(found.usable, found.need.high)
    assert len(picture.pieces) == len(found.parts) + 1  # and the slack
    assert picture_memory.forecast(replace(failed, forecast=None), texts) is None


def test_the_phases_are_in_the_logs_order_and_the_last_one_ended_it(failed: Report, texts: Texts) -> None:
    found = picture_phases.phases(failed, texts)
    assert found is not None and not found.timed
    assert [band.title for band in found.bands][-3:] == ["baseline preview", "training step", "preview during training"]
    assert [band.ended for band in found.bands] == [False] * (len(found.bands) - 1) + [True]
    assert found.bands[0].x == 0 and sum(band.width for band in found.bands) == pytest.approx(100, abs=0.5)
    lines = [band.first_line or 0 for band in found.bands]
    assert lines == sorted(lines)


def test_bands_are_as_wide_as_the_times_that_the_log_carries(lexicon: Lexicon, texts: Texts) -> None:
    report = report_on("host-stood-still-137", lexicon)
    found = picture_phases.phases(report, texts)
    assert found is not None and found.timed
    training = found.bands[-1]
    assert (training.title, training.took) == ("training step", "43:38")
    assert training.width > 70
    # two bands of one phase share its time, so neither says one
    assert [band.took for band in found.bands if band.title == "model load"] == [None, None]


def test_a_log_of_one_line_has_no_phases(failed: Report, texts: Texts) -> None:
    rows = [replace(failed.timeline[-1], phase="unknown", event="oom")]
    assert picture_phases.phases(replace(failed, timeline=rows), texts) is None
    assert picture_phases.phases(replace(failed, timeline=[]), texts) is None


def test_a_band_counts_every_failure_also_those_that_the_timeline_left_out(lexicon: Lexicon, texts: Texts) -> None:
    report = report_on("early-step-checkpointing-off", lexicon)
    found = picture_phases.phases(replace(report, timeline=report.timeline[:-3]), texts)
    assert found is not None
    assert [band.ooms for band in found.bands if band.title == "training step"] == [len(report.oom_events)] == [4]


def test_many_phases_are_bounded(failed: Report, texts: Texts) -> None:
    names = ["model_load", "quantize", "text_encoder_load"] * 20
    rows = [replace(failed.timeline[0], phase=name, event="status") for name in names]
    found = picture_phases.phases(replace(failed, timeline=rows), texts)
    assert found is not None and len(found.bands) == picture_phases.MOST
    assert "several phases" in [band.title for band in found.bands]


def test_steps_of_a_run_that_died_early(lexicon: Lexicon, texts: Texts) -> None:
    found = picture_steps.steps(report_on("early-step-checkpointing-off", lexicon), texts)
    assert found is not None
    assert {mark.look: mark.xs for mark in found.marks} == {"skip": [12.5, 37.5, 62.5], "fail": [87.5]}
    assert [tick.label for tick in found.axis] == ["0", "1", "2", "3", "4"]
    assert (found.points, found.done, found.turn) == ("", 0.0, None)
    assert found.notes == ["The picture ends at step 4 of 2600 planned."]


def test_step_times_and_where_they_turned(lexicon: Lexicon, texts: Texts) -> None:
    report = report_on("spill-flux-windows", lexicon)
    found = picture_steps.steps(report, texts)
    assert found is not None and found.turn is not None
    points = [tuple(map(float, point.split(","))) for point in found.points.split()]
    assert len(points) == 2 * len(report.steps.stretches)
    assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert all(0 <= x <= 1000 and 0 <= y <= 100 for x, y in points)
    # fast before the turn, slow after it; the axis ends at 80 s
    before = [y for x, y in points if x < 350]
    after = [y for x, y in points if x > 10 * found.turn.x + 40]
    assert min(before) > 90 and max(after) <= 60
    assert (found.slowest, found.turn.x) == ("80", 55.9)
    assert "from step 19 on 54.7 s a step, before that 3 s" in found.sentence


def test_a_run_that_never_trained_has_no_steps(lexicon: Lexicon, texts: Texts) -> None:
    assert picture_steps.steps(report_on("host-pinned-quantise-qwen", lexicon), texts) is None


def test_a_completed_run_ends_with_its_axis(lexicon: Lexicon, texts: Texts) -> None:
    found = picture_steps.steps(report_on("ok-clean-sdxl", lexicon), texts)
    assert found is not None
    assert found.done == 100.0 and found.notes == []
    assert all(0 <= x <= 100 for mark in found.marks for x in mark.xs)


def test_suspect_shapes_come_first_and_are_marked(lexicon: Lexicon) -> None:
    report = report_on("bucket-spike-lived-flux", lexicon)
    found = shapes(report)
    assert found is not None and found.weighed
    assert [row.bucket for row in found.rows if row.suspect] == [found.rows[0].bucket] == ["1024x1024"]
    assert max(row.bar for row in found.rows) == 100.0
    assert shapes(replace(report, buckets=[])) is None
    many = shapes(replace(report, buckets=report.buckets * 20))
    assert many is not None and len(many.rows) + many.left_out == len(report.buckets) * 20
