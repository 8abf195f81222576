"""Where a run ran: what in a log may say so, and whether the driver there pages VRAM to RAM."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.diagnosis.platform import MAX_CHARACTERS, PLACES, platform_facts
from postmortem.knowledge.schema import Knowledge
from postmortem.model import Attempt, Bucket, ConfigDump, Frame, JobConfig, Stage, Traceback, Value
from postmortem.text import LogText
from tests.diagnosis.build import at, attempt, event, oom

WINDOWS, LINUX = "D:\\sets\\mugs\\a.png", "/home/user/mugs"
NONE = JobConfig({}, ())


def places(of: Attempt, knowledge: Knowledge, config: JobConfig = NONE) -> set[str]:
    found = platform_facts(of, config, knowledge)
    return {place for place in PLACES if found[f"run.on_{place}"]}


def test_a_log_that_shows_nothing_leaves_all_unknown(knowledge: Knowledge) -> None:
    assert platform_facts(attempt(), NONE, knowledge) == {f"run.on_{place}": None for place in PLACES}


def test_a_place_that_is_shown_excludes_the_others(knowledge: Knowledge) -> None:
    found = platform_facts(attempt(last_text=LogText(WINDOWS)), NONE, knowledge)
    assert found == {**{f"run.on_{place}": place == "windows" for place in PLACES}, "run.can_spill": True}


@pytest.mark.parametrize(
    ("text", "expected", "can_spill"),
    [
        (WINDOWS, {"windows"}, True),
        (LINUX, {"linux"}, False),
        # what runs in a container runs on Linux, wherever that is
        ("/workspace/sets/mugs", {"container", "linux"}, False),
        ("/mnt/c/sets/mugs", {"wsl"}, True),
        ("/Users/user/mugs", {"macos"}, False),
    ],
)
def test_whose_paths(text: str, expected: set[str], can_spill: bool, knowledge: Knowledge) -> None:
    of = attempt(last_text=LogText(text))
    assert expected <= places(of, knowledge)
    assert platform_facts(of, NONE, knowledge)["run.can_spill"] is can_spill


def test_more_memory_than_the_card_has_proves_the_paging(knowledge: Knowledge) -> None:
    def spills(allocated: float | None, total: float | None, folder: str = LINUX) -> Any:
        sizes = {"pytorch_allocated": allocated, "gpu_total": total}
        of = attempt(ooms=(oom(1), oom(5, sizes_mib=sizes)), last_text=LogText(folder))
        return platform_facts(of, NONE, knowledge).get("run.can_spill")

    assert spills(25.0, 24.0) is True
    assert spills(24.0, 24.0) is False
    assert (spills(None, 24.0), spills(25.0, None)) == (False, False)
    assert (spills(25.0, 24.0, "mugs"), spills(24.0, 24.0, "mugs")) == (True, None)


FRAMES = tuple(Frame(at(900 + n), LogText(WINDOWS if n == 19 else "a.py"), "main", LogText("")) for n in range(20))
LONG = "x" * (MAX_CHARACTERS - 2)


def dump(value: Any) -> ConfigDump:
    return ConfigDump(at(2), 40, value, {})


@pytest.mark.parametrize(
    "given",
    [
        {"event": event("error", text=WINDOWS)},
        {"traceback": Traceback(at(900), FRAMES, None)},
        {"errors": tuple(event("error", text=text) for text in (WINDOWS, "a", "b", "c", "d"))},
        {"notes": tuple(event("note", text=text) for text in (WINDOWS, "a", "b", "c", "d"))},
        {"buckets": tuple(Bucket(LogText(text), 64, 64, 1, 1, 1, 1) for text in (*["a"] * 19, WINDOWS))},
        {"stages": tuple(Stage(at(1), "setup", "status", LogText(text)) for text in (WINDOWS, *["a"] * 99))},
        {"dump": dump({"datasets": [{"folder_path": WINDOWS}]})},
        {"dump": dump({"model": {"name_or_path": WINDOWS}})},
        {"dump": dump({"a": {"b": {"c": {"d": {"e": {"f": {"folder_path": WINDOWS}}}}}}})},
        {"last_text": LogText(WINDOWS + LONG)},
    ],
)
def test_what_may_show_a_place(given: dict[str, Any], knowledge: Knowledge) -> None:
    assert places(attempt(**given), knowledge) == {"windows"}


@pytest.mark.parametrize(
    "given",
    [
        {"job_name": LogText(WINDOWS)},
        # what is far from the end, or too long, is not asked
        {"traceback": Traceback(at(900), (*[FRAMES[0]] * 20, FRAMES[19]), None)},
        {"errors": tuple(event("error", text=text) for text in (WINDOWS, "a", "b", "c", "d", "e"))},
        {"notes": tuple(event("note", text=text) for text in (WINDOWS, "a", "b", "c", "d", "e"))},
        {"buckets": tuple(Bucket(LogText(text), 64, 64, 1, 1, 1, 1) for text in (*["a"] * 20, WINDOWS))},
        {"stages": (Stage(at(1), "setup", "job_banner", LogText(WINDOWS)),)},
        {"stages": (Stage(at(1), "training_step", "bar_main", LogText(WINDOWS)),)},
        # a prompt is no path, and nothing is searched without end
        {"dump": dump({"sample": {"prompts": [WINDOWS], "prompt": WINDOWS}})},
        {"dump": dump({"a": {"b": {"c": {"d": {"e": {"f": {"g": {"folder_path": WINDOWS}}}}}}}})},
    ],
)
def test_what_may_not(given: dict[str, Any], knowledge: Knowledge) -> None:
    assert places(attempt(**given), knowledge) == set()


@pytest.mark.parametrize(
    ("path", "shown"), [("datasets[0].folder_path", True), ("train.optimizer", False), ("save.cache_dir", True)]
)
def test_paths_of_the_config(path: str, shown: bool, knowledge: Knowledge) -> None:
    config = JobConfig({path: Value(WINDOWS, "log"), "a.path": Value(5, "log")}, ("log",))
    assert places(attempt(), knowledge, config) == ({"windows"} if shown else set())
