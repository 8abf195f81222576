"""Messages that a terminal or a mail program broke over lines keep their sizes."""

from __future__ import annotations

import textwrap

import pytest

from tests.conftest import Analyse
from tests.timeline.test_attempts import SIZES

MESSAGE = f"torch.OutOfMemoryError: {SIZES}"


@pytest.mark.parametrize("width", [72, 80, 100, 132])
@pytest.mark.parametrize("hard", [True, False])
def test_sizes_survive_wrapping(run: Analyse, width: int, hard: bool) -> None:
    if hard:
        lines = [MESSAGE[start : start + width] for start in range(0, len(MESSAGE), width)]
    else:
        lines = textwrap.wrap(MESSAGE, width)
    whole = run(MESSAGE).diagnosis.memory_mib
    assert run("\n".join(lines) + "\n\nthanks for any help!\n").diagnosis.memory_mib == whole
    assert run("\n\n".join(lines) + "\n").diagnosis.memory_mib == whole


def test_the_next_message_is_not_eaten(run: Analyse) -> None:
    analysis = run(f"{MESSAGE[:70]}\nRuntimeError: CUDA error: out of memory\n")
    assert analysis.diagnosis.memory_mib["gpu_total"] is None


@pytest.mark.parametrize("cut", ["row, abo\nrting training", "row,\naborting training", "ro\nw, aborting training"])
def test_an_abort_that_a_terminal_or_a_mail_program_broke(run: Analyse, cut: str) -> None:
    """Too few lines to tell the width; a terminal breaks in the middle of a word."""
    found = run(f"RuntimeError: OOM during training step 3 times in a {cut}\n$ \n").diagnosis
    assert (found.kind, found.phase, found.trainer) == ("gpu_oom", "training_step", "ai-toolkit")
