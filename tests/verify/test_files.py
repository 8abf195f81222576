"""The files of a ticket, line by line."""

from __future__ import annotations

import pytest

from postmortem.verify.compare import Labels
from postmortem.verify.files import check


def differs(sent: str, made: str) -> list[tuple[str | None, str | None]]:
    found = check({"report.md": sent.encode()}, {"report.md": made}, Labels())
    return [(one.sent, one.made) for one in found]


@pytest.mark.parametrize(
    ("sent", "made"),
    [
        ("24 GB\n", "24 GB\n"),
        ("by <user-3>", "by <user-1>"),
        ("by &lt;user-3&gt;", "by &lt;user-1&gt;"),
        ("<user-2> <user-1>\n<user-2>", "<user-1> <user-2>\n<user-1>"),
        ("a line that goes on…", "a line that goes on…"),
    ],
)
def test_a_line_that_the_log_gives(sent: str, made: str) -> None:
    assert differs(sent, made) == []


@pytest.mark.parametrize(
    ("sent", "made"),
    [
        ("24 GB", "12 GB"),
        ("by <user-1>, 24 GB", "by <user-1>, 12 GB"),
        ("by <user-1>", "by <host-1>"),
        ("by <user-1>", "by anna"),
        ("by anna", "by <user-1>"),
        ("<a-1>", "our own words"),
        ("<a-1>", '<meta http-equiv="Content-Security-Policy" content="default-src">'),
        ("one<user-1>", "one"),
        ("&lt;user-1&gt;", "<user-1>"),
        ("it goes on… <script>", "it goes on…"),
        ("<a-1>it goes on… and on", "so it goes on…"),
        ("<user-1> and <user-1>", "<user-1> and <user-2>"),
        ("<user-1> and <user-2>", "<user-1> and <user-1>"),
    ],
)
def test_a_line_that_it_does_not_give(sent: str, made: str) -> None:
    assert differs(sent, made) == [(sent, made)]


def test_a_label_stands_for_one_thing_in_all_files() -> None:
    sent = {"README.txt": b"&lt;user-2&gt;", "report.md": b"<user-2>"}
    made = {"README.txt": "&lt;user-1&gt;", "report.md": "<user-2>"}
    assert [one.name for one in check(sent, made, Labels())] == ["report.md"]


def test_lines_too_many_or_too_few_and_files_that_are_missing() -> None:
    assert differs("a\nb", "a") == [("b", None)]
    assert differs("a", "a\nb") == [(None, "b")]
    assert [one.name for one in check({}, {"README.txt": "a\nb"}, Labels())] == ["README.txt"]
    assert len(differs("x\n" * 99, "y\n" * 99)) == 5
