"""The report as JSON, and its published JSON Schema."""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.report.document import Report
from postmortem.report.encode import json_hook
from postmortem.text import LogText, Words


def render(report: Report) -> str:
    """The report as JSON, indented, keys in the contract's order."""
    return msgspec.json.format(msgspec.json.encode(report, enc_hook=json_hook), indent=2).decode() + "\n"


def schema() -> str:
    """The JSON Schema of the report (draft 2020-12)."""

    def hook(kind: type) -> dict[str, Any]:
        if kind is Words:
            return {"type": "string"}
        if kind is LogText:
            return {"type": "string", "description": "text from the log, without control or invisible characters"}
        raise NotImplementedError(kind)

    (root,), parts = msgspec.json.schema_components([Report], schema_hook=hook, ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "aitk-postmortem report",
        **root,
        "$defs": parts,
    }
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
