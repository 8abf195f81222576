"""The config dump: everything in it is configuration, wherever other output breaks in."""

from __future__ import annotations

import gc
import json

from hypothesis import given
from hypothesis import strategies as st

from postmortem.knowledge.load import load
from postmortem.model import ConfigDump, Event, Place
from postmortem.scan import Lexicon, scan
from postmortem.scan.dump import MAX_ENDLESS, MAX_LINES, DumpReader
from postmortem.scan.segments import Region
from tests.conftest import Analyse
from tests.simulate import config, finished, head, training

KNOWLEDGE = load()


def test_values_carry_their_lines(run: Analyse) -> None:
    log = head(config(train__batch_size=4))
    analysis = run(log + training(400, [], until=3))
    value = analysis.config.values["train.batch_size"]
    assert value.value == 4
    assert value.source == "log"
    assert value.line is not None
    assert log.splitlines()[value.line - 1].strip() == '"batch_size": 4,'
    resolution = analysis.config.values["datasets[0].resolution"]
    assert resolution.value == [512, 768, 1024]
    assert log.splitlines()[(resolution.line or 0) - 1].strip() == '"resolution": ['


def test_warnings_between_its_lines_do_not_break_it(run: Analyse) -> None:
    lines = head(config()).splitlines(keepends=True)
    lines.insert(6, "/venv/lib/python3.12/site-packages/x.py:13: UserWarning: a new version is available\n")
    analysis = run("".join(lines) + training(400, [], until=3))
    assert analysis.config.values["train.optimizer"].value == "adamw8bit"


def test_a_quoted_error_in_it_means_nothing(run: Analyse) -> None:
    text = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 0 bytes is free."
    settings = config(sample__samples=[{"prompt": text}], datasets__folder_path=f"/data/{text}")
    analysis = run(
        head(settings, name="oom CUDA out of memory") + training(60, [], name="oom CUDA out of memory") + finished()
    )
    assert (analysis.diagnosis.kind, analysis.diagnosis.outcome) == ("none", "completed")
    assert analysis.attempt.ooms == ()


def test_a_cut_off_dump_is_said_to_be_one(run: Analyse) -> None:
    log = "Running 1 job\n" + json.dumps(config(), indent=4)[:300]
    analysis = run(log + "\n")
    assert not analysis.config.known
    assert "dump_damaged" in [notice.id for notice in analysis.warnings]


def test_a_dump_behind_timestamps(run: Analyse) -> None:
    log = head(config(train__batch_size=3)) + "Killed\n"
    stamped = "".join(f"2026-02-03T04:05:06.789Z {line}\n" for line in log.splitlines())
    assert run(stamped).config.values["train.batch_size"].value == 3


def test_paths_of_deep_and_long_keys_cost_no_more_than_the_log(lexicon: Lexicon) -> None:
    """Joined anew for each line they would be gigabytes."""
    depth, key = 200, "k" * 1000
    rows = ["{", *(f'{"    " * (level + 1)}"{key}{level}": {{' for level in range(depth)), '    "list": [']
    rows += ["        1,"] * 15_000
    rows += ["        1", "    ]", *("    }" for _ in range(depth)), "}"]
    found = scan(["\n".join(["Running 1 job", *rows, ""]).encode()], lexicon)
    (dump,) = [item for item in found.items if isinstance(item, ConfigDump)]
    assert dump.value is not None
    assert sum(map(len, dump.lines)) < 10_000


ROWS = st.sampled_from(
    [
        '    "train": {',
        '        "steps": 3,',
        '        "prompt": "a } and \\\\" in it",',
        "    },",
        "    }",
        "}",
        "} ",
        "",
        "   ",
        "/venv/x.py:13: UserWarning: a new version",
        '2026-02-03T04:05:06.789Z     "lr": 1e-4,',
        '\x1b[32m    "ema": true\x1b[0m',
        '    "half\rof": 1',
        "    \udcff1",
        '    "long": "' + "x" * 20_000 + '"',
    ]
)


