"""Read a report that somebody sent: JSON of any content, bounded, and checked before anything is believed."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from postmortem.bounded import TooMuch, load_json
from postmortem.report.document import SCHEMA_VERSION, Report
from postmortem.text import LogText, Words, printable

MAX_BYTES = 32 << 20
"""Largest report that is read."""
MAX_VALUES = 3_000_000
MAX_DEPTH = 40
"""Nesting that no report reaches."""
TOOL = "aitk-postmortem"
_LARGEST = 2**63


class BadReport(ValueError):
    """What was given is no report; the message says why, on one line."""


class Claims(msgspec.Struct, frozen=True):
    """A report as it was sent: its JSON, and what it says of how it was made.

    `same_schema` is whether this version writes reports of that shape.
    """

    value: dict[str, Any]
    tool_version: str
    patterns: str
    schema_version: str
    lang: str
    same_schema: bool


def read(data: bytes) -> Claims:
    """The claims of the report in `data` (UTF-8). Raises BadReport."""
    value = parse(data)
    tool = value.get("tool")
    if not isinstance(tool, dict) or tool.get("name") != TOOL:
        raise BadReport("no report of postmortem; give what `postmortem analyze --format json` or `bundle` wrote")
    told = (tool.get("version"), tool.get("patterns", ""), value.get("schema_version"), value.get("lang", "en"))
    if not all(isinstance(one, str) for one in told):
        raise BadReport("its version, patterns, schema or language is no text")
    version, patterns, schema, lang = (str(one) for one in told)
    same = schema == SCHEMA_VERSION
    if same:
        try:
            msgspec.convert(value, Report, dec_hook=_text)
        except msgspec.ValidationError as error:
            raise BadReport(f"not as schema {SCHEMA_VERSION} has it: {printable(str(error))[:200]}") from None
    elif not all(isinstance(value.get(key), dict) for key in ("input", "failure")):
        raise BadReport("holds no input and no failure, as every report does")
    return Claims(value, version, patterns, schema, lang, same)


def parse(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`, strictly: no key twice, no NaN, no bottomless nesting. Raises BadReport."""
    if len(data) > MAX_BYTES:
        raise BadReport(f"larger than {MAX_BYTES >> 20} MiB; that is no report")
    try:
        value = load_json(data, MAX_VALUES, pairs=_once, constant=_no_constant, number=int)
    except BadReport:
        raise
    except TooMuch as error:
        raise BadReport(f"{error}; that is no report") from None
    except UnicodeDecodeError as error:
        raise BadReport(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise BadReport("nested deeper than any report") from None
    except json.JSONDecodeError as error:
        raise BadReport(f"not JSON: {error.msg.lower()}, line {error.lineno}") from None
    except ValueError:
        raise BadReport("not JSON: a number that no report holds") from None
    if not isinstance(value, dict):
        raise BadReport("JSON, but no report: it is no object")
    _check(value)
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadReport("an object in it has a key twice; readers would disagree on what it says")
    return found


def _no_constant(name: str) -> Any:
    raise BadReport(f"holds {name}, which is no JSON")


def _check(value: Any) -> None:
    """Depth and numbers, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                below.extend(one.values())
            elif isinstance(one, list):
                below.extend(one)
            elif isinstance(one, (int, float)) and not abs(one) < _LARGEST:
                raise BadReport("holds a number that no report holds")
        if not below:
            return
        level = below
    raise BadReport("nested deeper than any report")


def _text(kind: type, value: Any) -> Any:
    if kind in (LogText, Words) and isinstance(value, str):
        return kind(value)
    raise TypeError("Expected `str`")
