"""The zip of a ticket: the same bytes for the same content, and nothing else is taken for one."""

from __future__ import annotations

import io
import stat
import struct
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
    with pytest.raises(BadBundle, match="not packed by"):
        unpack(zipped(("manifest.json", b"{}"), (link, b"/etc/passwd")))


def patched(junk: bytes) -> bytes:
    """A ticket with `junk` behind the end of a file's compressed data, within the size that it is said to have."""
    held = io.BytesIO()
    whole = pack(FILES)
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        first = archive.infolist()[0]
        rest = archive.start_dir
    data = 30 + len(first.filename) + first.compress_size
    held.write(whole[:18] + struct.pack("<L", first.compress_size + len(junk)) + whole[22:data] + junk)
    held.write(whole[data:rest])
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        for at, entry in enumerate(archive.infolist()):
            record = bytearray(whole[rest : rest + 46 + len(entry.filename)])
            if at == 0:
                record[20:24] = struct.pack("<L", entry.compress_size + len(junk))
            else:
                record[42:46] = struct.pack("<L", entry.header_offset + len(junk))
            held.write(record)
            rest += len(record)
    held.write(whole[rest : rest + 16] + struct.pack("<L", archive.start_dir + len(junk)) + whole[rest + 20 :])
    return held.getvalue()


def test_how_a_ticket_is_patched() -> None:
    assert patched(b"") == pack(FILES)


def stored(files: dict[str, bytes], **changed: object) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o100644 << 16
            for key, value in changed.items():
                setattr(entry, key, value)
            archive.writestr(entry, content, compresslevel=1)
    return held.getvalue()


SORTED = dict(sorted(FILES.items()))


def test_another_compressor_packs_a_ticket_too() -> None:
    assert unpack(stored(SORTED)) == FILES


@pytest.mark.parametrize(
    "data",
    [
        zipped(("report.md", b"FORGED"), ("report.html", b"<h1>FORGED</h1>")) + pack(FILES),
        b"PK\3\4" + pack(FILES),
        pack(FILES) + b"junk",
        pack(FILES)[:-2] + b"\4\0junk",
        patched(b"junk"),
        stored(dict(reversed(SORTED.items()))),
        stored(SORTED, date_time=(2026, 1, 1, 0, 0, 0)),
        stored(SORTED, compress_type=zipfile.ZIP_STORED),
        stored(SORTED, extra=b"\x99\x99\4\0evil"),
        stored(SORTED, comment=b"by the vendor"),
        stored(SORTED, external_attr=0o120777 << 16),
        stored(SORTED, create_system=0),
    ],
)
def test_a_ticket_with_more_in_it_than_its_files_is_refused(data: bytes) -> None:
    with pytest.raises(BadBundle) as caught:
        unpack(data)
    assert "\n" not in str(caught.value)


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
