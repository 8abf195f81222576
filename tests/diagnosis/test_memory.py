"""The sizes of the verdict's event: the contract's names, and whose the listed processes are. MiB throughout."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis.memory import KEYS, sizes_of
from postmortem.model import Notice
from tests.diagnosis.build import event, oom


def memory(*others: float, notes: Any = (), **sizes: float | None) -> dict[str, float | None]:
    """What is known of an OOM with `sizes` and the processes listed with it."""
    found, _ = sizes_of(oom(5, sizes_mib=sizes, others_mib=others), notes)
    assert tuple(found) == KEYS
    return {key: value for key, value in found.items() if value is not None}


def test_without_an_oom_nothing_is_known() -> None:
    assert sizes_of(None, ()) == (dict.fromkeys(KEYS), ())


def test_sizes_keep_their_names() -> None:
    sizes = {key: 100.0 + place for place, key in enumerate(KEYS)}
    sizes["process_in_use"] = 900.0
    assert memory(**sizes) == sizes


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        # torch up to 2.0 prints what is reserved in total
        (
            {"pytorch_allocated": 900.0, "reserved_total": 1000.0},
            {"pytorch_allocated": 900.0, "reserved_unallocated": 100.0},
        ),
        (
            {"pytorch_allocated": 900.0, "reserved_total": 800.0},
            {"pytorch_allocated": 900.0, "reserved_unallocated": 0.0},
        ),
        (
            {"pytorch_allocated": 900.0, "reserved_total": 1000.0, "reserved_unallocated": 7.0},
            {"pytorch_allocated": 900.0, "reserved_unallocated": 7.0},
        ),
        ({"reserved_total": 1000.0}, {}),
        # MPS: what others hold
        ({"other_allocations": 300.0}, {"other_processes": 300.0}),
        # where the driver does not tell, torch prints less than it holds itself
        ({"process_in_use": 0.0, "pytorch_allocated": 900.0}, {"pytorch_allocated": 900.0}),
        ({"process_in_use": 900.0, "pytorch_allocated": 900.0}, {"process_in_use": 900.0, "pytorch_allocated": 900.0}),
        ({"process_in_use": 0.0}, {"process_in_use": 0.0}),
    ],
)
def test_what_messages_say_in_other_words(sizes: dict[str, float], expected: dict[str, float]) -> None:
    assert memory(**sizes) == expected


def test_impossible_numbers_are_named() -> None:
    given = {"free": None, "allowed": None, "gpu_total": 24.0}
    found, warnings = sizes_of(oom(5, sizes_mib=given, line=77), ())
    assert (found["free"], found["gpu_total"]) == (None, 24.0)
    assert warnings == tuple(Notice("impossible_size", 77, {"name": name}) for name in ("allowed", "free"))


def table(line: int, **values: float | None) -> list[Any]:
    return [event("note", line, event=name, sizes_mib={"value": value}) for name, value in values.items()]


@pytest.mark.parametrize(("line", "read"), [(499, False), (500, True), (512, True), (513, False)])
def test_the_table_of_the_async_allocator_stands_below_its_message(line: int, read: bool) -> None:
    rows = table(line, async_allocated=900.0, async_requested=50.0, async_limit=1000.0, async_free=20.0, other=1.0)
    assert memory(notes=rows) == (
        {"pytorch_allocated": 900.0, "tried_to_allocate": 50.0, "gpu_total": 1000.0, "free": 20.0} if read else {}
    )


def test_the_first_table_is_the_message_s_own() -> None:
    assert memory(notes=[*table(501, async_free=20.0), *table(505, async_free=90.0)]) == {"free": 20.0}
    assert memory(notes=[event("note", 501), event("note", 501, event="nan")], free=3.0) == {"free": 3.0}


HELD = {"pytorch_allocated": 9000.0, "reserved_unallocated": 500.0}
FULL = {"gpu_total": 24000.0, "free": 1000.0}


@pytest.mark.parametrize(
    ("sizes", "others", "own", "rest"),
    [
        # the message names its own process: all that are listed are others
        ({**HELD, **FULL, "process_in_use": 10000.0}, (8000.0, 5000.0), 10000.0, 13000.0),
        # a container hides the pid: the one that fills the card with what is free is the run
        ({**HELD, **FULL}, (23000.0,), 23000.0, None),
        ({**HELD, "free": 1000.0}, (9700.0,), 9700.0, None),
        ({**HELD, "gpu_total": 24000.0}, (9700.0,), 9700.0, None),
        # within a quarter of the card
        ({**HELD, **FULL}, (17000.0,), 17000.0, None),
        ({**HELD, **FULL}, (16999.0,), None, 16999.0),
        # of several the one that holds just what PyTorch has, or a trifle less
        ({**HELD, **FULL}, (12000.0, 9700.0), 9700.0, 12000.0),
        ({**HELD, **FULL}, (9436.0, 300.0), 9436.0, 300.0),
        ({**HELD, **FULL}, (9435.0, 300.0), None, 9735.0),
        ({**HELD, **FULL}, (9600.0, 9600.0), 9600.0, 9600.0),
        ({"pytorch_allocated": 9500.0, **FULL}, (9400.0,), None, 9400.0),
        # what PyTorch holds is not known, or nothing
        ({**FULL}, (23000.0,), None, 23000.0),
        ({"pytorch_allocated": 0.0, **FULL}, (23000.0,), None, 23000.0),
        ({"pytorch_allocated": 1.0, **FULL}, (23000.0,), 23000.0, None),
        ({"pytorch_allocated": 9000.0}, (9000.0,), 9000.0, None),
        ({"reserved_unallocated": 9000.0}, (9000.0,), 9000.0, None),
    ],
)
def test_which_listed_process_is_the_run(
    sizes: dict[str, float], others: tuple[float, ...], own: float | None, rest: float | None
) -> None:
    found = memory(*others, **sizes)
    assert (found.get("process_in_use"), found.get("other_processes")) == (own, rest)
