"""Compressed logs and packed runs: the same report as unpacked, within limits, whatever is in them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from postmortem.intake import Intake, IntakeError, open_path, open_stream
from postmortem.intake.packed import Limits
from tests.simulate import config, head, training

LOG = (head(config()) + training(60, [3, 9])).encode()
YAML = b"job: extension\nconfig:\n  process:\n    - train: {batch_size: 2}\n"
CODECS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


def text(opened: Intake) -> bytes:
    return b"".join(opened.logs[-1].chunks())


def tar(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_log_is_the_log(codec: str, tmp_path: Path) -> None:
    packed = CODECS[codec](LOG)
    path = tmp_path / f"run.log.{codec}"
    path.write_bytes(packed)
    assert text(open_path(path)) == LOG
    assert text(open_stream(io.BytesIO(packed))) == LOG
    assert open_path(path).logs[0].name == open_stream(io.BytesIO(LOG)).logs[0].name


@pytest.mark.parametrize("codec", CODECS)
def test_a_log_that_breaks_off_is_read_as_far_as_it_goes(codec: str) -> None:
    dice = random.Random(1)
    noise = LOG + b"".join(b"line %d\n" % dice.getrandbits(64) for _ in range(120_000))
    packed = CODECS[codec](noise)
    opened = open_stream(io.BytesIO(packed[: len(packed) * 3 // 4]))
    assert "archive_cut" in opened.logs[0].repairs
    found = text(opened)
    assert found
    assert noise.startswith(found)


RUN = {
    "out/mug/log.txt": LOG,
    "out/mug/logs/0_log.txt": LOG[:900],
    "out/mug/config.yaml": YAML,
    "out/mug/x.safetensors": b"0",
}


@pytest.mark.parametrize("codec", [None, *CODECS])
def test_a_packed_run_folder(codec: str | None) -> None:
    packed = tar(RUN) if codec is None else CODECS[codec](tar(RUN))
    for data in (packed, zipped(RUN)):
        opened = open_stream(io.BytesIO(data))
        assert [log.name for log in opened.logs] == ["logs/0_log.txt", "log.txt"]
        assert [found.name for found in opened.configs] == ["config.yaml"]
        assert text(opened) == LOG


def test_a_ticket_with_a_log_and_its_config() -> None:
    opened = open_stream(io.BytesIO(zipped({"run 1.log": LOG, "my job.yaml": YAML, "photo.png": b"\x89PNG"})))
    assert (text(opened), [found.name for found in opened.configs]) == (LOG, ["my job.yaml"])


def test_names_cannot_lead_out(tmp_path: Path) -> None:
    for data in (zipped({"../../evil/log.txt": LOG}), tar({"/etc/../../evil/log.txt": LOG})):
        opened = open_stream(io.BytesIO(data))
        assert text(opened) == LOG
        assert opened.keep.folder in opened.keep.files[0].parents


def test_links_and_devices_are_passed_over() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind in (("log.txt", tarfile.SYMTYPE), ("a.log", tarfile.LNKTYPE), ("b.log", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type = kind
            info.linkname = "/etc/passwd"
            archive.addfile(info)
    with pytest.raises(IntakeError, match="no log in it"):
        open_stream(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize("codec", CODECS)
def test_bombs_stop_at_the_limits(codec: str) -> None:
    bomb = CODECS[codec](b"A" * 80_000_000)
    with pytest.raises(IntakeError, match="--max-ratio"):
        open_stream(io.BytesIO(bomb), limits=Limits(ratio=100))
    with pytest.raises(IntakeError, match="--max-expanded"):
        open_stream(io.BytesIO(bomb), limits=Limits(expanded_mib=3))


def test_the_limits_hold_for_packed_folders() -> None:
    big = {f"{number}.log": b"A" * 1_000_000 for number in range(8)}
    for data in (zipped(big), gzip.compress(tar(big))):
        with pytest.raises(IntakeError, match="--max-expanded"):
            open_stream(io.BytesIO(data), limits=Limits(expanded_mib=3))
        with pytest.raises(IntakeError, match="--max-entries"):
            open_stream(io.BytesIO(data), limits=Limits(entries=4))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (gzip.compress(gzip.compress(LOG)), "an archive inside an archive"),
        (gzip.compress(zipped({"log.txt": LOG})), "an archive inside an archive"),
        (zipped({"log.txt": gzip.compress(LOG)}), "a gzip file, not a log"),
        (zipped({"a.log": LOG, "b.log": LOG}), "several logs"),
        (zipped({"photo.png": b"x"}), "no log in it"),
        (zipped({"a/run.log.gz": gzip.compress(LOG)}), "holds run.log.gz, an archive of its own"),
        (tar({"run.zip": b"x"}), "holds run.zip, an archive of its own"),
        (b"\x1f\x8b\x08\x00" + b"rubbish" * 40, "cannot be unpacked"),
        (b"PK\x03\x04" + b"rubbish" * 40, "cannot be unpacked"),
        (zipped(RUN)[:700], "cannot be unpacked"),
    ],
    ids=range(10),  # not the bytes, which hold the time: processes that share the tests out must call them the same
)
def test_what_cannot_be_used_is_one_line(data: bytes, says: str) -> None:
    with pytest.raises(IntakeError, match=says) as caught:
        open_stream(io.BytesIO(data))
    assert "\n" not in str(caught.value)


def test_a_packed_run_says_that_its_checkpoints_were_not_looked_at(tmp_path: Path) -> None:
    packed = tmp_path / "run.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("job/log.txt", "Running 1 job\n")
        archive.writestr("job/job_000000250.safetensors", b"\0" * 16)
        archive.writestr("job/aitk_db.db", b"not a database")
    opened = open_path(packed)
    assert opened.logs[0].repairs == ("archive_partial",)
    database = opened.database()
    assert database is not None and database.damaged


def test_a_zip_that_is_all_directory_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("log.txt", LOG)
        for index in range(9_000):
            archive.writestr(f"{index}{'x' * 200}", b"")
    data = held.getvalue()
    assert text(open_stream(io.BytesIO(data))) == LOG
    built: list[str] = []
    real = zipfile.ZipInfo.__init__

    def counted(self: zipfile.ZipInfo, name: str = "", *rest: object) -> None:
        built.append(name)
        real(self, name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(zipfile.ZipInfo, "__init__", counted)
    with pytest.raises(IntakeError, match="a directory of more than 1048576 bytes"):
        open_stream(io.BytesIO(data), limits=Limits(entries=100))
    assert built == []


def header(kind: bytes, size: int, name: bytes = b"x") -> bytes:
    info = tarfile.TarInfo(name.decode())
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_headers_without_end_are_not_kept_in_memory(kind: bytes) -> None:
    import tracemalloc

    size = 200 << 20
    bomb = gzip.compress(header(kind, size) + bytes(size // 4), 1)
    tracemalloc.start()
    with pytest.raises(IntakeError, match="headers that do not end"):
        open_stream(io.BytesIO(bomb))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_headers_of_headers_are_given_up() -> None:
    chain = (header(tarfile.GNUTYPE_LONGNAME, 2) + b"x\0".ljust(512, b"\0")) * 5_000
    with pytest.raises(IntakeError, match=r"cannot be unpacked"):
        open_stream(io.BytesIO(chain + bytes(10_240)))


def test_a_full_disk_is_not_called_a_damaged_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    from postmortem.intake import archives

    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archives, "_copy", full)
    with pytest.raises(IntakeError, match="where temporary files go: no space left on device"):
        open_stream(io.BytesIO(gzip.compress(LOG)))


def wide_xz(mib: int) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": mib << 20}]
    return lzma.compress(LOG, lzma.FORMAT_XZ, filters=filters)


def wide_zip(mib: int) -> bytes:
    """A zip whose entry names a dictionary of that size; the log is so short that a small one does."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("log.txt", LOG)
    data = bytearray(out.getvalue())
    at = 30 + len("log.txt") + 5
    data[at : at + 4] = (mib << 20).to_bytes(4, "little")
    return bytes(data)


