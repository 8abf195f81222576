"""A fix changes its own settings, in every style of file, and nothing else."""

from __future__ import annotations

import copy
import difflib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.intake import open_path
from postmortem.jobconfig.values import place, settings_of
from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigChange
from postmortem.patch import Refused, apply, from_dump, load, processes
from postmortem.patch.job import as_json, as_yaml, same
from postmortem.pipeline import Source, analyse
from postmortem.scan import Lexicon
from tests.patch.examples import ALL, FLOW, PLAIN

CHANGES = {
    "batch_size": [ConfigChange("train.batch_size", 4, 2)],
    "checkpointing": [ConfigChange("train.gradient_checkpointing", False, True)],
    "resolution": [ConfigChange("datasets[0].resolution", [512, 768, 1024], [512, 768])],
    "preview": [ConfigChange("sample.width", 1024, 704), ConfigChange("sample.height", 768, 512)],
    "optimizer": [ConfigChange("train.optimizer", "adamw", "adamw8bit")],
    "rank": [ConfigChange("network.linear", 32, 16)],
    "ema": [ConfigChange("train.ema_config.use_ema", True, False)],
    # keys that the examples do not have
    "low_vram": [ConfigChange("model.low_vram", False, True)],
    "qtype": [ConfigChange("model.qtype", "qfloat8", "uint4")],
    "match_target_res": [ConfigChange("model.model_kwargs.match_target_res", None, True)],
    "to_disk": [ConfigChange("datasets[0].cache_latents_to_disk", False, True)],
    "workers": [
        ConfigChange("datasets[0].num_workers", 4, 2),
        ConfigChange("datasets[0].prefetch_factor", 2, 1),
    ],
    "saving": [ConfigChange("save.save_every", 1000, 2000)],
}
BREAKS = re.compile("\r\n|\r|\n")


def plain(text: str) -> Any:
    return load(text.removeprefix("\ufeff"))


def comments(text: str) -> list[str]:
    """Every `#` with what follows it; the examples have the same in strings, which must not change either."""
    return re.findall(r"#[^\r\n]*", text)


def put(settings_: Any, path: str, value: Any) -> None:
    *outer, last = [int(p[1:-1]) if p[0] == "[" else p for p in path.replace("[", ".[").split(".")]
    for step in outer:
        settings_ = settings_.setdefault(step, {}) if isinstance(settings_, dict) else settings_[step]
    settings_[last] = value


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("style", ALL)
def test_only_what_is_meant_changes(style: str, change: str, knowledge: Knowledge) -> None:
    text, changes = ALL[style], CHANGES[change]
    result = apply(text, changes, knowledge)
    expected = copy.deepcopy(plain(text))
    for one in changes:
        put(processes(expected)[0][1], one.path, one.after)
    assert same(plain(result.text), expected)
    now = settings_of(processes(plain(result.text))[0][1], knowledge)
    assert all(now[one.path].value == one.after for one in changes if one.path in now)
    assert [(one.path, one.after) for one in result.done] == [(one.path, one.after) for one in changes]

    # text: only lines of the settings differ, and no comment, break or mark does
    gone = ["# big"] if (style, change) == ("quoted", "resolution") else []  # the comment of the item taken out
    assert comments(result.text) == [comment for comment in comments(text) if comment.strip() not in gone]
    assert {*BREAKS.findall(result.text)} <= {*BREAKS.findall(text)}
    assert result.text.startswith("\ufeff") == text.startswith("\ufeff")
    assert result.text[-1] == text[-1]
    if style not in ("flow", "tight"):
        words = {word for one in changes for word in re.findall(r"\w+", one.path)} | {"1024", "768", "save"}
        differing = [d for d in difflib.ndiff(BREAKS.split(text), BREAKS.split(result.text)) if d[0] in "+-"]
        assert all(words & set(re.findall(r"\w+", line)) for line in differing if len(line.strip()) > 2)
        assert len(differing) <= 2 * len(changes) + 2

    # twice is once
    again = apply(result.text, changes, knowledge)
    assert (again.text, again.done) == (result.text, ())
    assert len(again.already) == len(changes)


