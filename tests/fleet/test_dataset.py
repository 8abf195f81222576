"""A data set holds what the rows say, whoever wrote which part and how often."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pandas as pd
import pytest

from postmortem.fleet import dataset
from postmortem.fleet.cache import Cache
from postmortem.fleet.dataset import DatasetError, Folder
from postmortem.fleet.engines.share import shares
from postmortem.fleet.find import Target, find
from postmortem.fleet.run import rows_of
from postmortem.fleet.table import frame
from postmortem.fleet.work import work_all
from postmortem.scan import Lexicon
from tests.fleet import trees

pytest.importorskip("pyarrow")


def written(root: Path, out: Path, lexicon: Lexicon, size: int = 3) -> dataset.Summary:
    """What a cluster does, in this process: shares of `size` runs, each a part."""
    folder = Folder(str(out))
    folder.begin("build")
    targets = list(find([root]))
    known = folder.known()
    parts = []
    for number, start in enumerate(range(0, len(targets), size)):
        share = targets[start : start + size]
        digest = dataset.digest(share, "build", b"")
        name = dataset.part_name(number, digest)
        part = folder.reuse(known[digest], name) if digest in known else None
        parts.append(part or folder.write(name, work_all(share, lexicon)))
    return folder.commit(parts, "build")


def read(out: Path) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in sorted(out.glob("part-*.parquet"))], ignore_index=True)


def test_it_holds_the_rows_of_a_batch(tmp_path: Path, lexicon: Lexicon) -> None:
    root = trees.mixed(tmp_path / "runs")
    summary = written(root, tmp_path / "out", lexicon)
    expected = frame(rows_of(find([root]), lexicon, Cache("v", None), 1))
    pd.testing.assert_frame_equal(read(tmp_path / "out"), expected)
    assert expected["duplicate_of"].dropna().tolist() == ["copy/again.log"]
    assert (summary.rows, summary.errors, summary.copies, summary.complete) == (len(expected), 2, 1, True)
    assert json.loads((tmp_path / "out" / dataset.MARK).read_bytes())["rows"] == len(expected)


def test_what_has_not_changed_is_not_analysed_again(
    tmp_path: Path, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, out = trees.mixed(tmp_path / "runs"), tmp_path / "out"
    first = written(root, out, lexicon)
    before = read(out)
    monkeypatch.setattr("postmortem.fleet.work.work", lambda target, *_: pytest.fail(target.path))
    again = written(root, out, lexicon)
    assert again.reused == again.parts == first.parts
    assert msgspec.structs.replace(again, reused=0) == first
    pd.testing.assert_frame_equal(read(out), before)


def test_parts_of_runs_that_are_gone_go_too(tmp_path: Path, lexicon: Lexicon) -> None:
    root, out = trees.mixed(tmp_path / "runs"), tmp_path / "out"
    written(root, out, lexicon)
    (root / "copy" / "again.log").unlink()
    summary = written(root, out, lexicon)
    assert len(list(out.glob("*.parquet"))) == summary.parts
    assert "copy/again.log" not in read(out)["run"].tolist()
    assert read(out)["duplicate_of"].isna().all()


def test_a_damaged_part_is_made_again(tmp_path: Path, lexicon: Lexicon) -> None:
    root, out = trees.mixed(tmp_path / "runs"), tmp_path / "out"
    written(root, out, lexicon)
    before = read(out)
    next(iter(sorted(out.glob("*.parquet")))).write_bytes(b"PAR1 torn")
    assert written(root, out, lexicon).reused == 4
    pd.testing.assert_frame_equal(read(out), before)


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.parquet").write_bytes(b"x")
    with pytest.raises(DatasetError, match=r"holds other files \(thesis.parquet\)"):
        Folder(str(tmp_path)).begin("build")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.parquet"]


def target(name: str, size: int) -> Target:
    return Target(name, name, "log", True, "s", size, 0.0)


def test_shares_are_cut_by_bytes_and_mostly_where_they_were() -> None:
    large = [target(f"large_{number}", 40 << 20) for number in range(3)]
    assert [len(share) for share in shares(large)] == [1, 1, 1]
    many = [target(f"run_{number}", 1000) for number in range(5000)]
    cut = list(shares(many))
    assert [one for share in cut for one in share] == many
    assert max(map(len, cut)) <= 512
    more = list(shares([target("a_new_one", 1000), *many]))
    same = {tuple(one.name for one in share) for share in cut} & {tuple(one.name for one in share) for share in more}
    assert len(same) >= len(cut) - 3
