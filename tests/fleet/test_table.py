"""The table as files: each opens where people open it, with the types and the columns that the documentation lists."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import get_type_hints

import duckdb
import pytest

from postmortem.fleet import table
from postmortem.fleet.groups import fixes_of
from postmortem.fleet.row import Row
from postmortem.knowledge.schema import Knowledge
from postmortem.report.texts import Texts
from tests.fleet.rows import HOSTILE, dead, fine, grouped

DOCS = Path(__file__).parents[2] / "docs" / "fleet.md"
DUCK = {"string": "VARCHAR", "Int64": "BIGINT", "Float64": "DOUBLE", "boolean": "BOOLEAN"}
WORDS = {"string": "text", "Int64": "integer", "Float64": "number", "boolean": "true/false"}


def asked(query: str) -> list[tuple[object, ...]]:
    return duckdb.execute(query).fetchall()


def types_in_duckdb(path: Path) -> dict[object, object]:
    return {name: kind for name, kind, *_ in asked(f"DESCRIBE SELECT * FROM '{path}'")}


@pytest.mark.parametrize("rows", [[], [Row(run="a", path="a", status="error")], [dead(1), fine(2)]])
def test_parquet_opens_in_duckdb_with_its_types(tmp_path: Path, rows: list[Row]) -> None:
    target = tmp_path / "fleet.parquet"
    target.write_bytes(table.to_parquet(table.frame(rows)))
    assert types_in_duckdb(target) == {name: DUCK[kind] for name, kind in table.columns().items()}
    assert asked(f"SELECT count(*) FROM '{target}'") == [(len(rows),)]


def test_duckdb_asks_the_parquet(tmp_path: Path) -> None:
    target = tmp_path / "fleet.parquet"
    target.write_bytes(table.to_parquet(table.frame([dead(1), dead(2, family="SDXL"), fine(3)])))
    query = f"SELECT family, count(*) FROM '{target}' WHERE NOT gradient_checkpointing GROUP BY 1 ORDER BY 1"
    assert asked(query) == [("SDXL", 1), ("Z-Image", 1)]


def test_every_column_is_documented_with_its_type() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", DOCS.read_text(), re.MULTILINE)
    assert [(name, kind.strip()) for name, kind, _ in listed] == [
        (name, WORDS[kind]) for name, kind in table.columns().items()
    ]
    assert all(len(meaning.strip()) > 3 for _, _, meaning in listed)


def test_every_column_has_a_name_in_each_language(knowledge: Knowledge) -> None:
    for lang in ("en", "ko"):
        assert [name for name in table.columns() if f"fleet.column.{name}" not in knowledge.texts[lang]] == []


def test_a_csv_comes_back_as_it_was() -> None:
    rows = [dead(1, family='quote " comma, line'), fine(2)]
    found = list(csv.DictReader(io.StringIO(table.to_csv(table.frame(rows)))))
    assert [row["family"] for row in found] == ['quote " comma, line', ""]
    assert (found[0]["gradient_checkpointing"], found[0]["step"], found[0]["hours"]) == ("false", "3", "0.5")


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1+1", "@SUM(A1)", " =1", "＝1+1"])
def test_no_text_is_a_formula(start: str) -> None:
    rows = [Row(run=start, path="p", status="analysed", family=start)]
    found = next(csv.DictReader(io.StringIO(table.to_csv(table.frame(rows)))))
    assert found["run"] == found["family"] == "'" + start


def test_a_negative_number_stays_a_number() -> None:
    rows = [Row(run="a", path="p", status="analysed", request_mib=-1.5)]
    assert next(csv.DictReader(io.StringIO(table.to_csv(table.frame(rows)))))["request_mib"] == "-1.5"


def test_json_lines_have_the_columns_in_order_and_the_retries() -> None:
    (line,) = table.to_jsonl([dead(1)]).splitlines()
    assert list(json.loads(line)) == [*table.columns(), "retries"]


def test_groups_as_json_and_as_csv(knowledge: Knowledge) -> None:
    rows = [*(dead(number) for number in range(12)), *(fine(number) for number in range(12, 40))]
    groups, fixes = grouped(rows, knowledge), fixes_of(table.frame(rows), rows)
    document = json.loads(table.groups_to_json(groups, fixes))
    assert document["groups"][0]["class"] == "early_step" and document["groups"][0]["facts"][0]["of"] == 12
    assert document["fixes"][0] == {
        "fix": "enable_gradient_checkpointing",
        "runs": 12,
        "hours": 6.0,
        "timed": 12,
        "groups": 1,
        "tried": 0,
        "helped": 0,
    }
    found = next(csv.DictReader(io.StringIO(table.groups_to_csv(groups, Texts(knowledge, "en")))))
    assert found["title"] == "Out of memory in the first training steps (gradient checkpointing off)"
    assert found["facts"].startswith("gradient checkpointing off: 12 of 12, against 0 of 28 that did not fail")


def test_the_row_and_the_table_have_the_same_columns() -> None:
    assert [table.RENAMED.get(name, name) for name in get_type_hints(Row) if name != "retries"] == list(table.columns())


def test_hostile_names_stay_text(knowledge: Knowledge) -> None:
    from postmortem.fleet.find import Target
    from postmortem.fleet.work import failed

    row = failed(Target(HOSTILE, HOSTILE, "log", True, "", 0, 0.0), "error", HOSTILE)
    for text in (table.to_csv(table.frame([row])), table.to_jsonl([row])):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b]", text)
