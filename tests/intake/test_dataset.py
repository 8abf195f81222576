"""The sizes that a dataset's folder tells, and what a hostile one does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postmortem.intake.dataset import NAME, read
from postmortem.intake.errors import IntakeError


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\2\0\0\0"


def jpeg(width: int, height: int, orientation: int | None = None) -> bytes:
    exif = b""
    if orientation is not None:
        tag = b"\x01\x12\0\3\0\0\0\1" + orientation.to_bytes(2, "big") + b"\0\0"
        body = b"Exif\0\0MM\0*\0\0\0\x08\0\1" + tag
        exif = b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body
    frame = b"\xff\xc0\0\x11\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + b"\3" + b"\0" * 9
    return b"\xff\xd8" + exif + frame + b"\xff\xda\0\x08"


def webp(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + sides


def test_headers_are_read_where_there_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".thumbs").mkdir()
    (tmp_path / "_controls").mkdir()
    (tmp_path / "a.PNG").write_bytes(png(640, 480))
    (tmp_path / "sub" / "b.jpg").write_bytes(jpeg(300, 200))
    (tmp_path / "turned.jpeg").write_bytes(jpeg(300, 200, 6))
    (tmp_path / "c.webp").write_bytes(webp(1000, 900))
    for skipped in (".thumbs/x.png", "_controls/x.png", ".hidden.png", "a.txt"):
        (tmp_path / skipped).write_bytes(png(9, 9))
    found = read(tmp_path)
    assert found.source == "headers"
    assert found.unread == 0
    assert set(found.sizes) == {(640, 480, False, 1), (300, 200, False, 1), (200, 300, False, 1), (1000, 900, False, 1)}


def test_the_database_goes_first_and_files_that_are_gone_do_not_count(tmp_path: Path) -> None:
    entries = {
        "__version__": "0.1.2",
        "/a.png": [640, 480, "s"],
        "\\sub\\b.png": [640, 480, "s"],
        "/gone.png": [1, 1, "s"],
        "/clip.mp4": [832, 480, "s", 81, 16.0],
    }
    (tmp_path / NAME).write_text(json.dumps(entries))
    alone = read(tmp_path)
    assert set(alone.sizes) == {(640, 480, False, 2), (1, 1, False, 1), (832, 480, True, 1)}
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "clip.mp4").write_bytes(b"")
    beside = read(tmp_path)
    assert set(beside.sizes) == {(640, 480, False, 1), (832, 480, True, 1)}
    assert beside.source == "database"


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{", '"x"', '{"a.png": [1e5, NaN'])
def test_a_damaged_database_is_one_clear_error(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(IntakeError, match="damaged"):
        read(tmp_path)


@pytest.mark.parametrize("entry", [[-1, 5, "s"], [True, 5, "s"], ["a", 5, "s"], [10**30, 5, "s"], [5, 5]])
def test_an_impossible_entry_is_an_unread_file(tmp_path: Path, entry: list[object]) -> None:
    (tmp_path / NAME).write_text(json.dumps({"/a.png": entry}))
    assert (read(tmp_path).sizes, read(tmp_path).unread) == ((), 1)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "far.png").write_bytes(png(8, 8))
    inner = tmp_path / "set"
    inner.mkdir()
    (inner / "near.png").symlink_to(tmp_path / "far.png")
    found = read(inner)
    assert (found.sizes, found.unread) == ((), 1)


@pytest.mark.parametrize(
    "raw", [b"", b"\xff\xd8", b"\xff\xd8\xff\xe0\0\0", b"\xff\xd8" + b"\xff" * 50, b"RIFF\0\0\0\0WEBP"]
)
def test_a_header_that_breaks_off_tells_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a.jpg").write_bytes(raw)
    assert read(tmp_path).unread == 1


def test_a_folder_beyond_the_limit_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postmortem.intake.dataset.MAX_FILES", 1)
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png(8, 8))
    assert (read(tmp_path).sizes, read(tmp_path).whole) == ((), False)


def test_a_file_of_filling_alone_is_given_up_soon(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8" + b"\xff" * 5_000_000)
    assert read(tmp_path).unread == 1


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntakeError, match="neither"):
        read(tmp_path)
    with pytest.raises(IntakeError, match="not a folder"):
        read(tmp_path / "no")
