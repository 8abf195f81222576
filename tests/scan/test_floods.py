"""Floods: what repeats thousands of times costs little, and never hides how the run ended."""

from __future__ import annotations

from postmortem.model import BarSpan
from postmortem.scan import Lexicon, scan
from postmortem.scan.bars import MAX_SAMPLES
from postmortem.scan.items import MAX_ALIKE, MAX_ITEMS, MAX_SPANS
from tests.conftest import Analyse
from tests.simulate import config, finished, head, training

SIZES = (
    "CUDA out of memory. Tried to allocate {} MiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 MiB is free. "
    "Including non-PyTorch memory, this process has 23.00 GiB memory in use."
)


def test_the_end_of_a_flooded_run_is_kept(run: Analyse) -> None:
    retries = "".join(
        f"torch.OutOfMemoryError: {SIZES.format(number % 900 + 10)}\n" for number in range(MAX_ALIKE + 500)
    )
    analysis = run(head(config()) + retries + f"Error running job: {SIZES.format(7)}\n")
    assert analysis.diagnosis.outcome == "failed"
    assert analysis.diagnosis.memory_mib["tried_to_allocate"] == 7
    assert "too_many_events" in [notice.id for notice in analysis.warnings]


def test_the_newest_attempt_outlives_a_flood_before_it(lexicon: Lexicon, run: Analyse) -> None:
    flood = head(config()) + "Saving at step 100\n" * 40
    log = flood * 500 + head(config()) + training(40, []) + finished()
    kept = scan([log.encode()], lexicon)
    assert len(kept.items) <= MAX_ITEMS
    analysis = run(log)
    assert analysis.attempts[-1].end.outcome == "completed"
    assert analysis.diagnosis.kind == "none"


def test_thousands_of_jobs_in_one_log(run: Analyse) -> None:
    log = "".join(head(config(), name=f"job{number}") for number in range(2000))
    assert run(log).attempt.job_name is not None


def test_banners_after_the_abort(run: Analyse) -> None:
    """Several failures without a bar between them, each with its own skips and abort."""
    failing = training(400, {0, 1, 2, 3})
    tail = failing[failing.rindex("\r") :].partition("\n")[2]
    analysis = run(head(config()) + failing + tail * 3)
    assert analysis.diagnosis.kind == "gpu_oom"


def test_digits_without_end(run: Analyse) -> None:
    analysis = run(head(config()) + "CUDA out of memory. Tried to allocate " + "1" * 15_000 + " GiB\n")
    assert analysis.diagnosis.memory_mib.get("tried_to_allocate") is None


def test_spans_of_one_bar_become_one_and_lose_nothing(lexicon: Lexicon) -> None:
    steps = 4 * (MAX_SPANS + 2000)
    skipped = set(range(7, steps, 4001))
    draws = training(steps, skipped, buffered=True).split("\r")
    log = "".join(("\nSaving at step 9\n" if index % 8 == 0 else "") + "\r" + draw for index, draw in enumerate(draws))
    spans = [item for item in scan([log.encode()], lexicon).items if isinstance(item, BarSpan)]
    assert len(spans) <= MAX_SPANS + 1
    assert {n for span in spans for start, end in span.unproven for n in range(start, end)} == skipped
    assert (spans[-1].first_n, spans[-1].last_n) == (spans[-2].last_n, steps)
    assert sum(span.draws for span in spans) == 2 * steps + 1 - len(skipped)
    assert len(spans[-1].samples) <= 2 * MAX_SAMPLES + MAX_SAMPLES
