"""What the labels in the name of a sender's input stand for, by where they stand in the rest."""

from __future__ import annotations

import pytest

from postmortem.verify.hidden import labels_in, names


def named(sent: str, made: str) -> dict[str, str]:
    return names([(sent, made)], ["<user-1>", "<folder-1>"])


@pytest.mark.parametrize(
    ("sent", "made", "found"),
    [
        ("by <user-1> at 3", "by anna at 3", {"<user-1>": "anna"}),
        ("by <user-1>", "by <user-2>", {"<user-1>": "<user-2>"}),
        ("<host-1>: <user-1>", "<host-4>: anna lee", {"<user-1>": "anna lee"}),
        ("<user-1> and <user-1>", "anna and anna", {"<user-1>": "anna"}),
        ("/<folder-1>/<user-1>/x", "/<folder-2>/anna/x", {"<folder-1>": "<folder-2>", "<user-1>": "anna"}),
    ],
)
def test_what_a_label_stands_for(sent: str, made: str, found: dict[str, str]) -> None:
    assert named(sent, made) == found


@pytest.mark.parametrize(
    ("sent", "made"),
    [
        ("by <user-1>", "by <host-2>"),
        ("by <user-1> at 3", "by anna at 4"),
        ("<user-1> and <user-1>", "anna and eve"),
        ("<user-2>", "anna"),
        ("it has <user-1> GiB", "it has 24.5 GiB"),
        ("<user-1>", "one two three four"),
        ("<user-1>", "x" * 200),
        ("<user-1>", "a\nb"),
        ("<user-1><folder-1>", "ab"),
        ("a <user-1>", "a "),
        ("a", "a"),
    ],
)
def test_what_tells_nothing(sent: str, made: str) -> None:
    assert named(sent, made) == {}


def test_the_labels_of_a_source() -> None:
    assert labels_in("/home/<user-1>/<folder-2>/<user-1>.log") == ["<user-1>", "<folder-2>"]
    assert labels_in(None) == []
    assert len(labels_in("".join(f"<user-{at}>" for at in range(99)))) == 12
