"""The check as JSON."""

from __future__ import annotations

import msgspec

from postmortem.check.document import Check
from postmortem.report.encode import json_hook


def render(check: Check) -> str:
    """The check as JSON, indented, keys in the order of docs/check.md."""
    return msgspec.json.format(msgspec.json.encode(check, enc_hook=json_hook), indent=2).decode() + "\n"
