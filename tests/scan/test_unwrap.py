"""A copied console window, broken at a fixed width, reads like the log it was copied from."""

from __future__ import annotations

import pytest

from postmortem.scan import Lexicon, scan
from postmortem.scan.unwrap import MAX_JOINED, Breaks, breaks_of, logical_lines, width_of
from tests.conftest import Analyse
from tests.simulate import config, head
from tests.timeline.test_attempts import SIZES

TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/workspace/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 2063, in run\n'
    "    loss_dict = self.hook_train_loop(batch_list)\n"
    '  File "/workspace/ai-toolkit/extensions_built_in/sd_trainer/SDTrainer.py", line 1610, in hook_train_loop\n'
    "    loss = self.train_single_accumulation(batch)\n"
    f"torch.OutOfMemoryError: {SIZES}\n"
)
BAR = "mugs:   0%|          | 4/2000 [00:04<2:20:00,  4.20s/it, lr: 1.0e-04 loss: 4.200e-01]\n"
LOG = (
    head(config()).split("}\n", 1)[1]
    + "Generating baseline samples before training\n"
    + BAR
    + f"Error running job: {SIZES}\n"
    + TRACE
)


def broken(text: str, width: int) -> str:
    return "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width))


@pytest.mark.parametrize("width", [72, 80, 120])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_broken_log_gives_the_same_facts(run: Analyse, width: int, newline: str) -> None:
    whole, cut = run(LOG).diagnosis, run(broken(LOG, width).replace("\n", newline)).diagnosis
    assert (cut.kind, cut.phase, cut.class_, cut.step) == (whole.kind, whole.phase, whole.class_, whole.step)
    assert (cut.phase, cut.class_) == ("training_step", "early_step")
    assert cut.memory_mib == whole.memory_mib


def test_evidence_lines_are_those_of_the_broken_text(run: Analyse) -> None:
    text = broken(LOG, 80)
    lines = text.split("\n")
    for item in run(text).diagnosis.evidence:
        if item.what not in ("bar", "frame"):
            assert item.text.reveal().startswith(lines[item.line - 1][:40])


def test_an_ordinary_log_is_not_taken_for_a_broken_one() -> None:
    assert width_of(LOG.encode()) is None
    assert width_of(("#" * 70 + "\n").encode() * 2 + b"x" * 300) is None
    assert width_of(BAR.replace("mugs", "\rmugs").encode() * 50) is None


def test_lines_that_are_all_full_are_joined_only_so_far() -> None:
    data = b"\n".join([b"x" * 80] * 5000)
    joined = list(logical_lines(data, Breaks(80)))
    assert b"".join(line.joined for line in joined) == b"x" * 400_000
    assert max(len(line.joined) for line in joined) <= MAX_JOINED + 80
    assert [line.line for line in joined][:2] == [1, 206]


def test_what_was_joined_is_found_where_it_stands() -> None:
    data = b"a" * 60 + b"\r\n" + b"b" * 60 + b"\r\nccc\n"
    (line,) = logical_lines(data, Breaks(60))
    assert line.joined == b"a" * 60 + b"b" * 60 + b"ccc"
    assert line.span(58, 62) == (58, 64)
    assert line.span(120, 123) == (124, 127)
    words = b"one two\n  three\nfour five\nsix"
    found = list(logical_lines(words, Breaks(9, at_words=True)))
    for each in found:
        start, end = each.span(0, len(each.joined))
        assert words[start:end].split() == each.joined.split()


def test_a_flood_of_one_line_is_no_window(lexicon: Lexicon) -> None:
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    found = scan([f"{line}\nKilled\n".encode() * 50], lexicon)
    assert len(found.items) == 100
    assert not found.warnings


def test_a_flood_of_numbered_lines_of_one_width_is_no_window() -> None:
    flood = "".join(
        f"Error {number:04}: Found latents of one more epoch - and then the loader goes on\n" for number in range(900)
    )
    assert breaks_of(flood.encode()) is None