def wide_zst(mib: int) -> bytes:
    """The head of a frame that names a window of that size."""
    exponent = (mib << 20).bit_length() - 1 - 10
    return b"\x28\xb5\x2f\xfd" + bytes([0, exponent << 3]) + b"\x01\x00\x00"


@pytest.mark.parametrize("packed", [wide_xz, wide_zip, wide_zst])
def test_a_dictionary_that_is_too_large_is_refused_in_one_line(packed: Callable[[int], bytes], tmp_path: Path) -> None:
    path = tmp_path / "run.log.packed"
    path.write_bytes(packed(1024))
    with pytest.raises(IntakeError) as raised:
        open_path(path)
    told = "cannot be unpacked (it has a dictionary of more than 128 MiB); give the log itself"
    assert str(raised.value) == f"{path}: {told}"


@pytest.mark.parametrize("packed", [wide_xz, wide_zip])
def test_the_dictionary_of_the_best_levels_is_taken(packed: Callable[[int], bytes], tmp_path: Path) -> None:
    path = tmp_path / "run.log.packed"
    path.write_bytes(packed(64))
    assert text(open_path(path)) == LOG


def test_xz_streams_one_after_the_other_are_one_text(tmp_path: Path) -> None:
    half = len(LOG) // 2
    one, other = lzma.compress(LOG[:half]), lzma.compress(LOG[half:])
    for between, behind in ((b"", b""), (b"\0" * 8, b"\0" * 4), (b"", b"no xz at all")):
        path = tmp_path / "run.log.xz"
        path.write_bytes(one + between + other + behind)
        assert text(open_path(path)) == LOG
    path.write_bytes(one + other[:-20])
    opened = open_path(path)
    assert LOG.startswith(text(opened)) and text(opened).startswith(LOG[:half])


