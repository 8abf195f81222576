"""More spans of bars than are kept: what of them the middle of a long attempt still says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from postmortem.knowledge.load import load
from postmortem.model import BarSpan, Event, ScanResult
from postmortem.scan import Lexicon, items, scan
from postmortem.scan.bars import MAX_SAMPLES
from postmortem.scan.drawing import MAX_NAMES, Bars
from postmortem.scan.segments import Cutter
from postmortem.scan.tables import MAX_CREDIT, MAX_PRICE, TRY, Tables
from tests.conftest import Analyse
from tests.simulate import ABORT, BANNER, RESULT, bar, config, head, training

SPANS, KEPT = 60, 12
DROPS = 5
"""Every how many cycles a batch is dropped."""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a log of a few hundred lines passes."""
    monkeypatch.setattr(items, "MAX_SPANS", SPANS)
    monkeypatch.setattr(items, "KEPT", KEPT)
    monkeypatch.setattr(items, "MAX_ALIKE", 20)


def cycles(count: int, steps: int = 10) -> str:
    """Saves and previews every `steps` steps, and a dropped batch in the middle of every fifth cycle."""
    total = count * steps + 10
    rows = [bar("mugs", 0, total, 0, "")]
    for step in range(count * steps):
        if step % (DROPS * steps) == steps // 2:
            rows.append(BANNER.format(1))
        else:
            rows.append(bar("mugs", step, total, 2 * step + 2, f", loss: {step % 97}.{step % 89}"))
        if step % steps == steps - 1:
            rows.append(f"\nSaving at step {step + 1}\nSaved checkpoint to output/mugs/mugs_{step + 1:09d}.safetensors")
            rows += ["\n" + bar("Generating Images", image, 2, image, "") + "\x1b[A" for image in range(3)]
        rows.append(bar("mugs", step + 1, total, 2 * step + 2, f", loss: {step % 97}.{step % 89}"))
    return head(config(train__steps=total)) + "".join(rows) + f"\nError running job: {ABORT}\n{RESULT}"


def spans(found: ScanResult, name: str) -> list[BarSpan]:
    """The spans of one bar."""
    return [item for item in found.items if isinstance(item, BarSpan) and item.description.reveal() == name]


