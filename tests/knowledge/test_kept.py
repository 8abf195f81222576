"""What is kept of the knowledge base between runs: the same knowledge, never of files as they were before."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postmortem.knowledge import kept, load
from postmortem.knowledge import load as loading
from postmortem.knowledge.schema import Knowledge

ENTRY = "patterns: [{id: own.entry, role: oom, regex: REGEX, source: s, examples: {match: [x]}}]\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("POSTMORTEM_NO_CACHE", raising=False)
    return tmp_path / "cache" / "postmortem"


@pytest.fixture
def pack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack of one file, taken for one that was written long ago."""
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "own.yaml").write_text(ENTRY.replace("REGEX", "first"), encoding="utf-8")
    monkeypatch.setattr(kept, "RACY_S", -1.0)
    return folder


def said(knowledge: Knowledge) -> dict[str, Any]:
    """All that it says, to be compared."""
    return msgspec.structs.asdict(knowledge)


def own_regex(knowledge: Knowledge) -> str:
    """The expression of the pack's entry."""
    return next(entry.regex for entry in knowledge.patterns if entry.id == "own.entry")


def not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, to read a file of patterns or to compile fails."""

    def fail(*_: object) -> None:
        raise AssertionError("the files were read")

    monkeypatch.setattr(loading, "_key", fail)
    monkeypatch.setattr(loading, "_compile", fail)


def test_the_same_knowledge_comes_back(home: Path) -> None:
    first = load.load()
    second = load.load()
    assert said(second) == said(first) == said(load.load(cache=False))
    assert second.version == first.version
    assert dict(second.texts) == dict(first.texts) and sorted(second.texts) == sorted(first.texts)
    assert "xx" not in second.texts and second.texts.get("xx") is None
    assert len(list(home.glob("knowledge-*"))) >= 1


def test_what_is_damaged_is_made_anew(home: Path, pack: Path) -> None:
    first = said(load.load(pack))
    for stored in home.glob("knowledge-*"):
        stored.write_bytes(b"\x93broken")
    assert said(load.load(pack)) == first
    for stored in home.glob("knowledge-*"):
        stored.write_bytes(b"")
    assert said(load.load(pack)) == first


def compiled(home: Path) -> Path:
    """The one file of what is compiled."""
    (found,) = (file for file in home.glob("knowledge-*") if not file.name.startswith("knowledge-at-"))
    return found


def test_a_flipped_bit_anywhere_is_seen_and_the_file_made_anew(home: Path, pack: Path) -> None:
    first = load.load(pack)
    expected, texts = said(first), {language: dict(first.texts[language]) for language in first.texts}
    whole = compiled(home).read_bytes()
    marks = (b"\xa2en", b"\xa2ko", b"out of memory")
    places = [0, len(whole) // 2, len(whole) - 1, *(whole.index(mark) + len(mark) + 1 for mark in marks)]
    for place in places:
        wrong = bytearray(whole)
        wrong[place] ^= 0x20
        compiled(home).write_bytes(wrong)
        again = load.load(pack)
        assert said(again) == expected
        assert {language: dict(again.texts[language]) for language in again.texts} == texts
        assert compiled(home).read_bytes() == whole
    compiled(home).write_bytes(whole[:-1])
    assert said(load.load(pack)) == expected


def test_what_was_kept_under_another_key_is_not_taken(home: Path, pack: Path) -> None:
    load.load()
    other = compiled(home).read_bytes()
    assert own_regex(load.load(pack)) == "first"
    (theirs,) = (file for file in home.glob("knowledge-*-cpython*") if file.read_bytes() != other)
    theirs.write_bytes(other)
    assert own_regex(load.load(pack)) == "first"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such things there")
def test_only_files_are_opened(home: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(load.load(pack))
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        for stored in list(home.glob("knowledge-*")):
            stored.unlink()
            make(stored)
        assert said(load.load(pack)) == expected
        assert all(stored.is_file() and not stored.is_symlink() for stored in home.glob("knowledge-*"))
    for stored in list(home.glob("knowledge-*")):
        stored.unlink()
        stored.mkdir()
    assert said(load.load(pack)) == expected
    for stored in list(home.glob("knowledge-*")):
        stored.rmdir()
    load.load(pack)
    monkeypatch.setattr(kept, "MAX_BYTES", 100)
    assert said(load.load(pack)) == expected


@pytest.mark.skipif(os.name != "posix", reason="elsewhere a stamp would not be safe")
def test_files_that_stand_as_they_stood_are_not_read(home: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = said(load.load(pack))
    not_read(monkeypatch)
    assert said(load.load(pack)) == first


def test_a_change_is_seen_at_once_also_when_size_and_time_stay(home: Path, pack: Path) -> None:
    file = pack / "own.yaml"
    before = file.stat()
    assert own_regex(load.load(pack)) == "first"
    file.write_text(ENTRY.replace("REGEX", "other"), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size and file.stat().st_mtime_ns == before.st_mtime_ns
    assert own_regex(load.load(pack)) == "other"
    replacement = pack / "new"
    replacement.write_text(ENTRY.replace("REGEX", "third"), encoding="utf-8")
    os.utime(replacement, ns=(before.st_atime_ns, before.st_mtime_ns))
    replacement.replace(file)
    assert own_regex(load.load(pack)) == "third"


def test_a_file_that_comes_goes_or_is_linked_anew_is_seen(home: Path, pack: Path) -> None:
    load.load(pack)
    (pack / "more").mkdir()
    (pack / "more" / "z.yaml").write_text(ENTRY.replace("REGEX", "later"), encoding="utf-8")
    assert own_regex(load.load(pack)) == "first", "the entry of the later path stands"
    (pack / "own.yaml").unlink()
    assert own_regex(load.load(pack)) == "later"
    for word in ("one", "two"):
        (pack / word).write_text(ENTRY.replace("REGEX", word), encoding="utf-8")
    (pack / "more" / "z.yaml").unlink()
    for word in ("one", "two"):
        (pack / "link.yaml").unlink(missing_ok=True)
        (pack / "link.yaml").symlink_to(pack / word)
        assert own_regex(load.load(pack)) == word


def test_a_file_that_has_just_changed_is_read(home: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "RACY_S", 3600.0)
    load.load(pack)
    assert not list(home.glob("knowledge-at-*"))


def test_two_packs_do_not_get_in_each_others_way(home: Path, pack: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "own.yaml").write_text(ENTRY.replace("REGEX", "their"), encoding="utf-8")
    for _ in range(2):
        assert own_regex(load.load(pack)) == "first"
        assert own_regex(load.load(other)) == "their"
        assert all(entry.id != "own.entry" for entry in load.load().patterns)


def test_without_a_place_to_keep_it_all_works_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(load.load(cache=False))
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    monkeypatch.delenv("POSTMORTEM_NO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert said(load.load()) == expected
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert said(load.load()) == expected
    monkeypatch.setenv("POSTMORTEM_NO_CACHE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "unused"))
    assert said(load.load()) == expected and not (tmp_path / "unused").exists()


def test_what_nobody_has_made_for_long_is_taken_away(home: Path) -> None:
    home.mkdir(parents=True)
    old, new = home / "knowledge-old", home / "knowledge-new"
    for file in (old, new):
        file.write_bytes(b"")
    long_ago = time.time() - 2 * kept.KEEP_S
    os.utime(old, (long_ago, long_ago))
    load.load()
    assert not old.exists() and new.exists()


@pytest.mark.parametrize("error", [OSError(28, "no space"), KeyboardInterrupt(), MemoryError()])
def test_what_cannot_be_kept_leaves_nothing_behind(
    error: BaseException, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    if isinstance(error, OSError):
        load.load()
    else:
        with pytest.raises(type(error)):
            load.load()
    assert list(home.iterdir()) == []


def test_what_a_killed_start_was_writing_goes_once_it_is_old(home: Path) -> None:
    home.mkdir(parents=True)
    old, new = home / ".knowledge-abc", home / ".knowledge-def"
    for half in (old, new):
        half.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    load.load()
    assert (old.exists(), new.exists()) == (False, True)
