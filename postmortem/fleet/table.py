"""The rows as a pandas table, typed column by column, and as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import pandas as pd

from postmortem.fleet import query
from postmortem.fleet.groups import FixTotal, Group
from postmortem.fleet.query import BadExpression, checked
from postmortem.fleet.row import Row

if TYPE_CHECKING:
    from postmortem.report.texts import Texts

_TYPES = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}
FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for a formula; the wide forms in East Asian settings."""
RENAMED = {"class_": "class"}


def columns() -> dict[str, str]:
    """The columns in order, with their pandas types; `retries` is not one: a table holds one value a cell."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(Row).items():
        if name == "retries":
            continue
        kind = next(one for one in get_args(hint) if one is not type(None)) if isinstance(hint, UnionType) else hint
        found[RENAMED.get(name, name)] = _TYPES[kind]
    return found


def frame(rows: Iterable[Row]) -> pd.DataFrame:
    """The table of `rows`, in their order."""
    listed = list(rows)
    data: dict[str, Any] = {}
    kind: Any
    for name, kind in columns().items():
        field = next((own for own, shown in RENAMED.items() if shown == name), name)
        data[name] = pd.array([getattr(row, field) for row in listed], dtype=kind)
    table: pd.DataFrame = pd.DataFrame(data)
    return table


def where(table: pd.DataFrame, expression: str) -> pd.DataFrame:
    """The rows for which a pandas query holds, such as ``family == 'Z-Image' and class == 'bucket_spike'``.

    Raises BadExpression. Only columns, constants, comparisons and `and`, `or`, `not`, `in` may stand in it: pandas
    would also call methods and read the program's own variables.
    """
    asked = checked(expression, list(table.columns))
    try:
        kept: pd.DataFrame = table.rename(columns={"class": "class_"}).query(asked, engine="python")
    except Exception as error:  # pandas raises what the parser, numpy or its own types raise
        kinds = "numbers with numbers, texts in quotes with texts, true and false as True and False"
        raise BadExpression(f"{type(error).__name__.lower()}: compare {kinds}") from None
    renamed: pd.DataFrame = kept.rename(columns={"class_": "class"})
    return renamed


def unmatched(table: pd.DataFrame, expression: str) -> list[tuple[str, str, list[str]]]:
    """The texts in the expression that no row has in that column, each with what rows have instead."""

    def values(column: str) -> list[str]:
        if columns().get(column) != "string":
            return []
        return [str(one) for one in table[column].dropna().unique()]

    return query.unmatched(expression, values)


def to_csv(table: pd.DataFrame) -> str:
    """CSV in which no cell is a formula: a text that would be one has an apostrophe in front."""
    return _csv(list(table.columns), table.itertuples(index=False, name=None))


def to_jsonl(rows: Sequence[Row]) -> str:
    """One JSON object a line, keys in the columns' order, the retries with them."""
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def to_parquet(table: pd.DataFrame) -> bytes:
    """A Parquet file whose columns have their types even where all is null. Raises ImportError without pyarrow."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    kinds = {"string": pa.string(), "Int64": pa.int64(), "Float64": pa.float64(), "boolean": pa.bool_()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns().items()])
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table, schema=schema, preserve_index=False), sink, compression="zstd")
    return sink.getvalue()


def groups_to_json(groups: Sequence[Group], fixes: Sequence[FixTotal]) -> str:
    """Groups and fixes in their order, as one JSON object."""
    content = msgspec.json.encode({"groups": groups, "fixes": fixes})
    return msgspec.json.format(content, indent=2).decode() + "\n"


def groups_to_csv(groups: Sequence[Group], texts: Texts) -> str:
    """A line a group; lists and facts in words, so that each has one cell."""
    from postmortem.fleet import words

    skipped = ("families", "facts")
    names = [name for name in Group.__struct_fields__ if name not in skipped]
    lines = [
        (
            words.title(group, texts),
            *(getattr(group, name) for name in names),
            "; ".join(group.families),
            "; ".join(words.fact(item, texts) for item in group.facts),
        )
        for group in groups
    ]
    return _csv(["title", *(RENAMED.get(name, name) for name in names), *skipped], lines)


def _csv(names: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for values in lines:
        writer.writerow([_cell(value) for value in values])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if value is pd.NA or value is None:
        return ""
    if hasattr(value, "item"):
        value = value.item()  # of numpy, whose booleans are none of Python's
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.lstrip().startswith(FORMULA):
        return "'" + value
    return value