def test_the_middle_becomes_less_and_says_the_same(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    log = cycles(300).encode()
    whole = scan([log], lexicon)
    monkeypatch.setattr(items, "MAX_SPANS", SPANS)
    monkeypatch.setattr(items, "KEPT", KEPT)
    monkeypatch.setattr(items, "MAX_ALIKE", 20)
    less = scan([log], lexicon)
    main, before = spans(less, "mugs"), spans(whole, "mugs")
    assert len(main) < len(before) / 2
    assert sum(span.draws for span in main) == sum(span.draws for span in before)
    skipped = {n for span in before for start, end in span.unproven for n in range(start, end)}
    assert {n for span in main for start, end in span.unproven for n in range(start, end)} == skipped
    assert len(skipped) == 300 // DROPS
    assert all(then.first_n >= span.last_n for span, then in pairwise(main))
    assert main[-1] == before[-1]
    banners = [item for item in less.items if isinstance(item, Event) and item.role == "skip"]
    assert len(banners) == 300 // DROPS
    assert spans(less, "Generating Images")[-1] == spans(whole, "Generating Images")[-1]


@pytest.mark.usefixtures("few")
def test_a_report_of_a_thinned_log(run: Analyse) -> None:
    """Steps of dropped batches, step times and the last save are those that the log tells of."""
    attempt = run(cycles(300)).attempt
    assert attempt.trained
    assert not attempt.excerpt_bars
    assert attempt.last_bar == 3000
    assert attempt.last_saved_step == 3000
    assert attempt.step_times is None
    assert attempt.pace.bar_step_s == pytest.approx(2.0)
    found = [oom.step for oom in attempt.ooms if oom.caught]
    assert found == list(range(5, 3000, 50))
    assert attempt.sample_steps[-3:] == (2979, 2989, 2999)
    assert attempt.dump is not None


@pytest.mark.usefixtures("few")
def test_a_slow_end_shows_in_a_thinned_log(run: Analyse) -> None:
    steps = 2000
    rows, clock = [], 0
    for step in range(steps):
        clock += 2 if step < 1200 else 20
        rows.append(bar("mugs", step + 1, 9000, clock, f", loss: {step % 83}"))
        if step % 5 == 4:
            rows += ["\n", bar("Generating Images", 1, 2, 1, ""), "\x1b[A"]
    times = run(head(config()) + bar("mugs", 0, 9000, 0, "") + "".join(rows)).attempt.step_times
    assert times is not None
    assert times.lasting
    assert times.before_s == pytest.approx(2.0)
    assert 1150 <= times.from_step <= 1250


@pytest.mark.usefixtures("few")
def test_names_in_turn_leave_the_training_bar(lexicon: Lexicon) -> None:
    rows = [bar(name, n, 900, n, f", loss: {n}") for n in range(400) for name in ("a", "mugs", "b", "c")]
    found = scan([(head(config()) + "".join(rows)).encode()], lexicon)
    main = spans(found, "mugs")
    assert len([item for item in found.items if isinstance(item, BarSpan)]) <= SPANS + 2 * KEPT
    assert sum(span.draws for span in main) == 400
    assert (main[0].first_n, main[-1].last_n) == (0, 399)
    assert len(found.warnings) == 1
    lost = 1600 - sum(len(spans(found, name)) for name in ("a", "b", "c")) - 400
    assert found.warnings[0].values == {"count": lost}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("opening", ["", head(config())])
def test_bars_each_of_a_new_name(lexicon: Lexicon, opening: str) -> None:
    rows = [bar(f"part {n}", 1, 2, 1, "") for n in range(1000)]
    found = scan([(opening + "".join(rows)).encode()], lexicon)
    kept = [item for item in found.items if isinstance(item, BarSpan)]
    assert len(kept) <= SPANS + 2 * KEPT
    assert [span.description.reveal() for span in kept[-KEPT:]] == [f"part {n}" for n in range(1000 - KEPT, 1000)]
    assert found.warnings[0].values == {"count": 1000 - len(kept)}


@pytest.mark.usefixtures("few")
def test_bars_each_of_a_new_total(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are no bar that goes on; beyond a bound only the newest are kept."""
    monkeypatch.setattr(items, "MAX_SKIPS", 100)
    rows = [bar("mugs", 1, 2 + n, 1, "") for n in range(1000)]
    found = scan(["".join(rows).encode()], lexicon)
    kept = spans(found, "mugs")
    assert len(kept) <= 100 + SPANS + 2 * KEPT
    assert kept[-1].total == 1001
    assert found.warnings[0].values == {"count": 1000 - len(kept)}


@pytest.mark.usefixtures("few")
def test_what_was_going_on_before_an_event_is_kept(lexicon: Lexicon) -> None:
    """A preview that ends in an error, in the middle of many that do not."""
    preview = "\n" + bar("Generating Images", 1, 2, 1, "") + "\x1b[A"
    rows = [bar("mugs", n, 900, n, f", loss: {n}") + preview for n in range(400)]
    rows.insert(200, "\nCUDA out of memory. Tried to allocate 2.00 GiB\n")
    found = scan([(head(config()) + "".join(rows)).encode()], lexicon)
    at = next(index for index, item in enumerate(found.items) if isinstance(item, Event) and item.role == "oom")
    before = found.items[at - 1]
    assert isinstance(before, BarSpan)
    assert before.phase == "sampling"
    main = found.items[at - 2]
    assert isinstance(main, BarSpan)
    assert main.last_n == 199


@pytest.mark.usefixtures("few")
def test_the_samples_of_a_long_attempt_are_bounded(lexicon: Lexicon) -> None:
    found = scan([cycles(1000).encode()], lexicon)
    assert sum(len(span.samples) for span in spans(found, "mugs")) < 6 * MAX_SAMPLES


def test_a_long_attempt_keeps_its_head(run: Analyse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even so there is too much, the middle of the attempt goes, and not how it was set up."""
    monkeypatch.setattr(items, "MAX_ITEMS", 400)
    monkeypatch.setattr(items, "KEPT", 40)
    analysis = run(head(config()) + training(900, range(0, 900, 2)))
    assert analysis.attempt.job_name is not None
    assert analysis.attempt.dump is not None
    assert "too_many_events" in [notice.id for notice in analysis.warnings]


def draws(log: str) -> Iterator[bytes]:
    """A log in one piece that is read together from its start."""
    yield log.encode()


def tries(log: str, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a scan looked for rows of a table."""
    made: list[Tables] = []
    begin = Tables.__init__

    def noted(self: Tables, *rest: object) -> None:
        begin(self, *rest)  # type: ignore[arg-type]
        made.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "__init__", noted)
        scan(draws(log), lexicon, bulk_from=0)
    return sum(tables.tries for tables in made)


@pytest.mark.parametrize(
    "rows",
    [
        [bar(f"part {n}", 9, 20, 9, "") for n in range(3000)],
        [bar(f"mugs{n % 10}", n // 10, 900, 9, "") for n in range(3000)],
        [bar("mugs", n % 50, 50 + n, 9, "") for n in range(3000)],
    ],
    ids=["new names", "names in turn", "new totals"],
)
def test_rows_are_not_sought_behind_each_draw(
    rows: list[str], lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < tries("".join(rows), lexicon, monkeypatch) <= (len(rows) + MAX_CREDIT) // TRY


def test_rows_are_found_again_behind_bars_that_change(lexicon: Lexicon) -> None:
    rows = [bar(f"part {n}", 9, 20, 9, "") for n in range(3000)]
    rows += [bar("mugs", 1000 + n, 9999, 9, ", loss: 1.0") for n in range(3000)]
    pieces = list(Cutter(lexicon.bars, bulk_from=0).feed("".join(rows).encode()))
    assert sum(isinstance(piece, tuple) for piece in pieces) < 3000 + MAX_PRICE + TRY


def test_names_are_read_once_also_where_there_are_many(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    read = Bars._read_name

    def counting(self: Bars, raw: bytes) -> object:
        asked.append(raw)
        return read(self, raw)

    monkeypatch.setattr(Bars, "_read_name", counting)
    scan(["".join(bar(f"part {n}", 9, 20, 9, "") for n in range(2 * MAX_NAMES)).encode()], lexicon)
    assert len(asked) <= 2 * MAX_NAMES + 2


def test_a_bars_name_is_known_as_its_entries_know_it(lexicon: Lexicon) -> None:
    """To look for the entries' literals first changes nothing."""
    bars = [pattern for pattern in load().patterns if pattern.role == "bar" and pattern.sets.event != "bar_syntax"]
    texts = [text for pattern in bars for text in (*pattern.examples.match, *pattern.examples.no_match)]
    assert len(texts) > 20
    for text in (*texts, "mugs", "", "part 7"):
        one_by_one = next((item for item in (*lexicon.echoes, *lexicon.bar_names) if item.match(text)), None)
        assert lexicon.bar_name(text) is one_by_one
