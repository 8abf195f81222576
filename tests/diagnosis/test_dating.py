"""Which version a log is of, by what only that version prints; and what follows for known regressions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postmortem.diagnosis.dating import bounds, release
from postmortem.knowledge.history import History
from postmortem.knowledge.schema import Dating, Knowledge, Regression
from postmortem.model import Dated
from postmortem.pipeline import Analysis
from postmortem.report import build, json_
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.simulate import buckets, config, finished, head, training

FIXTURES = Path(__file__).parents[2] / "fixtures"
ONE = buckets({"512x512": 40})
TRACE = "Traceback (most recent call last):\n"


def opening(name: str = "mugs") -> str:
    """The first lines of a run, up to those that only its family prints."""
    return head(config(), name).split("Loading ")[0]


def frame(path: str, number: int, function: str, code: str) -> str:
    return f'  File "/srv/ai-toolkit/{path}", line {number}, in {function}\n    {code}\n'


RUN_NEW = frame("run.py", 147, "<module>", "main()")
"""As it stood from March 2026 on."""
RUN_2025 = frame("run.py", 120, "<module>", "main()")
STEP_2025 = frame("jobs/process/BaseSDTrainProcess.py", 2139, "run", "loss_dict = self.hook_train_loop(batch_list)")
"""As it stood for a week of September 2025."""
KEY = "KeyError: 'x'\n"


def dated(analysis: Analysis) -> Dated:
    found = analysis.diagnosis.dated
    assert found is not None
    return found


def test_code_lines_of_a_traceback_agree_on_one_week(run: Analyse) -> None:
    found = dated(run(opening() + TRACE + RUN_2025 + STEP_2025 + KEY))
    assert (found.from_, found.until) == ("2025-09-18", "2025-09-25")
    assert found.clues[-1].id == "code_line"
    line = found.clues[-1].line
    text = (opening() + TRACE + RUN_2025 + STEP_2025 + KEY).splitlines()[line - 1]
    assert "BaseSDTrainProcess.py" in text


def test_a_pasted_traceback_alone(run: Analyse) -> None:
    """The exception is read before the traceback that it closes is, and stands below it."""
    log = TRACE + RUN_2025 + STEP_2025 + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    found = run(log)
    assert found.attempt.first_line == 1
    assert dated(found).from_ is not None


def test_backslashes_and_installed_packages(run: Analyse) -> None:
    windows = (TRACE + RUN_2025 + STEP_2025).replace("/srv/ai-toolkit/", "E:\\AI\\").replace("/", "\\")
    assert dated(run(opening() + windows + KEY)).until == "2025-09-25"
    packed = STEP_2025.replace("/srv/ai-toolkit/", "/srv/venv/lib/python3.11/site-packages/")
    assert run(opening() + TRACE + packed + KEY).diagnosis.dated is None


def test_a_line_that_no_version_had_says_nothing(run: Analyse) -> None:
    other = STEP_2025.replace("batch_list)", "batches)")
    assert run(opening() + TRACE + other + KEY).diagnosis.dated is None
    shifted = STEP_2025.replace("2139", "99999")
    assert run(opening() + TRACE + shifted + KEY).diagnosis.dated is None


def test_lines_that_contradict_each_other_date_nothing_and_say_so(run: Analyse) -> None:
    analysis = run(opening() + TRACE + RUN_NEW + STEP_2025 + KEY)
    assert analysis.diagnosis.dated is None
    assert "dating_contradiction" in {notice.id for notice in analysis.warnings}


def test_a_skipped_batch_is_of_a_version_that_skips(run: Analyse) -> None:
    # steps 0 and 1 skipped: the bar then proves nothing about how it counts
    found = dated(run(opening() + ONE + training(40, {0, 1, 17}) + finished()))
    assert found.from_ == "2025-09-27" and found.from_commit == "3b1f7b0"
    assert [clue.id for clue in found.clues] == ["oom_caught"]


def test_a_handler_that_lists_its_batch_is_between_two_dates(run: Analyse) -> None:
    found = dated(run(opening() + ONE + "Batch Items:\n - /data/mugs/1.png\n"))
    assert (found.from_, found.until) == ("2025-04-07", "2025-09-27")


def test_how_the_bar_counts(run: Analyse) -> None:
    new = dated(run(opening() + ONE + training(100, []) + finished()))
    assert new.from_ == "2026-08-21" and new.until is None
    old = "".join(
        f"\rmugs:   0%|          | {max(0, step - 1)}/100 [00:{step:02}<03:18,  2.00s/it, lr: 1.0e-04 loss: {step}.0e-01]"
        f"\rmugs:   0%|          | {step}/100 [00:{step:02}<03:18,  2.00s/it, lr: 1.0e-04 loss: {step}.0e-01]"
        for step in range(40)
    )
    found = run(opening() + ONE + "mugs:   0%|          | 0/100 [00:00<?, ?it/s]" + old)
    assert dated(found).until == "2026-08-21"


@pytest.mark.parametrize(
    "quoted",
    [
        "Dataset: /data/Loading Wan2.1 model\n",
        "/data/OOM during training step, skipping batch 1/3/a.png\n",
        'a caption: "Batch Items:" and File "/srv/ai-toolkit/run.py", line 147, in <module>\n',
        "Saved checkpoint to output/Batch Items:/Quantizing blocks.safetensors\n",
    ],
)
def test_what_a_path_or_caption_quotes_dates_nothing(run: Analyse, quoted: str) -> None:
    assert run(opening() + ONE + quoted).diagnosis.dated is None


@pytest.mark.parametrize("name", ["Batch Items:", "Loading Wan2.1 model", "Quantizing blocks", "Generating Controls"])
def test_a_job_named_like_a_dated_wording(run: Analyse, name: str) -> None:
    log = opening(name) + ONE + training(40, {0, 1, 17}, name=name) + finished(name)
    found = dated(run(log))
    assert (found.from_, found.until) == ("2025-09-27", None)


def test_another_trainers_log_is_not_dated(run: Analyse) -> None:
    error = "torch.OutOfMemoryError: CUDA out of memory. " + SIZES.format("capacity")
    log = f"import network module: networks.lora\nprepare optimizer, data loader etc.\n{error}\nBatch Items:\n"
    diagnosis = run(log).diagnosis
    assert diagnosis.trainer == "kohya"
    assert (diagnosis.dated, diagnosis.torch) == (None, None)


def test_only_the_attempts_own_lines_date_it(run: Analyse) -> None:
    old = opening() + ONE + "Batch Items:\n - /data/mugs/1.png\n" + TRACE + RUN_2025 + STEP_2025 + KEY
    analysis = run(old + opening() + ONE + training(40, {0, 1, 17}) + finished(), attempt=2)
    assert dated(analysis).from_ == "2025-09-27" and dated(analysis).until is None
    assert dated(run(old + opening() + ONE + training(40, []) + finished(), attempt=1)).until == "2025-09-25"


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", ["regression-klein-load-inside", "regression-wan22-preview-inside"])
def test_chunks_do_not_change_the_date(run: Analyse, name: str, size: int) -> None:
    log = (FIXTURES / name / "log.txt").read_bytes()
    whole = run(log).diagnosis
    cut = run([log[at : at + size] for at in range(0, len(log), size)]).diagnosis
    assert whole.dated is not None
    assert (cut.dated, cut.torch, cut.regressions) == (whole.dated, whole.torch, whole.regressions)


def test_every_line_doubled_is_of_a_version_that_wrote_twice(run: Analyse) -> None:
    doubled = TRACE * 2 + '  File "/srv/x.py", line 3, in go\n' * 2 + "        go(1)go(1)\n" + KEY
    found = dated(run(opening() + ONE + doubled))
    assert found.until == "2026-07-16"
    single = TRACE + '  File "/srv/x.py", line 3, in go\n    go(1)\n' * 2 + KEY
    assert run(opening() + ONE + single).diagnosis.dated is None


SIZES = "Tried to allocate 2.00 GiB. GPU 0 has a total {} of 23.64 GiB of which 1.10 GiB is free. "


@pytest.mark.parametrize(
    ("message", "start", "end"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. " + SIZES.format("capacity"), "2.5", None),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. " + SIZES.format("capacity"), "2.2", "2.5"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. " + SIZES.format("capacty"), "2.1", "2.2"),
        ("torch.AcceleratorError: CUDA error: out of memory", "2.8", None),
        ("torch.OutOfMemoryError: CUDA out of memory. " + SIZES.format("capacity")
         + "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True", "2.10", None),
    ],
)  # fmt: skip
def test_torch_by_its_message(run: Analyse, message: str, start: str, end: str | None) -> None:
    found = run(opening() + ONE + TRACE + '  File "/srv/x.py", line 3, in go\n    go(1)\n' + message + "\n")
    assert found.diagnosis.torch is not None
    assert (found.diagnosis.torch.from_, found.diagnosis.torch.until) == (start, end)


def test_releases_are_ordered_as_numbers() -> None:
    assert release("1.13") < release("2.2") < release("2.9") < release("2.10")


def test_every_commit_and_day_of_the_knowledge_base_is_in_the_history(knowledge: Knowledge, history: History) -> None:
    entries: list[Dating | Regression] = [*knowledge.datings, *knowledge.regressions]
    for entry in entries:
        if entry.program != "ai-toolkit":
            continue
        for commit in (entry.from_commit, entry.until_commit):
            assert commit is None or history.index_of(commit) is not None, (entry.id, commit)
        start, end = bounds(entry.from_, entry.from_commit, entry.until, entry.until_commit, history)
        assert start < end, entry.id


def test_the_history_is_whole(history: History) -> None:
    assert [version.at for version in history.versions] == sorted(version.at for version in history.versions)
    assert all(version.since <= place for place, version in enumerate(history.versions))
    size = sum(path.stat().st_size for path in (FIXTURES.parent / "patterns" / "dating").iterdir())
    assert size < 300_000


def klein(run: Analyse, *, version: str) -> Analysis:
    return run((FIXTURES / f"regression-klein-load-{version}" / "log.txt").read_bytes())


def test_a_version_that_is_surely_bad_puts_the_change_first(run: Analyse) -> None:
    analysis = klein(run, version="inside")
    first = analysis.suggestions[0]
    assert (first.id, first.why) == ("change_toolkit_version", "inside")


def test_a_version_that_may_be_bad_puts_it_last(run: Analyse) -> None:
    found = {item.id: item for item in klein(run, version="unknown").suggestions}
    offer = found["change_toolkit_version"]
    assert offer.why == "possible"
    assert offer.rank > found["lower_bit_quantization"].rank


def test_a_version_that_cannot_be_bad_is_not_offered(run: Analyse) -> None:
    assert "change_toolkit_version" not in {item.id for item in klein(run, version="outside").suggestions}


def test_the_json_names_the_clues_and_the_regression(run: Analyse, knowledge: Knowledge) -> None:
    got = json.loads(json_.render(build(klein(run, version="inside"), knowledge)))
    assert got["run"]["dated"]["from"] < got["run"]["dated"]["until"] <= "2026-04-01"
    assert {"line", "id"} == set(got["run"]["dated"]["clues"][0])
    assert got["regressions"][0]["until_commit"] == "f213e3b"


def test_without_a_history_nothing_is_dated(run: Analyse, lexicon: Lexicon) -> None:
    from postmortem.pipeline import Source, analyse

    log = (FIXTURES / "regression-klein-load-inside" / "log.txt").read_bytes()
    analysis = analyse("-", [Source("log", "utf-8", [log])], [], lexicon)
    assert analysis.diagnosis.dated is None
    assert "change_toolkit_version" not in {item.id for item in analysis.suggestions}