HUGE = 1 << 60


def entry(name: str, size: int, pax: dict[str, str] | None = None, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of a tar's entry, whatever follows it."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.pax_headers = kind, size, pax or {}
    return info.tobuf(tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT)


ONE = entry("log.txt", len(LOG)) + LOG + bytes(-len(LOG) % 512)
"""A tar's first entry, sound."""


def old_sparse(name: str, stored: int, size: int, more: bool = False) -> bytes:
    """A header of GNU's older kind of files with holes, `size` long, of which `stored` bytes follow."""
    raw = bytearray(entry(name, stored, kind=tarfile.GNUTYPE_SPARSE))
    raw[386:410] = b"%011o\0" % 0 + b"%011o\0" % min(stored, 8**11 - 1)
    raw[482] = more
    raw[483:495] = b"%011o\0" % size
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    return bytes(raw)


@pytest.mark.parametrize(
    "tarred",
    [
        entry("log.txt", HUGE) + LOG,
        entry("log.txt", len(LOG), {"size": str(HUGE)}) + LOG,
        entry("x.safetensors", HUGE) + LOG,
        entry("x.safetensors", 0, {"size": str(HUGE)}) + LOG,
        ONE + entry("x.bin", HUGE),
        old_sparse("log.txt", HUGE, len(LOG)) + LOG,
        entry("log.txt", 0, {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(HUGE)}),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("codec", [bytes, gzip.compress])
def test_a_size_that_is_only_claimed_ends_the_reading_at_once(tarred: bytes, codec: Callable[[bytes], bytes]) -> None:
    with pytest.raises(IntakeError, match=r"unpacks to more than 4096 MiB \(--max-expanded\)"):
        open_stream(io.BytesIO(codec(tarred.ljust(20_480, b"\0"))))


def test_a_size_below_the_limit_ends_where_the_bytes_do() -> None:
    opened = open_stream(io.BytesIO(entry("log.txt", 4000 << 20) + LOG))
    assert LOG.startswith(text(opened)) and len(text(opened)) > len(LOG) - 4096
    assert "archive_cut" in opened.logs[0].repairs
    opened = open_stream(io.BytesIO(ONE + entry("x.bin", 4000 << 20)))
    assert text(opened) == LOG


def test_weights_that_stand_behind_the_log_are_passed_over_at_their_own_size() -> None:
    size = 80 << 20
    behind = entry("x.safetensors", size) + bytes(size) + bytes(1024)
    opened = open_stream(io.BytesIO(ONE + behind))
    assert text(opened) == LOG and "archive_cut" not in opened.logs[0].repairs
    with pytest.raises(IntakeError, match="--max-ratio"):
        open_stream(io.BytesIO(gzip.compress(ONE + behind)), limits=Limits(ratio=100))


def test_a_file_with_holes_is_read_and_one_whose_pieces_are_out_of_order_is_not() -> None:
    hole = {"GNU.sparse.map": f"0,{len(LOG)}", "GNU.sparse.size": str(len(LOG) + 4096)}
    behind = bytes(-len(LOG) % 512) + bytes(1024)
    assert text(open_stream(io.BytesIO(entry("log.txt", len(LOG), hole) + LOG + behind))).startswith(LOG)
    for pieces in ("8,8,0,8", f"-{HUGE},{HUGE},0,8", "0,-8", f"0,8,0,{HUGE}", f"0,{2 * len(LOG)}"):
        wrong = {"GNU.sparse.map": pieces, "GNU.sparse.size": str(len(LOG))}
        with pytest.raises(IntakeError, match="it is damaged"):
            open_stream(io.BytesIO(entry("log.txt", len(LOG), wrong) + LOG + behind))
    with pytest.raises(IntakeError, match="it is damaged"):  # the list of pieces goes on where the file ends
        open_stream(io.BytesIO(old_sparse("log.txt", 0, 8, more=True)))


@pytest.mark.parametrize("pack", [tar, zipped])
def test_long_names_are_cut_by_bytes_and_kept_apart(pack: Callable[[dict[str, bytes]], bytes]) -> None:
    long = "학습" * 60
    opened = open_stream(io.BytesIO(pack({f"{long}/log.txt": LOG, f"{long}/config.yaml": YAML})))
    assert (text(opened), [found.name for found in opened.configs]) == (LOG, ["config.yaml"])
    files = pack({f"a/{long}1{long}.log": LOG, f"a/{long}2{long}.log": LOG, f"{long}1/b.log": LOG, "a/a/b.log": LOG})
    with pytest.raises(IntakeError, match="several logs") as told:
        open_stream(io.BytesIO(files))
    assert "damaged" not in str(told.value)
    from postmortem.intake.archives import unpack

    data = io.BytesIO(files)
    opened_all = unpack(data, data.read(512), "x", Limits())
    assert len(opened_all.files) == 4
    for file in opened_all.files:
        assert file.suffix == ".log"
        assert all(len(part.encode()) <= 120 for part in file.relative_to(opened_all.folder).parts)


def test_a_path_of_many_long_names_is_short_enough_for_any_system() -> None:
    from postmortem.intake.archives import unpack

    for folder in ("학습" * 50, "a" * 90):
        names = [f"{f'{folder}/' * 11}{word}" for word in ("log.txt", "job_config.json", f"{folder}.log")]
        data = io.BytesIO(zipped(dict.fromkeys(names, LOG)))
        opened = unpack(data, data.read(512), "x", Limits())
        below = [file.relative_to(opened.folder).as_posix() for file in opened.files]
        assert [name.rpartition("/")[2] for name in below[:2]] == ["log.txt", "job_config.json"]
        assert len(below) == 3 and all(len(name) <= 180 and len(name.encode()) <= 700 for name in below)


def test_an_entry_of_a_zip_that_breaks_off_is_told_and_the_others_stand() -> None:
    dice = random.Random(1)
    noise = LOG + b"".join(b"line %d\n" % dice.getrandbits(64) for _ in range(120_000))
    data = bytearray(zipped({"log.txt": noise, "config.yaml": YAML}))
    at = data.index(b"PK\x03\x04", 30)
    data[at - 40_000 : at - 30_000] = bytes(10_000)
    opened = open_stream(io.BytesIO(bytes(data)))
    assert "archive_cut" in opened.logs[0].repairs
    assert text(opened) and noise.startswith(text(opened)[: len(noise) // 2])
    assert [found.name for found in opened.configs] == ["config.yaml"]
    data = bytearray(zipped({"log.txt": LOG, "config.yaml": YAML}))
    at = data.index(YAML[:4], 600) if YAML[:4] in data[600:] else data.index(b"config.yaml") + len("config.yaml")
    data[at : at + 20] = b"\xff" * 20
    opened = open_stream(io.BytesIO(bytes(data)))
    assert text(opened) == LOG and opened.configs == ()
    assert "archive_cut" in opened.logs[0].repairs


@pytest.mark.parametrize("pack", [tar, zipped])
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(24, "Too many open files"), "too many open files"),
        (OSError(28, "No space left on device"), "where temporary files go: no space left on device"),
        (MemoryError(), "there is too little memory"),
    ],
)
def test_what_this_machine_lacks_is_not_called_a_damaged_archive(
    pack: Callable[[dict[str, bytes]], bytes], error: Exception, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def fail(self: Path, mode: str = "r", *rest: object) -> object:
        if mode == "xb" and self.name == "config.yaml":
            raise error
        return real(self, mode, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(IntakeError, match=rf"cannot be unpacked \({says}\)"):
        open_stream(io.BytesIO(pack({"log.txt": LOG, "config.yaml": YAML})))