def test_a_word_keeps_its_manner(knowledge: Knowledge) -> None:
    def line(change: str, text: str = PLAIN) -> str:
        old = text.splitlines()
        return next(row for row in apply(text, CHANGES[change], knowledge).text.splitlines() if row not in old)

    assert line("checkpointing") == "        gradient_checkpointing: True  # off for speed"
    assert line("optimizer") == '        optimizer: "adamw8bit"'
    assert line("resolution") == "          resolution: [ 512, 768 ]  # several"
    assert line("low_vram") == "        low_vram: true"
    assert line("optimizer", ALL["quoted"]) == "            \"optimizer\": 'adamw8bit'"
    assert line("low_vram", ALL["json"]) == '          "low_vram": true,'


def test_a_file_that_starts_as_json_but_is_none_is_refused(knowledge: Knowledge) -> None:
    with pytest.raises(Refused) as caught:
        apply(FLOW, CHANGES["batch_size"], knowledge)
    assert caught.value.reason == "damaged"


@pytest.mark.parametrize(
    ("have", "change", "result"),
    [
        ("batch_size: 2", ConfigChange("train.batch_size", 8, 4), None),
        ("batch_size: 4", ConfigChange("train.batch_size", 8, 4), None),
        ("batch_size: 16", ConfigChange("train.batch_size", 8, 4), "batch_size: 4"),
        ("gradient_accumulation: 4", ConfigChange("train.gradient_accumulation", 1, 2), None),
        ("gradient_accumulation: 1", ConfigChange("train.gradient_accumulation", 1, 2), "gradient_accumulation: 2"),
        ("gradient_accumulation:", ConfigChange("train.gradient_accumulation", 1, 2), "gradient_accumulation: 2"),
        (
            "gradient_accumulation: ~ # x",
            ConfigChange("train.gradient_accumulation", 1, 2),
            "gradient_accumulation: 2 # x",
        ),
        ("optimizer: # none", ConfigChange("train.optimizer", "adamw", "adamw8bit"), "optimizer: adamw8bit # none"),
        ("batch_size: !!int 8", ConfigChange("train.batch_size", 8, 4), "batch_size: !!int 4"),
        ("batch_size: &b 8", ConfigChange("train.batch_size", 8, 4), "batch_size: &b 4"),
    ],
)
def test_the_file_is_what_counts(have: str, change: ConfigChange, result: str | None, knowledge: Knowledge) -> None:
    text = f"train:\n  steps: 5\n  {have}\n"
    patched = apply(text, [change], knowledge)
    assert patched.text == f"train:\n  steps: 5\n  {result or have}\n"
    assert bool(patched.already) == (result is None)


def test_what_the_file_says_otherwise_is_not_written_over(knowledge: Knowledge) -> None:
    with pytest.raises(Refused) as caught:
        apply("train:\n  optimizer: prodigy\n", CHANGES["optimizer"], knowledge)
    assert (caught.value.reason, caught.value.values["have"]) == ("other_value", "prodigy")


def test_an_older_name_is_edited_under_that_name(knowledge: Knowledge) -> None:
    offload = [ConfigChange("model.layer_offloading", False, True)]
    text = "model:\n  auto_memory: false  # old\n  arch: flux\n"
    assert apply(text, offload, knowledge).text == text.replace("false", "true")
    rank = "network:\n  rank: 32\ntrain:\n  steps: 1\n"
    assert apply(rank, CHANGES["rank"], knowledge).text == rank.replace("32", "16")
    both = "model:\n  auto_memory: true\n  layer_offloading: false\n"
    assert apply(both, offload, knowledge).text == both.replace("false", "true")


DATASETS = """datasets:
  - &first
    folder_path: /a
    resolution: &sides [512, 1024]
    num_frames: 81
  - <<: *first
    folder_path: /b
  - folder_path: /c
    resolution: *sides
train:
  steps: 5
"""
SIDES = [512, 1024]


