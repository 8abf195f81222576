"""A ticket's own promises: its files have the checksums of its manifest, and the log is the one it was made of."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from postmortem.report.document import quoted
from postmortem.text import LogText
from postmortem.verify.document import Finding
from postmortem.verify.sent import BadReport, parse

MANIFEST = "manifest.json"
_SHARED = (("tool", "tool"), ("schema_version", "schema_version"), ("lang", "lang"))


def finding(path: str, why: str, sent: Any, found: Any) -> Finding:
    """A claim on how the report was made, or of a ticket's manifest, that cannot be true."""
    return Finding(
        group="files" if path.startswith(MANIFEST) else "analysis",
        path=LogText(path[:300]),
        why=why,
        says="",
        report=quoted(sent),
        log=quoted(found),
        line=None,
    )


def check(
    files: Mapping[str, bytes], report: Mapping[str, Any], text_sha256: str
) -> tuple[list[Finding], int, list[str]]:
    """What is wrong with a ticket, how many of its promises hold, and what to tell the reader."""
    found: list[Finding] = []
    good = 0
    try:
        manifest = parse(files[MANIFEST])
    except BadReport:
        return [finding(MANIFEST, "no_manifest", None, None)], 0, []
    listed = {item["name"]: item for item in _items(manifest, "files") if isinstance(item.get("name"), str)}
    for name, content in sorted(files.items()):
        if name == MANIFEST:
            continue
        item = listed.pop(name, None)
        real = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if item is None:
            found.append(finding(f"{MANIFEST}:{name}", "not_listed", None, None))
        elif any(item.get(key) != value for key, value in real.items()):
            found.append(finding(f"{MANIFEST}:{name}", "file_changed", item.get("sha256"), real["sha256"]))
        else:
            good += 1
    found += [finding(f"{MANIFEST}:{name[:80]}", "file_missing", None, None) for name in list(listed)[:20]]
    for key, same in _SHARED:
        if manifest.get(key) != report.get(same):
            found.append(finding(f"{MANIFEST}:{key}", "other_than_report", manifest.get(key), report.get(same)))
        else:
            good += 1
    told = [item.get("text_sha256") for item in _items(manifest, "logs") if item.get("reported") is True]
    if told == [text_sha256]:
        return found, good + 1, ["same_log"]
    found.append(finding(f"{MANIFEST}:logs", "other_log", told[0] if told else None, text_sha256))
    return found, good, []


def _items(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    items = value.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
