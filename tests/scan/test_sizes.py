"""Sizes in MiB, and sizes that cannot be."""

from __future__ import annotations

import pytest

from postmortem.pipeline import Analysis
from postmortem.scan.sizes import to_mib
from tests.conftest import Analyse


@pytest.mark.parametrize(
    ("value", "unit", "mib"),
    [
        ("2", "GiB", 2048.0),
        ("512", "KiB", 0.5),
        ("0", "bytes", 0.0),
        ("1048576", "bytes", 1.0),
        ("72.40", "GB", 74137.6),
    ],
)
def test_units(value: str, unit: str, mib: float) -> None:
    assert to_mib(value, unit) == pytest.approx(mib)


def test_an_underflowed_counter_is_no_size(run: Analyse) -> None:
    assert to_mib("17179869184.00", "GiB") is None
    analysis: Analysis = run(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which "
        "17179869184.00 GiB is free. Of the allocated memory 22.00 GiB is allocated by PyTorch, and 10.00 MiB is reserved "
        "by PyTorch but unallocated."
    )
    assert analysis.diagnosis.memory_mib["free"] is None
    assert analysis.diagnosis.memory_mib["tried_to_allocate"] == 2048
    assert [notice.id for notice in analysis.warnings] == ["impossible_size"]


def test_no_size_from_nonsense() -> None:
    assert to_mib("1.2.3", "GiB") is None
    assert to_mib("1", "parsec") is None
    assert to_mib("9" * 100, "bytes") is None


OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.98 GiB already "
    "allocated; 0 bytes free; 22.57 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting"
)
OLDEST = (
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 11.17 GiB total capacity; 10.70 GiB already "
    "allocated; 4.50 MiB free; 120.31 MiB cached)"
)


def test_reserved_in_total_is_not_reserved_but_unallocated(run: Analyse) -> None:
    memory = run(OLD).diagnosis.memory_mib
    assert memory["pytorch_allocated"] == pytest.approx(21.98 * 1024)
    assert memory["reserved_unallocated"] == pytest.approx((22.57 - 21.98) * 1024)


def test_the_cached_form_of_torch_1(run: Analyse) -> None:
    diagnosis = run(OLDEST).diagnosis
    assert diagnosis.memory_mib["gpu_total"] == pytest.approx(11.17 * 1024)
    assert diagnosis.memory_mib["free"] == pytest.approx(4.5)
    assert diagnosis.device == 1


def test_other_processes_are_summed_and_the_run_itself_is_not_one(run: Analyse) -> None:
    memory = run(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 23.65 GiB of "
        "which 21.90 MiB is free. Process 4410 has 10.00 GiB memory in use. Process 4411 has 3.50 GiB memory in use. Including "
        "non-PyTorch memory, this process has 9.93 GiB memory in use. Of the allocated memory 9.41 GiB is allocated by PyTorch, "
        "and 88.20 MiB is reserved by PyTorch but unallocated."
    ).diagnosis.memory_mib
    assert memory["other_processes"] == pytest.approx(13.5 * 1024)
    assert memory["process_in_use"] == pytest.approx(9.93 * 1024)


def test_the_only_process_in_a_container_is_the_run(run: Analyse) -> None:
    memory = run(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacty of 14.75 GiB of "
        "which 14.80 MiB is free. Process 6122 has 14.73 GiB memory in use. Of the allocated memory 13.90 GiB is allocated by "
        "PyTorch, and 95.60 MiB is reserved by PyTorch but unallocated."
    ).diagnosis.memory_mib
    assert memory["process_in_use"] == pytest.approx(14.73 * 1024)
    assert memory["other_processes"] is None
