"""The zip of a ticket: the same bytes for the same content, and nothing else is taken for one."""

from __future__ import annotations

import io
import stat
import zipfile

import pytest

from postmortem.bundle import BadBundle, pack, unpack

FILES = {"report.json": b"{}", "manifest.json": b"{}", "log-excerpt.txt": "한국어 a\n".encode() * 1000}


def zipped(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return held.getvalue()


def test_bytes_depend_on_the_content_alone() -> None:
    once = pack(FILES)
    assert once == pack(dict(reversed(FILES.items())))
    assert unpack(once) == FILES
    with zipfile.ZipFile(io.BytesIO(once)) as archive:
        entries = archive.infolist()
    assert [entry.filename for entry in entries] == sorted(FILES)
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert all(stat.S_ISREG(entry.external_attr >> 16) and not entry.extra for entry in entries)


def test_no_name_comes_from_outside() -> None:
    with pytest.raises(ValueError, match="no part"):
        pack({"../evil": b""})


def test_what_is_no_ticket_is_refused() -> None:
    link = zipfile.ZipInfo("report.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    for data in (
        zipped(("run.log", b"x")),
        zipped(("report.json", b"{}")),
        zipped(("report.json", b"{}"), ("manifest.json", b"{}"), ("../../etc/passwd", b"x")),
        zipped(("report.json", b"{}"), ("manifest.json", b"{}"))[:-30],
        b"PK\x03\x04" + bytes(300),
        b"",
    ):
        with pytest.raises(BadBundle) as caught:
            unpack(data)
        assert "\n" not in str(caught.value)
    # a link is only bytes here: nothing is ever unpacked to disk
    assert unpack(zipped((link, b"/etc/passwd"), ("manifest.json", b"{}")))["report.json"] == b"/etc/passwd"


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postmortem.bundle.archive.MAX_FILE", 10_000)
    with pytest.raises(BadBundle, match="larger"):
        unpack(zipped(("report.json", bytes(20_000)), ("manifest.json", b"{}")))


def test_any_byte_of_a_ticket_may_be_broken() -> None:
    whole = pack(FILES)
    for at in range(0, len(whole), 7):
        broken = bytearray(whole)
        broken[at] ^= 0x55
        try:
            unpack(bytes(broken))
        except BadBundle:
            continue
