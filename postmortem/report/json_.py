"""The report as JSON."""

from __future__ import annotations

import msgspec

from postmortem.report.document import Report
from postmortem.report.encode import json_hook


def render(report: Report) -> str:
    """The report as JSON, indented, keys in the contract's order."""
    return msgspec.json.format(msgspec.json.encode(report, enc_hook=json_hook), indent=2).decode() + "\n"
