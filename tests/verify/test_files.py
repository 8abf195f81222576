"""The files of a ticket, line by line."""

from __future__ import annotations

import pytest

from postmortem.verify.files import check


def differs(sent: str, made: str, plain: str = "") -> list[tuple[str | None, str | None]]:
    found = check({"report.md": sent.encode()}, {"report.md": made}, lambda: {"report.md": plain or made})
    return [(one.sent, one.made) for one in found]


@pytest.mark.parametrize(
    ("sent", "made", "plain"),
    [
        ("24 GB\n", "24 GB\n", ""),
        ("by <user-3>", "by <user-1>", "by anna"),
        ("by &lt;user-3&gt;", "by &lt;user-1&gt;", "by anna"),
        ("by <user-1> at 3", "by anna at 3", "by anna at 3"),
        ("by anna at 3", "by <user-1> at 3", "by anna at 3"),
        ("<host-1>: <user-1>", "box: anna", "box: anna"),
        ("a " * 50 + "<user-1> " + "b" * 90 + "…", "a " * 50 + "tamsin " + "b" * 92 + "…", ""),
    ],
)
def test_a_line_that_the_log_gives(sent: str, made: str, plain: str) -> None:
    assert differs(sent, made, plain) == []


@pytest.mark.parametrize(
    ("sent", "made", "plain"),
    [
        ("24 GB", "12 GB", ""),
        ("by <user-1>, 24 GB", "by <user-1>, 12 GB", "by anna, 12 GB"),
        ("by <user-1>", "by <host-1>", "on box"),
        ("by anna <user-1>", "by anna", "by anna"),
        ("one<user-1>", "one", "one"),
        ("it has <user-1> GiB", "it has 24.5 GiB", "it has 24.5 GiB"),
        ("<user-1> of <user-2>", "3 of anna", "3 of anna"),
        ("it is <user-1> 24…", "it is anna 12…", "it is anna 12…"),
    ],
)
def test_a_line_that_it_does_not_give(sent: str, made: str, plain: str) -> None:
    assert differs(sent, made, plain) == [(sent, made)]


def test_lines_too_many_or_too_few_and_files_that_are_missing() -> None:
    assert differs("a\nb", "a") == [("b", None)]
    assert differs("a", "a\nb") == [(None, "b")]
    assert [one.name for one in check({}, {"README.txt": "a\nb"}, dict)] == ["README.txt"]
    assert len(differs("x\n" * 99, "y\n" * 99)) == 5
