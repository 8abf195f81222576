"""What a label can stand for in a text of the log."""

from __future__ import annotations

import pytest

from postmortem.verify.hidden import fits


@pytest.mark.parametrize(
    ("sent", "original", "same"),
    [
        ("saved to /home/<user-1>/out", "saved to /home/alice/out", True),
        ("<job-1>: 3/20", "vase_v2: 3/20", True),
        ("of <user-1> and <user-1>", "of bob and bob", True),
        ("of <user-1> and <user-1>", "of bob and eve", False),
        ("of <user-1> and <user-2>", "of bob and eve", True),
        ("saved to /home/<user-1>/in", "saved to /home/alice/out", False),
        ("<text-1>", "CUDA out of memory", False),
        ("<text-1>", "x" * 200, False),
        ("no label", "no label", False),
        ("<user-1><user-2>", "ab", False),
        ("a <user-1>", "a ", False),
    ],
)
def test_a_label_stands_for_one_word_or_path(sent: str, original: str, same: bool) -> None:
    assert fits(sent, original, {}) is same


def test_a_label_stands_for_the_same_thing_in_all_texts() -> None:
    known: dict[str, str] = {}
    assert fits("by <user-1>", "by alice", known)
    assert fits("<user-1> again", "Alice again", known)
    assert not fits("<user-1> again", "bob again", known)