def test_an_alias_is_written_out_rather_than_its_anchor_changed(knowledge: Knowledge) -> None:
    third = apply(DATASETS, [ConfigChange("datasets[2].resolution", SIDES, [512])], knowledge)
    assert third.text == DATASETS.replace("*sides", "[512]")
    second = apply(DATASETS, [ConfigChange("datasets[1].num_frames", 81, 41)], knowledge)
    assert second.text == DATASETS.replace("folder_path: /b\n", "folder_path: /b\n    num_frames: 41\n")


def test_an_anchor_that_others_use_is_not_changed(knowledge: Knowledge) -> None:
    with pytest.raises(Refused) as caught:
        apply(DATASETS, [ConfigChange("datasets[0].resolution", SIDES, [512])], knowledge)
    assert caught.value.reason == "shared"


def test_an_anchor_changes_where_all_who_use_it_are_meant(knowledge: Knowledge) -> None:
    text = "datasets:\n- folder_path: /a\n  resolution: &r [512, 1024]\n- folder_path: /b\n  resolution: *r\n"
    both = [ConfigChange(f"datasets[{n}].resolution", SIDES, [512]) for n in (0, 1)]
    assert apply(text, both, knowledge).text == text.replace("[512, 1024]", "[512]")


def test_a_whole_section_by_alias_is_refused_when_shared(knowledge: Knowledge) -> None:
    text = "x: &t\n  batch_size: 4\ntrain: *t\nmodel:\n  arch: flux\n"
    with pytest.raises(Refused) as caught:
        apply(text, CHANGES["batch_size"], knowledge)
    assert caught.value.reason == "shared"


TWO = """job: extension
config:
  name: pair
  process:
    - type: sd_trainer
      datasets: [{folder_path: /a}]
      train: {batch_size: 4}
    - type: sd_trainer
      datasets: [{folder_path: /b}]
      train: {batch_size: 4}
"""


def test_of_several_processes_the_one_that_ran_is_edited(knowledge: Knowledge) -> None:
    ran = plain(TWO)["config"]["process"][1]
    once = apply(TWO, CHANGES["batch_size"], knowledge, ran)
    assert once.text == TWO.replace("/b}]\n      train: {batch_size: 4}", "/b}]\n      train: {batch_size: 2}")
    assert apply(once.text, CHANGES["batch_size"], knowledge, ran).done == ()


@pytest.mark.parametrize("ran", [None, {"type": "sd_trainer", "datasets": [{"folder_path": "/c"}]}])
def test_of_several_processes_none_is_guessed(ran: dict[str, Any] | None, knowledge: Knowledge) -> None:
    with pytest.raises(Refused) as caught:
        apply(TWO, CHANGES["batch_size"], knowledge, ran)
    assert caught.value.reason == "which_process"


def test_another_dataset_at_the_same_place_is_refused(knowledge: Knowledge) -> None:
    ran = {"datasets": [{"folder_path": "/data/other"}]}
    with pytest.raises(Refused) as caught:
        apply(PLAIN, CHANGES["resolution"], knowledge, ran)
    assert caught.value.reason == "other_dataset"
    with pytest.raises(Refused) as caught:
        apply(PLAIN, [ConfigChange("datasets[3].num_frames", 81, 41)], knowledge)
    assert caught.value.reason == "no_dataset"


def test_a_preview_that_is_gone_needs_no_edit(knowledge: Knowledge) -> None:
    change = [ConfigChange("sample.samples[2].width", 1024, 704)]
    assert apply(PLAIN, change, knowledge).text == PLAIN


@pytest.mark.parametrize("section", ["text", "[1, 2]", "|\n  a\n", "4"])
def test_a_section_that_is_no_mapping_is_refused(section: str, knowledge: Knowledge) -> None:
    with pytest.raises(Refused) as caught:
        apply(f"train:\n  steps: 4\nmodel: {section}\n", CHANGES["low_vram"], knowledge)
    assert caught.value.reason == "shape"


