"""What differs between a checkout and the knowledge base, on checkouts of a few lines."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postmortem.drift import Drift, compare, read
from postmortem.drift.render import as_json, as_text
from postmortem.knowledge.log_schema import Examples, Facts, Pattern, Seen
from postmortem.knowledge.schema import Earlier, Exclusion, Family, Knowledge, Setting, Watched
from tests.drift.checkout import write

DAY = datetime.date(2025, 6, 15)
LATER = datetime.date(2025, 9, 1)
TRAIN = "toolkit/config_modules.py TrainConfig"


def pattern(ident: str, regex: str, role: Any = "marker", **more: Any) -> Pattern:
    anchor = more.pop("anchor", regex[:8])
    return Pattern(
        id=ident,
        role=role,
        regex=regex,
        anchors=(anchor,),
        examples=Examples((regex,)),
        source="github.com/ostris/ai-toolkit run.py",
        sets=Facts(),
        **more,
    )


@pytest.fixture
def base(knowledge: Knowledge) -> Knowledge:
    """A knowledge base as small as the checkouts: it covers `tests/drift/checkout.py` whole."""
    return msgspec.structs.replace(
        knowledge,
        patterns=(pattern("job", r"Running \d+ jobs?$", anchor="Running "),),
        settings=(
            Setting("train.batch_size", 1, "int", TRAIN),
            Setting("train.steps", 1000, "int", TRAIN),
            Setting("train.dtype", "fp32", "str", TRAIN),
        ),
        families=(Family("flux", "FLUX.1", ("flux",), "x", flags=("is_flux",)),),
        watched=(Watched("core", ("run.py", "toolkit/*"), "x"),),
        exclusions=(),
    )


def drift(folder: Path, base: Knowledge, *, date: datetime.date | None = None, everything: bool = False) -> Drift:
    return compare(read(folder), base, date=date, everything=everything)


def found(result: Drift) -> list[tuple[str, str, tuple[int, ...], str]]:
    return [(item.kind, item.path, item.lines, item.text) for item in result.uncovered]


def test_a_checkout_that_says_nothing_new(tmp_path: Path, base: Knowledge) -> None:
    result = drift(write(tmp_path), base)
    assert not result.found
    assert result.covered == 4


def test_uncovered_wordings_of_every_kind(tmp_path: Path, base: Knowledge) -> None:
    source = (
        "print(f'Unheard {name}')\ntqdm(x, desc='New bar')\nraise RuntimeError('New failure')\n"
        "class New:\n    arch = 'brandnew'\nclass Old:\n    arch = 'flux'\nprint(f'Unheard {name}')\n"
    )
    result = drift(write(tmp_path, toolkit__new=source), base)
    assert found(result) == [
        ("print", "toolkit/new.py", (1, 8), "Unheard {name}"),
        ("bar", "toolkit/new.py", (2,), "New bar"),
        ("raise", "toolkit/new.py", (3,), "New failure"),
        ("arch", "toolkit/new.py", (5,), "brandnew"),
    ]


def test_a_wording_is_covered_in_any_plausible_filling(tmp_path: Path, base: Knowledge) -> None:
    more = pattern("saved", r"Saved (?:\d+|/\S+) to [a-z]+$", anchor="Saved ")
    source = "print(f'Saved {value} to {other}')\n"
    covering = msgspec.structs.replace(base, patterns=(*base.patterns, more))
    assert not drift(write(tmp_path, toolkit__new=source), covering).found


def test_a_raised_message_needs_a_statement_and_not_only_a_carrier(tmp_path: Path, base: Knowledge) -> None:
    carrier = pattern("carrier", "Error running job: ", role="carrier")
    with_carrier = msgspec.structs.replace(base, patterns=(*base.patterns, carrier))
    folder = write(tmp_path, toolkit__new="raise ValueError('Disk is full')\n")
    assert [item.text for item in drift(folder, with_carrier).uncovered] == ["Disk is full"]
    statement = pattern("full", "Disk is full", role="other_error")
    both = msgspec.structs.replace(base, patterns=(*with_carrier.patterns, statement))
    assert drift(folder, both).uncovered == ()


def test_only_watched_paths_unless_everything(tmp_path: Path, base: Knowledge) -> None:
    folder = write(tmp_path, scripts__tool="print('Unheard tool')\n")
    assert not drift(folder, base).found
    assert drift(folder, base).outside == 1
    assert [item.path for item in drift(folder, base, everything=True).uncovered] == ["scripts/tool.py"]


def test_exclusions_hold_by_kind_path_string_and_unless(tmp_path: Path, base: Knowledge) -> None:
    source = "print('Note: a')\nprint('Note: memory')\nraise ValueError('Note: a')\nprint('A Note: b')\n"
    rule = Exclusion("notes", ("print",), "no phase", ("toolkit/*",), ("Note: ",), ("memory",))
    base = msgspec.structs.replace(base, exclusions=(rule,), watched=(Watched("all", ("*",), "x"),))
    result = drift(write(tmp_path, toolkit__new=source, jobs__new="print('Note: a')\n"), base)
    assert [(item.path, item.kind, item.text) for item in result.uncovered] == [
        ("jobs/new.py", "print", "Note: a"),
        ("toolkit/new.py", "print", "Note: memory"),
        ("toolkit/new.py", "raise", "Note: a"),
        ("toolkit/new.py", "print", "A Note: b"),
    ]
    assert result.excluded == {"notes": 1}


def test_config_keys_that_no_setting_has(tmp_path: Path, base: Knowledge) -> None:
    text = (
        "class TrainConfig:\n  def __init__(self, **kwargs):\n    a = kwargs.get('batch_size', 1), kwargs.get('steps', 1000)\n"
        "    b = kwargs.get('dtype', 'fp32'), kwargs.get('is_flux', False)\n    c = kwargs.get('novel', 3)\n"
        "class OtherConfig:\n  def __init__(self, **kwargs):\n    d = kwargs.get('novel')\n"
    )
    result = drift(write(tmp_path, toolkit__config_modules=text), base)
    assert [(item.text, item.lines) for item in result.uncovered] == [
        ("train.novel", (5,)),
        ("OtherConfig.novel", (8,)),
    ]


def test_defaults_that_differ(tmp_path: Path, base: Knowledge) -> None:
    text = (
        "class TrainConfig:\n  def __init__(self, **kwargs):\n    self.a = kwargs.get('batch_size', 2)\n"
        "    self.b = kwargs.get('steps', 1000.0)\n    self.c = kwargs.get('dtype', self.x)\n"
    )
    result = drift(write(tmp_path, toolkit__config_modules=text), base)
    assert [(item.setting, item.line, item.ours, item.theirs) for item in result.defaults] == [
        ("train.batch_size", 3, 1, 2)
    ]
    excluded = msgspec.structs.replace(
        base, exclusions=(Exclusion("x", ("default",), "y", strings=("train.batch_size",)),)
    )
    assert not drift(tmp_path, excluded).found


def test_an_earlier_default_counts_up_to_its_day(tmp_path: Path, base: Knowledge) -> None:
    earlier = msgspec.structs.replace(
        base.settings[0], earlier=(Earlier(2, DAY), Earlier(4, datetime.date(2025, 1, 1)))
    )
    base = msgspec.structs.replace(base, settings=(earlier, *base.settings[1:]))
    text = "class TrainConfig:\n  def __init__(self, **kwargs):\n    a = kwargs.get('batch_size', 2), kwargs.get('steps', 1000), kwargs.get('dtype', 'fp32')\n"
    folder = write(tmp_path, toolkit__config_modules=text)
    assert not drift(folder, base, date=DAY).found
    assert [item.ours for item in drift(folder, base, date=LATER).defaults] == [1]
    assert [item.ours for item in drift(folder, base, date=datetime.date(2024, 12, 1)).defaults] == [4]
    assert [item.ours for item in drift(folder, base).defaults] == [1]


@pytest.mark.parametrize(
    ("seen", "date", "said", "why"),
    [
        (None, None, False, "no longer said"),
        (Seen(DAY), None, False, "no longer said"),
        (Seen(DAY), LATER, False, "no longer said"),
        (Seen(DAY), DAY, False, None),
        (Seen(LATER), DAY, False, None),
        (Seen(DAY, LATER), None, False, None),
        (Seen(DAY, LATER), None, True, "said although `seen` denies it"),
        (Seen(LATER), DAY, True, "said although `seen` denies it"),
        (Seen(DAY, LATER), LATER, True, None),
        (Seen(DAY), None, True, None),
    ],
)
def test_what_seen_says_is_held_against_the_checkout(
    tmp_path: Path, base: Knowledge, seen: Seen | None, date: datetime.date | None, said: bool, why: str | None
) -> None:
    base = msgspec.structs.replace(
        base, patterns=(*base.patterns, pattern("old", "Old wording$", seen=seen, anchor="Old wor"))
    )
    folder = write(tmp_path, toolkit__new="print('Old wording')\n" if said else "")
    assert [item.why for item in drift(folder, base, date=date).gone] == ([why] if why else [])


def test_an_anchor_in_a_source_speaks_for_a_wording_put_together_elsewhere(tmp_path: Path, base: Knowledge) -> None:
    more = pattern("built", r"Rendered \d+ frames$", anchor="Rendered ")
    base = msgspec.structs.replace(base, patterns=(*base.patterns, more))
    assert drift(write(tmp_path), base).gone != ()
    assert drift(write(tmp_path, toolkit__new="PARTS = ['Rendered ', ' frames']\n"), base).gone == ()


def test_a_setting_that_is_no_longer_read(tmp_path: Path, base: Knowledge) -> None:
    more = (Setting("train.gone", 1, "int", TRAIN), Setting("train.later", 1, "int", TRAIN, seen=Seen(LATER)))
    base = msgspec.structs.replace(base, settings=(*base.settings, *more))
    result = drift(write(tmp_path), base, date=DAY)
    assert [(item.id, item.why) for item in result.gone] == [("train.gone", "no longer read")]


def test_text_and_json_carry_the_same_and_nothing_alive(tmp_path: Path, base: Knowledge) -> None:
    result = drift(write(tmp_path, toolkit__new="print('Unheard \\x1b[31mred\\u202e')\n"), base)
    text = as_text(result)
    assert "toolkit/new.py:1  print  Unheard red\n" in text
    assert "1 not covered, 0 entries contradicted, 0 defaults differ" in text
    document = json.loads(as_json(result))
    assert document["drift"] is True
    assert document["uncovered"] == [{"kind": "print", "path": "toolkit/new.py", "lines": [1], "text": "Unheard red"}]
