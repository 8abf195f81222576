"""A verification as JSON."""

from __future__ import annotations

import msgspec

from postmortem.report.encode import json_hook
from postmortem.verify.document import Verification


def render(found: Verification) -> str:
    """The verification as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(found, enc_hook=json_hook), indent=2).decode() + "\n"
