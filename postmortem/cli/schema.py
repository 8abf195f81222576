"""`postmortem schema`: the JSON Schema of the report, or of another command's JSON."""

from __future__ import annotations

import enum
import json

import typer

from postmortem.cli import output


class Document(str, enum.Enum):
    """Whose schema."""

    report = "report"
    compare = "compare"
    check = "check"
    verify = "verify"
    manifest = "manifest"


def schema(
    document: Document = typer.Argument(
        Document.report, help="The JSON of `analyze`, `compare`, `check` or `verify`, or a ticket's manifest."
    ),
) -> int:
    """Print the JSON Schema of the report, or of another command's JSON."""
    from postmortem.schema import schema as of

    output.write(json.dumps(of(document.value), indent=2, ensure_ascii=False) + "\n", None, kind="json")
    return 0
