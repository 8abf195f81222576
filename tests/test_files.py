"""Files are whole or as they were, with sane rights, and never where a stranger's link leads."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postmortem import files
from postmortem.cli import output
from postmortem.cli.errors import Failure
from tests.faults.hooks import Faults

posix = pytest.mark.skipif(os.name != "posix", reason="rights and links as POSIX has them")


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def give_away(link: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `link` another user's; where that is not allowed, make us another user."""
    if os.geteuid() == 0:
        os.chown(link, 4321, 4321, follow_symlinks=False)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


@posix
def test_a_new_file_has_what_the_umask_leaves_and_an_old_one_keeps_its_rights(umask: None, tmp_path: Path) -> None:
    new, old, private = tmp_path / "new", tmp_path / "old", tmp_path / "private"
    old.write_text("x")
    old.chmod(0o604)
    private.write_text("x")
    private.chmod(0o666)
    files.write_whole(b"1", new)
    files.write_whole(b"1", old)
    files.write_whole(b"1", private, private=True)
    assert [path.stat().st_mode & 0o777 for path in (new, old, private)] == [0o640, 0o604, 0o600]


@posix
def test_the_rights_of_a_strangers_file_are_not_taken_over(
    umask: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "report.md"
    theirs.write_text("x")
    theirs.chmod(0o666)
    give_away(theirs, monkeypatch)
    files.write_whole(b"1", theirs)
    assert theirs.stat().st_mode & 0o777 == 0o640


@posix
def test_ones_own_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "report.md").write_text("old")
    link = tmp_path / "link.md"
    link.symlink_to(tmp_path / "folder" / ".." / "real" / "report.md")
    output.write("new", link)
    assert link.is_symlink()
    assert (tmp_path / "real" / "report.md").read_text() == "new"
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    with pytest.raises(Failure, match="too many levels"):
        output.write("new", loop)


@posix
def test_a_strangers_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "mine"
    mine.write_text("precious")
    place = tmp_path / "tmp"
    place.mkdir()
    link = place / "report.md"
    link.symlink_to(mine)
    give_away(link, monkeypatch)
    with pytest.raises(Failure, match="another user placed"):
        output.write("new", link)
    with pytest.raises(Failure, match="another user placed"):
        output.check(link)
    assert mine.read_text() == "precious"
    assert names(place) == {"report.md"}


@posix
def test_a_strangers_folder_link_is_followed_but_not_where_all_may_place_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "volume"
    real.mkdir()
    shared = tmp_path / "tmp"
    shared.mkdir()
    for place in (tmp_path, shared):
        (place / "output").symlink_to(real)
        give_away(place / "output", monkeypatch)
    output.write("new", tmp_path / "output" / "report.md")
    assert (real / "report.md").read_text() == "new"
    shared.chmod(0o1777)
    monkeypatch.setattr(files, "_trusted", lambda link, folder, *, last: _seen_from_outside(link, folder, last=last))
    with pytest.raises(Failure, match="another user placed"):
        output.write("newer", shared / "output" / "report.md")
    assert (real / "report.md").read_text() == "new"


_TRUSTED = files._trusted


def _seen_from_outside(link: os.stat_result, folder: Path, *, last: bool) -> bool:
    """As it is where the folder is root's: the link's owner is not the folder's."""
    stranger = os.stat_result([*link[:4], link.st_uid + 7, *link[5:10]])
    return _TRUSTED(stranger, folder, last=last)


@pytest.mark.parametrize("kind", ["ENOSPC", "EIO"])
def test_nothing_is_left_of_what_failed(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.md"
    target.write_text("old")
    faults = Faults(kind, 1)

    def sync(descriptor: int) -> None:
        faults.step("fsync")

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(Failure, match=r"report\.md: cannot write: "):
        output.write("new", target)
    assert (target.read_text(), names(tmp_path)) == ("old", {"report.md"})


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        output.write("new", tmp_path / "report.md")
    assert names(tmp_path) == set()


def test_what_a_killed_process_left_goes_with_the_next_write_once_it_is_old(tmp_path: Path) -> None:
    there = [".postmortem-old.part", ".postmortem-new.part", ".postmortem-notes", "mine.part"]
    for name in there:
        (tmp_path / name).write_text("x")
        if name != ".postmortem-new.part":
            os.utime(tmp_path / name, (time.time() - 7200,) * 2)
    (tmp_path / ".postmortem-folder.part").mkdir()
    output.write("new", tmp_path / "report.md")
    left = {*there[1:], ".postmortem-folder.part", "report.md"}
    assert names(tmp_path) == left


def test_a_file_system_that_cannot_sync_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(descriptor: int) -> None:
        raise OSError(22, "invalid argument")

    monkeypatch.setattr(os, "fsync", none)
    output.write("new", tmp_path / "report.md")
    assert (tmp_path / "report.md").read_text() == "new"


@posix
def test_what_a_killed_command_unpacked_goes_once_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from postmortem.intake.archives import Home

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("postmortem-unpacked-old", "postmortem-unpacked-new", "postmortem-old", "postmortem-unpacked-theirs"):
        (tmp_path / name).mkdir(0o700)
        (tmp_path / name / "log").write_text("x")
        if name != "postmortem-unpacked-new":
            os.utime(tmp_path / name, (time.time() - 10 * 86400,) * 2)
    (tmp_path / "postmortem-unpacked-link").symlink_to(tmp_path / "postmortem-old")
    if os.geteuid() == 0:
        os.chown(tmp_path / "postmortem-unpacked-theirs", 4321, 4321)
    home = Home()
    left = {"postmortem-unpacked-new", "postmortem-old", "postmortem-unpacked-link", home.path.name}
    assert names(tmp_path) - {"postmortem-unpacked-theirs"} == left
    assert os.geteuid() != 0 or (tmp_path / "postmortem-unpacked-theirs" / "log").exists()
    assert (tmp_path / "postmortem-old" / "log").exists()
