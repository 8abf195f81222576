"""The comparison as JSON."""

from __future__ import annotations

import msgspec

from postmortem.compare.document import Comparison
from postmortem.report.encode import json_hook


def render(comparison: Comparison) -> str:
    """The comparison as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(comparison, enc_hook=json_hook), indent=2).decode() + "\n"
