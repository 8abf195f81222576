"""What Python prints of an exception group: the errors in it are read like those of a traceback."""

from __future__ import annotations

import pytest

from postmortem.model import Event, Traceback
from postmortem.scan import Lexicon, scan
from tests.conftest import Analyse
from tests.simulate import config, head, training

SIZES = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 MiB is free."
)
ONE = f"""\
  + Exception Group Traceback (most recent call last):
  |   File "/opt/ai-toolkit/run.py", line 27, in main
  |     job.run()
  |     ^^^^^^^^^
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/opt/ai-toolkit/extensions_built_in/sd_trainer/SDTrainer.py", line 8, in train_single_accumulation
    |     loss.backward()
    | torch.OutOfMemoryError: {SIZES}
    +------------------------------------
"""
NESTED = f"""\
  + Exception Group Traceback (most recent call last):
  |   File "/opt/ai-toolkit/run.py", line 23, in <module>
  |     raise ExceptionGroup("outer", errors)
  | ExceptionGroup: outer (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Exception Group Traceback (most recent call last):
    |   File "/opt/ai-toolkit/run.py", line 19, in <module>
    |     job.run()
    | ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions)
    +-+---------------- 1 ----------------
      | Traceback (most recent call last):
      |   File "/opt/ai-toolkit/extensions_built_in/sd_trainer/SDTrainer.py", line 8, in train_single_accumulation
      |     loss.backward()
      | torch.OutOfMemoryError: {SIZES}
      +---------------- 2 ----------------
      | Traceback (most recent call last):
      |   File "/opt/ai-toolkit/toolkit/saver.py", line 13, in write
      |     int("x")
      | ValueError: invalid literal for int() with base 10: 'x'
      +------------------------------------
    +---------------- 2 ----------------
    | RuntimeError: boom
    +------------------------------------
"""


def ranked(text: str) -> str:
    return "".join(f"[rank0]: {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("text", [ONE, NESTED, ranked(ONE), ranked(NESTED)], ids=["one", "nested", "rank", "ranks"])
def test_memory_that_ran_out_within_a_group(text: str, run: Analyse) -> None:
    failure = run(head(config()) + training(400, [])[:9000] + "\n" + text).diagnosis
    assert (failure.kind, failure.phase, failure.signature) == ("gpu_oom", "training_step", "torch.cuda_oom")


@pytest.mark.parametrize("text", [ONE, NESTED], ids=["one", "nested"])
def test_the_frames_are_those_of_the_error_itself(text: str, lexicon: Lexicon) -> None:
    found = scan([text.encode()], lexicon).items
    closed = [item for item in found if isinstance(item, Traceback) and item.exception is not None]
    (frame,) = closed[0].frames
    assert (frame.function, frame.number, frame.code.reveal()) == ("train_single_accumulation", 8, "loss.backward()")


def test_the_others_of_a_group_are_its_errors_too(lexicon: Lexicon) -> None:
    found = scan([NESTED.encode()], lexicon).items
    assert [item.exception for item in found if isinstance(item, Event) and item.exception] == [
        "torch.OutOfMemoryError",
        "ValueError",
        "RuntimeError",
    ]


@pytest.mark.parametrize("row", ["  | Name | Type", "  | Killed", "| Traceback (most recent call last):", "  |"])
def test_a_table_with_an_edge_is_no_group(row: str, lexicon: Lexicon) -> None:
    assert lexicon.peel_prefix(row) == row
