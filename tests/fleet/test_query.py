"""What may be asked of the table, and what may not."""

from __future__ import annotations

import pytest

from postmortem.fleet.query import BadExpression, checked, unmatched
from postmortem.fleet.row import Row
from postmortem.fleet.table import columns, frame, to_csv, where

ROWS = [
    Row(run="a", path="a", status="analysed", family="Z-Image", class_="bucket_spike", batch_size=2),
    Row(run="b", path="b", status="analysed", family="FLUX.1", class_="early_step", batch_size=None),
    Row(run="=1+1", path="c", status="error", error="@x"),
]


def test_columns_compare_with_constants() -> None:
    table = frame(ROWS)
    assert list(where(table, "family == 'Z-Image' and class == 'bucket_spike'")["run"]) == ["a"]
    assert list(where(table, "batch_size > 1")["run"]) == ["a"]
    assert list(where(table, "class in ['early_step', 'caching'] or status != 'analysed'")["run"]) == ["b", "=1+1"]


def test_class_inside_a_text_stays() -> None:
    assert checked("run == 'class'", ["run"]) == "run == 'class'"


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "run.str.len() > 1",
        "@rows",
        "nothing == 1",
        "run == ",
        "[x for x in (1,)]",
        "lambda: 1",
        "run; run",
        "(" * 5000,
        "'a' * 10**9",
    ],
)
def test_nothing_else_is_asked(expression: str) -> None:
    with pytest.raises(BadExpression):
        checked(expression, ["run", "class"])


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("familie == 'x'", "did you mean family?"),
        ("class = 'x'", "write == for equals"),
        ("family == FLUX", "put it in quotes"),
        ("family == Z-Image", "texts in quotes"),
        ("batch > 1", "batch_size"),
    ],
)
def test_an_error_says_what_to_write(expression: str, hint: str) -> None:
    with pytest.raises(BadExpression, match=hint.replace("?", r"\?")):
        checked(expression, list(columns()))


def test_a_comparison_of_the_wrong_type_is_said() -> None:
    with pytest.raises(BadExpression, match="numbers with numbers"):
        where(frame(ROWS), "batch_size > 'two'")


def test_a_text_that_no_row_has_is_told_with_the_nearest() -> None:
    values = {"class": ["bucket_spike", "caching"]}
    found = unmatched("class == 'bucket_spikes' or class in ['caching', 'x']", lambda name: values.get(name, []))
    assert found == [("class", "bucket_spikes", ["bucket_spike"]), ("class", "x", ["bucket_spike", "caching"])]


def test_no_cell_of_the_csv_is_a_formula() -> None:
    last = to_csv(frame(ROWS)).splitlines()[-1]
    assert last.startswith("'=1+1,c,error,'@x")


def test_every_column_has_a_type() -> None:
    assert columns()["step"] == "Int64" and columns()["class"] == "string" and columns()["hours"] == "Float64"
    assert frame(ROWS).dtypes["batch_size"] == "Int64"


@pytest.mark.parametrize("expression", ["1", "True", "'a'", "[]", "- batch_size", "batch_size > 1 or True", "1 == 1"])
def test_what_filters_nothing_is_said_before_any_log_is_read(expression: str) -> None:
    with pytest.raises(BadExpression, match="comparison"):
        checked(expression, list(columns()))


def test_lines_comments_and_pandas_own_signs_change_nothing() -> None:
    table = frame([Row(run="a`b @c\u2028d", path="a", status="analysed", batch_size=2), *ROWS])
    assert list(where(table, "run == 'a`b @c\u2028d'")["path"]) == ["a"]
    assert list(where(table, "(batch_size > 1\n and status == 'analysed') # both")["path"]) == ["a", "a"]


def test_a_deep_expression_is_one_clear_error() -> None:
    for deep in ("-" * 1900 + "1 < batch_size", "not " * 490 + "batch_size > 1"):
        try:
            where(frame(ROWS), deep)
        except BadExpression as error:
            assert "deep" in str(error) or "not an expression" in str(error)
