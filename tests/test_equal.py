"""One log gives one report, byte for byte: from a file or a pipe, in any pieces, by whatever means it is read inside.

Over all fixtures, and over generated logs in the forms in which people hand them over; `make laws N=1000` for more of
those. EQUAL_LOGS=DIR takes every file below a folder besides.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from random import Random

import msgspec
import pytest

from benchmarks import ordinary
from postmortem.model import ScanResult
from postmortem.report import json_
from tests.forms import LESS, SAME
from tests.generate import make
from tests.generate.counts import SEEDS, batch_name
from tests.test_fixtures import FIXTURES, NAMES, report_on
from tests.ways import CUTTINGS, DOORS, MODES, SLOW_CUTTINGS, Mode, commanded, reported, scanned

SMALL = 5_000
"""Bytes up to which a log is read byte by byte too."""
LOGS = sorted(
    (path for folder in (FIXTURES, os.environ.get("EQUAL_LOGS")) if folder for path in Path(folder).rglob("*")),
    key=str,
)
LOGS = [path for path in LOGS if path.is_file() and "log" in path.name and path.suffix in (".txt", ".log", "")]
MANY = "LAWS_N" in os.environ
BATCHES = SEEDS if MANY else [range(8), range(8, 16)]
FORMS = {**SAME, **LESS}


def differs(one: ScanResult, other: ScanResult) -> str:
    """The first thing that two scans do not say alike, or nothing."""
    for name in one.__struct_fields__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine == theirs:
            continue
        if name == "items":
            at = next(
                (at for at, (left, right) in enumerate(zip(mine, theirs, strict=False)) if left != right),
                min(len(mine), len(theirs)),
            )
            return f"items[{at}]: {msgspec.to_builtins(mine[at : at + 1], enc_hook=repr)} is not {msgspec.to_builtins(theirs[at : at + 1], enc_hook=repr)}"
        return f"{name}: {mine!r} is not {theirs!r}"
    return ""


def unequal(data: bytes, folder: Path) -> list[str]:
    """In which ways `data` is read otherwise than in the first."""
    found: list[str] = []
    first, one_piece, file = MODES[0], CUTTINGS["one piece"], DOORS["file"]
    plain, report = scanned(data, first, one_piece), reported(data, first, file, folder)
    every = [*CUTTINGS.items(), *(SLOW_CUTTINGS.items() if len(data) <= SMALL else ())]
    for mode in MODES:
        for name, cutting in every if mode is first or MANY else every[:1] + every[3:5]:
            difference = differs(plain, scanned(data, mode, cutting))
            if difference:
                found.append(f"{mode.name}, {name}: {difference}")
        # the doors give the same bytes in every mode
        for name, door in DOORS.items() if mode is first or MANY else [("pipe", DOORS["pipe"])]:
            if reported(data, mode, door, folder) != report:
                found.append(f"{mode.name}, {name}: another report")
    return found


@pytest.mark.parametrize("path", LOGS, ids=lambda path: "-".join(path.parts[-3:]))
def test_a_log_is_read_the_same_in_every_way(path: Path, tmp_path: Path) -> None:
    assert not unequal(path.read_bytes(), tmp_path)


@pytest.mark.parametrize("seeds", BATCHES, ids=batch_name)
def test_a_generated_log_is_read_the_same_in_every_way(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        case, random = make(seed), Random(f"equal {seed}")
        form = random.choice(sorted(FORMS)) if seed % 2 else None
        data = FORMS[form](case.log) if form else case.log.encode()
        assert not unequal(data, tmp_path), (case.id, form)


@lru_cache(maxsize=2)
def big(*, lines: bool) -> bytes:
    """An ordinary log that is long enough for whatever begins at some size."""
    data = "".join(ordinary.pieces(10_000_000 if MANY else 1_300_000)).encode()
    return data.replace(b"\r", b"\n") if lines else data


@pytest.mark.parametrize("lines", [False, True], ids=["returns", "lines"])
def test_a_big_log_is_read_the_same_in_every_way(lines: bool, tmp_path: Path) -> None:
    data = big(lines=lines)
    plain = scanned(data, MODES[0], CUTTINGS["one piece"])
    for mode in MODES:
        for name in ("one piece", "pieces of 64 KiB", "pieces of any size", "cut behind returns"):
            assert not differs(plain, scanned(data, mode, CUTTINGS[name])), (mode.name, name)
    doors = DOORS if MANY else ["file", "pipe"]
    reports = {(mode.name, name): reported(data, mode, DOORS[name], tmp_path) for mode in MODES for name in doors}
    assert len(set(reports.values())) == 1


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", NAMES)
def test_a_run_is_reported_the_same_in_every_mode(name: str, mode: Mode) -> None:
    plain = json_.render(report_on(name, MODES[0].lexicon))
    with mode.within():
        assert json_.render(report_on(name, mode.lexicon)) == plain


@pytest.mark.parametrize("name", NAMES[::4])
def test_the_command_says_the_same_of_a_file_and_of_standard_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / "given.log"
    path.write_bytes((FIXTURES / name / "log.txt").read_bytes())
    of_file = commanded(path, tmp_path, piped=False)
    assert len(of_file) > 500
    assert commanded(path, tmp_path, piped=True) == of_file
