"""A generated corpus: every run comes out as what it is, none is lost."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec

from benchmarks import corpus
from postmortem.fleet.cache import Cache
from postmortem.fleet.find import find
from postmortem.fleet.run import rows_of
from postmortem.scan import Lexicon

RUNS = 60


def test_every_run_comes_out_as_what_it_is(tmp_path: Path, lexicon: Lexicon) -> None:
    truths = corpus.write(tmp_path / "runs", RUNS, seed=3)
    found = rows_of(find([tmp_path / "runs"]), lexicon, Cache("v", None), 1)
    rows = [json.loads(msgspec.json.encode(row)) for row in found]
    assert corpus.differences(truths, rows) == []
    counted = Counter((row["status"], row["kind"], row["class"]) for row in rows)
    expected = corpus.counts([truth for truth in truths if truth["status"] != corpus.ABSENT])
    assert counted == expected
    assert len(expected) > 7 and expected["error", None, None] > 2


def test_one_seed_writes_one_tree(tmp_path: Path) -> None:
    assert corpus.write(tmp_path / "a", 40, seed=5) == corpus.write(tmp_path / "b", 40, seed=5)
    first = {path.relative_to(tmp_path / "a"): path for path in (tmp_path / "a").rglob("*") if path.is_file()}
    for name, path in first.items():
        assert (tmp_path / "b" / name).read_bytes() == path.read_bytes()
