"""Which runs a tree holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from postmortem.fleet import places
from postmortem.fleet.find import Passed, find
from postmortem.intake import IntakeError


def run(folder: Path, text: str = "log") -> Path:
    folder.mkdir(parents=True)
    (folder / "log.txt").write_text(text)
    return folder


def names(root: Path, **options: object) -> list[str]:
    return [target.name for target in find([root], **options)]  # type: ignore[arg-type]


def test_run_folders_loose_logs_and_archives_in_the_order_of_their_names(tmp_path: Path) -> None:
    run(tmp_path / "run_10")
    run(tmp_path / "run_2")
    (tmp_path / "a.log").write_text("x")
    (tmp_path / "old.tar.gz").write_bytes(b"x")
    assert names(tmp_path) == ["a.log", "old.tar.gz", "run_2", "run_10"]


def test_the_attempts_of_a_run_are_one(tmp_path: Path) -> None:
    folder = run(tmp_path / "job")
    (folder / "logs").mkdir()
    (folder / "logs" / "0_log.txt").write_text("old")
    (target,) = find([tmp_path])
    assert target.kind == "folder" and target.bytes == len("old") + len("log")


def test_captions_and_what_is_no_log_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"x")
    (tmp_path / "cat.txt").write_text("a cat")
    (tmp_path / "requirements.txt").write_text("torch")
    (tmp_path / "notes.md").write_text("x")
    assert names(tmp_path) == []


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    folder = run(tmp_path / "job")
    (folder / "again").symlink_to(tmp_path)
    assert names(tmp_path) == ["job"]


def test_a_pipe_is_no_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "live.log")
    assert names(tmp_path) == []


def test_include_exclude_and_since(tmp_path: Path) -> None:
    run(tmp_path / "flux_a")
    run(tmp_path / "flux_b")
    old = run(tmp_path / "wan")
    os.utime(old / "log.txt", (1000, 1000))
    assert names(tmp_path, include=["flux*"]) == ["flux_a", "flux_b"]
    assert names(tmp_path, exclude=["*_b"]) == ["flux_a", "wan"]
    assert names(tmp_path, since=2000.0) == ["flux_a", "flux_b"]


def test_a_changed_file_changes_the_signature(tmp_path: Path) -> None:
    folder = run(tmp_path / "job")
    before = [target.signature for target in find([tmp_path])]
    (folder / "job_000000500.safetensors").write_bytes(b"x")
    assert [target.signature for target in find([tmp_path])] != before


def test_a_root_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(IntakeError, match="no such file"):
        list(find([tmp_path / "none"]))


class Listed:  # as `places.Entry`
    """An entry of a listing on Windows: it says size and time, and not which file it is."""

    def __init__(self, entry: places.Entry) -> None:
        self._entry = entry
        self.name, self.path = entry.name, entry.path
        self.is_dir, self.is_file = entry.is_dir, entry.is_file

    def stat(self) -> os.stat_result:
        found = list(os.stat(self.path))  # noqa: PTH116
        found[1] = found[2] = 0  # st_ino, st_dev
        return os.stat_result(found)


def test_a_listing_that_does_not_tell_files_apart_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_text("x")
    (tmp_path / "b.log").write_text("y")
    os.link(tmp_path / "b.log", tmp_path / "c.log")
    listed = places.LocalPlace.entries
    monkeypatch.setattr(places.LocalPlace, "entries", lambda place: [Listed(entry) for entry in listed(place)])
    assert names(tmp_path) == ["a.log", "b.log"]


def test_a_checkpoint_that_goes_while_it_is_listed_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run(tmp_path / "job")
    gone = folder / "job_000000250.safetensors"
    gone.write_bytes(b"x")
    listed = places.LocalPlace.entries

    def late(place: places.LocalPlace) -> list[places.Entry]:
        entries = list(listed(place))
        for entry in entries:
            entry.is_file()
        if Path(place.path) == folder:
            gone.unlink()
        return entries

    monkeypatch.setattr(places.LocalPlace, "entries", late)
    assert names(tmp_path) == ["job"]


def test_the_same_size_and_time_with_other_bytes_is_another_signature(tmp_path: Path) -> None:
    log = run(tmp_path / "job", "one") / "log.txt"
    before, (first,) = log.stat(), find([tmp_path])
    log.write_text("two")
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    (second,) = find([tmp_path])
    assert second.signature != first.signature


def test_what_the_database_has_in_its_write_ahead_log_alone_is_seen(tmp_path: Path) -> None:
    run(tmp_path / "output" / "job")
    (tmp_path / "aitk_db.db").write_bytes(b"x")
    (before,) = find([tmp_path])
    (tmp_path / "aitk_db.db-wal").write_bytes(b"more")
    (after,) = find([tmp_path])
    assert after.signature != before.signature


def test_a_deep_tree_is_walked_to_its_end(tmp_path: Path) -> None:
    run(tmp_path.joinpath(*["d"] * 120))
    assert names(tmp_path) == ["/".join(["d"] * 120)]


def test_links_out_of_the_root_are_counted_and_not_followed(tmp_path: Path) -> None:
    """A link to elsewhere would walk the machine, or read what never ends; one that stays inside is another name."""
    root = tmp_path / "root"
    run(root / "job")
    run(tmp_path / "other" / "outside")
    (tmp_path / "other" / "a.log").write_text("x")
    (root / "out").symlink_to("../other")
    (root / "all").symlink_to("/")
    (root / "up").symlink_to("..")
    (root / "b.log").symlink_to("../other/a.log")
    (root / "kernel.log").symlink_to("/proc/self/status")
    (root / "cat.png").symlink_to("../other/a.log")
    (root / "gone.log").symlink_to("nothing")
    os.mkfifo(root / "live")
    (root / "pipe.log").symlink_to("live")
    (root / "inner").symlink_to("job")
    (root / "c.log").symlink_to("job/log.txt")
    passed = Passed()
    assert [target.name for target in find([root], passed=passed)] == ["c.log", "inner"]
    assert (passed.links, passed.unread) == (7, {})


def test_a_root_that_is_a_link_is_what_was_asked_for(tmp_path: Path) -> None:
    run(tmp_path / "there" / "job")
    (tmp_path / "root").symlink_to("there")
    passed = Passed()
    assert [target.name for target in find([tmp_path / "root"], passed=passed)] == ["job"]
    assert passed.links == 0


def test_a_run_takes_no_log_from_outside(tmp_path: Path) -> None:
    """As a run folder that is given alone: a link out of it is no log of its own."""
    (tmp_path / "secret.txt").write_text("x")
    root = tmp_path / "root"
    (root / "bare").mkdir(parents=True)
    (root / "bare" / "log.txt").symlink_to("../../secret.txt")
    (root / "old" / "logs").mkdir(parents=True)
    (root / "old" / "logs" / "0_log.txt").write_text("old")
    (root / "old" / "log.txt").symlink_to("../../secret.txt")
    passed = Passed()
    found = list(find([root], passed=passed))
    assert [(one.name, one.kind, one.bytes) for one in found] == [("old", "folder", 3)]
    assert passed.links == 2


def test_what_cannot_be_read_is_named_and_the_rest_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "a")
    (tmp_path / "a" / "logs").mkdir()
    run(tmp_path / "shut")
    run(tmp_path / "z")
    closed = {str(tmp_path / "a" / "logs"), str(tmp_path / "shut")}
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path) in closed:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    passed = Passed()
    assert [target.name for target in find([tmp_path], passed=passed)] == ["a", "z"]
    assert passed.unread == {"a/logs": "permission denied", "shut": "permission denied"}
    with pytest.raises(IntakeError, match=r"shut: permission denied$"):
        list(find([tmp_path / "shut"]))


def test_a_url_of_this_machine_is_a_folder_like_any_other(tmp_path: Path) -> None:
    run(tmp_path / "root" / "job")
    run(tmp_path / "other")
    (tmp_path / "root" / "out").symlink_to("../other")
    passed = Passed()
    found = list(find([(tmp_path / "root").as_uri()], passed=passed))
    assert [(one.name, one.path) for one in found] == [("job", str(tmp_path / "root" / "job"))]
    assert passed.links == 1
    with pytest.raises(IntakeError, match="another machine"):
        list(find(["file://elsewhere/runs"]))