@given(st.lists(ROWS, max_size=12), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_lines_taken_at_once_are_taken_as_one_by_one(rows: list[str], end: str, whole: bool) -> None:
    """As far as they are plainly a dump's: the first that is not is left to be offered."""
    lexicon = Lexicon(KNOWLEDGE)
    text = end.join(["{", *rows]) + (end if whole else "")
    region = Region(text.encode("utf-8", "surrogateescape"), 1, 0)
    at_once, by_one = DumpReader(lexicon, "log"), DumpReader(lexicon, "log")
    first, *rest = region.segments()
    assert at_once.offer("{", Place(1, 0, "log")) and by_one.offer("{", Place(1, 0, "log"))
    reached = at_once.read(region, len(first.raw) + len(end), region.lines())
    for piece in rest:
        if piece.offset >= reached:
            break
        assert by_one.offer(
            piece.raw.decode("utf-8", "replace").replace("\x1b[32m", "").replace("\x1b[0m", ""),
            Place(piece.line, 0, "log"),
        )
    assert (at_once.open, at_once._rows, at_once.ready) == (by_one.open, by_one._rows, by_one.ready)


def test_a_scan_leaves_nothing_to_a_search_for_garbage(lexicon: Lexicon) -> None:
    """A circle would keep all of a log, run for run, until the interpreter looks for it."""
    log = (head(config()) + training(60, {3}) + finished()).encode()
    gc.collect()
    gc.disable()
    try:
        scan([log], lexicon)
        assert gc.collect() == 0
    finally:
        gc.enable()


def dumps(log: str, lexicon: Lexicon) -> list[ConfigDump]:
    return [item for item in scan([log.encode()], lexicon).items if isinstance(item, ConfigDump)]


def test_the_same_config_again_has_lines_of_its_own(lexicon: Lexicon) -> None:
    jobs = [head(config()), head(config()), head(config(train__batch_size=4)), head(config(train__batch_size=4))]
    log = "".join(jobs)
    lines = log.splitlines()
    found = dumps(log, lexicon)
    assert [dump.value["train"]["batch_size"] for dump in found if dump.value] == [1, 1, 4, 4]
    starts = [number for number, line in enumerate(lines, 1) if line == "{"]
    assert [dump.place.line for dump in found] == starts
    for dump in found:
        assert lines[dump.last_line - 1] == "}"
        assert lines[dump.lines["train.optimizer"] - 1].strip().startswith('"optimizer"')


def test_one_that_begins_alike_is_read_to_its_own_end(lexicon: Lexicon) -> None:
    known = head(config())
    log = known + known.replace("    }\n}\n", '    },\n    "more": 1\n}\n', 1)
    first, second = dumps(log, lexicon)
    assert first.value is not None
    assert second.value is not None
    assert "more" not in first.value
    assert second.value["more"] == 1


def test_behind_objects_without_end_nothing_is_a_config_until_a_job_starts(lexicon: Lexicon) -> None:
    endless = "{\n" + '    "key": 1,\n' * (MAX_LINES + 1)
    found = dumps(endless * (MAX_ENDLESS + 2) + head(config()), lexicon)
    assert [dump.value is None for dump in found] == [*[True] * MAX_ENDLESS, False]


def test_a_config_that_lost_its_indentation(lexicon: Lexicon) -> None:
    value = {"type": "sd_trainer", "datasets": [{"folder_path": "/a", "resolution": [512, 768]}], "train": {"steps": 9}}
    rows = [row.strip() for row in json.dumps(value, indent=4).splitlines()]
    log = "\n".join(["Running 1 job", *rows, "", "# Running job: mugs", "Running  1 process"]) + "\n"
    for size in (len(log), 7):
        chunks = [log.encode()[at : at + size] for at in range(0, len(log), size)]
        items = scan(chunks, lexicon).items
        dump = next(item for item in items if isinstance(item, ConfigDump))
        assert dump.value == value
        assert dump.lines["datasets[0].resolution"] == 7
        assert [item.event for item in items if isinstance(item, Event)][-2:] == ["job_banner", "process_count"]
