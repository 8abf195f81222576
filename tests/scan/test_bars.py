"""Folding draws: what a bar proves about its steps."""

from __future__ import annotations

from itertools import pairwise

from postmortem.model import Place
from postmortem.scan.bars import MAX_SAMPLES, RECENT, Fold, seconds


def fold(*draws: tuple[int, str]) -> Fold:
    bar = Fold("job", 100, Place(1, 0), event=None, phase=None)
    for index, (n, postfix) in enumerate(draws):
        bar.draw(n, b"00:%02d" % index, postfix.encode(), 1, index)
    return bar


def test_a_finished_step_is_drawn_at_its_count_with_a_new_postfix() -> None:
    span = fold((0, ""), (0, "a"), (1, "a"), (1, "b"), (2, "b")).take()
    assert span is not None
    assert span.unproven == ()
    assert not span.last_proven
    assert span.start_proofs == 1


def test_a_skipped_step_leaves_its_count_unproven() -> None:
    span = fold((0, ""), (0, "a"), (1, "a"), (2, "a"), (2, "b"), (3, "b")).take()
    assert span is not None
    assert span.unproven == ((1, 2),)


def test_skips_from_the_first_step_on() -> None:
    span = fold((8, ""), (9, ""), (10, "")).take()
    assert span is not None
    assert span.unproven == ((8, 10),)
    assert (span.first_n, span.last_n, span.draws) == (8, 10, 3)


def test_a_count_that_was_never_drawn_is_unproven_too() -> None:
    span = fold((0, ""), (0, "a"), (3, "b")).take()
    assert span is not None
    assert span.unproven == ((1, 3),)


def test_taking_twice_gives_only_what_came_between() -> None:
    bar = fold((0, ""), (0, "a"))
    assert bar.take() is not None
    assert bar.take() is None
    bar.draw(1, b"00:09", b"a", 2, 50)
    span = bar.take()
    assert span is not None
    assert (span.first_n, span.last_n, span.draws, span.place.line) == (1, 1, 1, 2)


def test_samples_stay_bounded_and_keep_the_last() -> None:
    bar = Fold("job", 10**6, Place(1, 0), event=None, phase=None)
    for n in range(5000):
        bar.draw(n, b"1:00:%02d" % (n % 60), b"p%d" % n, 1, n)
    span = bar.take()
    assert span is not None
    assert len(span.samples) <= MAX_SAMPLES + RECENT
    assert span.samples[-1] == (4999, 3600 + 4999 % 60, 1)


def test_a_span_is_sampled_closest_at_its_start_and_before_its_end() -> None:
    bar = Fold("job", 10**6, Place(1, 0), event=None, phase=None)
    for n in range(5000):
        bar.draw(n, b"00:00", b"p%d" % n, 1, n)
    span = bar.take()
    assert span is not None
    counts = [n for n, _, _ in span.samples]
    assert counts[:128] == list(range(128))
    assert counts[-RECENT:] == list(range(5000 - RECENT, 5000))
    assert max((after - before) / after for before, after in pairwise(counts[127:])) <= 1 / 32


def test_clock_forms() -> None:
    assert seconds(b"01:02") == 62
    assert seconds(b"129:29:00") == 129 * 3600 + 29 * 60


def test_a_redraw_without_a_postfix_proves_no_step() -> None:
    span = fold((0, ""), (0, ""), (1, ""), (1, "a")).take()
    assert span is not None
    assert span.unproven == ((0, 1),)
    assert (span.start_blank, span.start_said, span.start_proofs) == (2, 0, 0)


def test_draws_at_the_first_count_are_told_apart() -> None:
    span = fold((8, ""), (8, "a"), (8, "a"), (8, "b"), (9, "b")).take()
    assert span is not None
    assert (span.start_blank, span.start_said, span.start_proofs) == (1, 3, 2)
