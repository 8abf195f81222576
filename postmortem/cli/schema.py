"""`postmortem schema`: the JSON Schema of the report."""

from __future__ import annotations

from postmortem.cli import output


def schema() -> int:
    """Print the JSON Schema of the report."""
    from postmortem.report import json_

    output.write(json_.schema(), None, kind="json")
    return 0