@pytest.mark.parametrize(
    ("listed", "result"),
    [
        ("[1024, 512, 768]", "[512, 768]"),
        ("[512, 1024, 768, 1024]", "[512, 768]"),
        ("[1024, 1024, 768]", "[768]"),
        ("[512,768,1024,]", "[512,768,]"),
        ("[\n    512, # small\n    1024, # big\n  ]", "[\n    512, # small\n  ]"),
        ("\n  - 1024\n  - 512", "\n  - 512"),
    ],
)
def test_the_largest_leaves_the_list_wherever_it_stands(listed: str, result: str, knowledge: Knowledge) -> None:
    text = "datasets:\n- folder_path: /a\n  resolution: {}\n  num_frames: 1\n"
    patched = apply(
        text.format(listed), [ConfigChange("datasets[0].resolution", [512, 768, 1024], [512, 768])], knowledge
    )
    assert patched.text == text.format(result)


FIXTURES = sorted(path.parent for path in (Path(__file__).parents[2] / "fixtures").glob("*/log.txt"))


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda folder: folder.name)
def test_every_fix_of_every_fixture_means_what_it_says(folder: Path, lexicon: Lexicon) -> None:
    opened = open_path(folder / "log.txt")
    logs = [Source(log.name, log.encoding, log.chunks()) for log in opened.logs]
    analysis = analyse("-", logs, [], lexicon)
    ran = analysis.attempt.dump.value if analysis.attempt.dump is not None else None
    if ran is None:
        return
    job = from_dump(ran, "name")
    for text in (as_yaml(job), as_json(job)):
        assert same(plain(text), job)
        for item in analysis.suggestions:
            if not item.changes:
                continue
            result = apply(text, item.changes, lexicon.knowledge, ran)
            assert result.done == item.changes
            expected = copy.deepcopy(job)
            for one in item.changes:
                put(expected["config"]["process"][0], place(one.path, ran, lexicon.knowledge), one.after)
            assert same(plain(result.text), expected)
            assert apply(result.text, item.changes, lexicon.knowledge, ran).text == result.text


KEYS = st.sampled_from(["batch_size", "steps", "lr", "gradient_checkpointing", "note", "ema_config", "dtype"])
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Co", "Cn"]), max_size=12)
VALUES = st.one_of(st.integers(-9, 9), st.booleans(), st.none(), st.floats(allow_nan=True), WORDS, st.lists(WORDS))
BLANKS = st.sampled_from(["", "  ", "\t"])


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(KEYS, VALUES, min_size=1),
    st.dictionaries(st.sampled_from(["low_vram", "arch", "qtype"]), VALUES),
    st.sampled_from(["block", "flow", "json", "json_indented"]),
    st.integers(1, 6),
    st.sampled_from(["\n", "\r\n"]),
    WORDS,
)
def test_whatever_the_file_holds_the_edit_is_exact_or_refused(
    knowledge: Knowledge, train: dict[str, Any], model: dict[str, Any], style: str, step: int, end: str, comment: str
) -> None:
    import json

    import yaml

    job = {"train": train, "model": model}
    if style == "json":
        text = json.dumps(job, ensure_ascii=False)
    elif style == "json_indented":
        text = json.dumps(job, indent=step)
    else:
        text = yaml.safe_dump(job, default_flow_style=style == "flow" or None, indent=max(2, step), allow_unicode=True)
        text = (
            text
            if style == "block"
            else "a: 1\n" + "".join(f"{k}: {yaml.safe_dump(v, default_flow_style=True)}" for k, v in job.items())
        )
        lines = [f"# {comment.splitlines()[0] if comment.splitlines() else ''}", *text.split("\n")]
        text = end.join(lines)
    before = plain(text)
    changes = [ConfigChange("train.batch_size", 4, -10), ConfigChange("train.gradient_checkpointing", False, True)]
    changes += [
        ConfigChange("model.low_vram", False, True),
        ConfigChange("model.model_kwargs.match_target_res", None, True),
    ]
    try:
        result = apply(text, changes, knowledge)
    except Refused as refused:
        assert refused.reason in ("shape", "other_value", "damaged")
        return
    for change in result.done:
        put(before, change.path, change.after)
    assert same(plain(result.text), before)
    if not style.startswith("json"):
        assert result.text.split(end)[0] == text.split(end)[0]
    assert apply(result.text, changes, knowledge).text == result.text
