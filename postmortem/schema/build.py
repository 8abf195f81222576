"""JSON Schemas out of the typed documents, each key with its meaning and unit from `keys.txt`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from postmortem.bundle.manifest import Manifest
from postmortem.check.document import Check
from postmortem.compare.document import Comparison
from postmortem.report.document import Report
from postmortem.text import LogText, Words
from postmortem.verify.document import Verification

DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "report": Report,
    "compare": Comparison,
    "check": Check,
    "verify": Verification,
    "manifest": Manifest,
}
KEYS = Path(__file__).with_name("keys.txt")
EVERYWHERE = "*"
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema(document: str = "report") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document of `DOCUMENTS`."""
    root = DOCUMENTS[document]
    (_,), parts = msgspec.json.schema_components([root], schema_hook=_of_text, ref_template="#/$defs/{name}")
    for name, part in parts.items():
        for key, value in part.get("properties", {}).items():
            told = meaning(name, key)
            # what a reference's own description says is of the object, not of the key
            if told:
                value["description"] = told
    return {
        "$schema": DRAFT,
        "title": f"aitk-postmortem {document}",
        "description": "Sizes are MiB, steps are 0-based, lines 1-based; null means that the log does not say.",
        "$ref": f"#/$defs/{root.__name__}",
        "$defs": parts,
    }


def meaning(name: str, key: str) -> str | None:
    """What `key` of the object `name` means; None where nothing is written."""
    told = keys()
    return told.get(name, {}).get(key) or told[EVERYWHERE].get(key)


@cache
def keys() -> dict[str, dict[str, str]]:
    """The meanings by object and key."""
    found: dict[str, dict[str, str]] = {}
    section: dict[str, str] = {}
    for line in KEYS.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, _, told = line.partition(": ")
            section[key] = told
    return found


def _of_text(kind: type) -> dict[str, Any]:
    if kind in (LogText, Words):
        return {"type": "string"}
    raise NotImplementedError(kind)
