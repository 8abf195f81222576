"""Runs in a store come out as the same runs in a folder do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from postmortem.fleet import work as working
from postmortem.fleet.cache import Cache
from postmortem.fleet.find import find
from postmortem.fleet.run import rows_of
from postmortem.intake import IntakeError, Unreachable, remote
from postmortem.scan import Lexicon
from tests.fleet import trees

fsspec = pytest.importorskip("fsspec")
STORE = "memory://bucket/runs"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    """The mixed tree in a store, and in the folder beside it."""
    files = fsspec.filesystem("memory")
    files.put(str(trees.mixed(tmp_path / "runs")), STORE, recursive=True)
    yield STORE
    files.rm("memory://bucket", recursive=True)


def test_the_runs_are_those_of_the_folder(store: str, tmp_path: Path) -> None:
    here = {target.name: target for target in find([tmp_path / "runs"])}
    there = {target.name: target for target in find([store])}
    assert list(there) == list(here)
    assert [one.bytes for one in there.values()] == [one.bytes for one in here.values()]
    assert [(one.kind, one.sure) for one in there.values()] == [(one.kind, one.sure) for one in here.values()]
    assert there["run_0"].path == f"{STORE}/run_0"
    assert there["run_0"].files == (
        ("logs/0_log.txt", here_size(tmp_path, "logs/0_log.txt")),
        ("log.txt", here_size(tmp_path, "log.txt")),
    )
    assert all(one.signature for one in there.values())


def here_size(tmp_path: Path, name: str) -> int:
    return (tmp_path / "runs" / "run_0" / name).stat().st_size


def test_the_rows_are_those_of_the_folder_but_for_the_path(store: str, lexicon: Lexicon, tmp_path: Path) -> None:
    here = list(rows_of(find([tmp_path / "runs"]), lexicon, Cache("v", None), 1))
    there = list(rows_of(find([store]), lexicon, Cache("v", None), 1))
    assert [msgspec.structs.replace(row, path="") for row in there] == [
        msgspec.structs.replace(row, path="") for row in here
    ]
    assert {row.path.startswith(STORE) for row in there} == {True}
    assert sum(row.status == "error" for row in there) == 2


def test_one_file_and_one_run_may_be_named(store: str) -> None:
    assert [target.name for target in find([f"{store}/loose.log"])] == ["loose.log"]
    assert [(target.name, target.kind) for target in find([f"{store}/run_0"])] == [("run_0", "folder")]


def test_what_is_not_there_is_said(store: str) -> None:
    with pytest.raises(IntakeError, match=r"memory://bucket/none: not found there"):
        list(find(["memory://bucket/none"]))
    with pytest.raises(IntakeError, match="no such kind of URL"):
        list(find(["nothing://x"]))


def test_a_listing_that_fails_loses_no_run_without_a_word(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(fsspec.get_filesystem_class("memory"), "find", fails)
    with pytest.raises(IntakeError, match="cannot be reached"):
        list(find([store]))


def test_a_store_that_does_not_answer_is_asked_again(
    store: str, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = {f"{STORE}/run_3": 2, f"{STORE}/run_4": 99}
    opened = remote.open_url
    pauses: list[float] = []

    def open_url(url: str, limits: object = None, files: tuple[tuple[str, int], ...] = ()) -> object:
        if left.get(url, 0):
            left[url] -= 1
            raise Unreachable(f"{url}: cannot be reached")
        return opened(url, files=files)

    monkeypatch.setattr(remote, "open_url", open_url)
    monkeypatch.setattr("postmortem.fleet.work.time.sleep", pauses.append)
    rows = {row.run: row for row in rows_of(find([store]), lexicon, Cache("v", None), 1)}
    assert rows["run_3"].kind == "gpu_oom"
    assert (rows["run_4"].status, rows["run_4"].error) == ("error", "cannot be reached")
    assert pauses == [1, 4, 1, 4]


def test_a_password_in_a_url_is_in_no_row() -> None:
    assert working.shown("ftp://user:secret@host/log.txt?sig=abc") == "ftp://host/log.txt"


def test_a_file_and_a_folder_of_one_name_are_both_kept() -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/odd/top/a.log", b"x")
    files.pipe("/odd/top/b.log/log.txt", b"y")
    try:
        assert [target.name for target in find(["memory://odd"])] == ["top/a.log", "top/b.log"]
    finally:
        files.rm("/odd", recursive=True)
