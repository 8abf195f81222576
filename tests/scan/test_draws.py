"""Logs that are all bars: how the bytes come in and by what means they are read must change nothing.

`tests/ways.py` lists the means (MODES); `make laws N=1000` draws that many logs.
"""

from __future__ import annotations

import os
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postmortem.model import BarSpan
from postmortem.scan import items
from tests.scan.draws import Clean, clean_runs, logs
from tests.test_equal import differs
from tests.ways import CUTTINGS, MODES, anyhow, pieces, scanned

COUNT = int(os.environ.get("LAWS_N", "60"))
QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@given(logs(), st.lists(st.integers(1, 400), min_size=1, max_size=12))
@settings(max_examples=COUNT, deadline=None, suppress_health_check=QUIET)
def test_cuts_and_means_change_nothing_of_a_log_of_bars(data: bytes, sizes: list[int]) -> None:
    plain = scanned(data, MODES[0], CUTTINGS["one piece"])
    for mode in MODES:
        for cutting in (CUTTINGS["one piece"], anyhow, lambda data: pieces(data, *sizes)):
            difference = differs(plain, scanned(data, mode, cutting))
            assert not difference, mode.name


@given(logs(), st.sampled_from([(4, 2), (20, 5), (60, 3)]))
@settings(max_examples=COUNT, deadline=None, suppress_health_check=QUIET)
def test_nor_where_there_are_more_bars_than_are_kept(data: bytes, bounds: tuple[int, int]) -> None:
    spans, kept = bounds
    with mock.patch.multiple(items, MAX_SPANS=spans, KEPT=kept, MAX_ALIKE=9, MAX_ITEMS=400):
        plain = scanned(data, MODES[0], CUTTINGS["one piece"])
        for mode in MODES:
            for cutting in (CUTTINGS["one piece"], anyhow):
                assert not differs(plain, scanned(data, mode, cutting)), mode.name


@given(logs())
@settings(max_examples=COUNT, deadline=None, suppress_health_check=QUIET)
def test_sizes_are_those_of_the_bytes(data: bytes) -> None:
    for mode in MODES:
        found = scanned(data, mode, anyhow)
        assert found.bytes == len(data)
        assert found.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


@given(clean_runs())
@settings(max_examples=COUNT, deadline=None, suppress_health_check=QUIET)
def test_an_undisturbed_bar_is_one_span_with_its_skips(clean: Clean) -> None:
    for mode in MODES:
        (span,) = (item for item in scanned(clean.data, mode, anyhow).items if isinstance(item, BarSpan))
        assert (span.draws, span.first_n, span.last_n, span.total) == (
            clean.draws,
            clean.start,
            clean.end,
            clean.total,
        )
        assert span.unproven == clean.unproven
        assert span.postfix.reveal() == clean.postfix
        assert span.samples[-1][0] == clean.end
        assert all(first[0] <= then[0] for first, then in zip(span.samples, span.samples[1:], strict=False))
