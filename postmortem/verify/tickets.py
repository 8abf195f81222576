"""A ticket's own promises: its files have the checksums of its manifest, and the log is the one it was made of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from postmortem.report.document import quoted
from postmortem.text import LogText
from postmortem.verify.document import Finding
from postmortem.verify.sent import BadReport, parse

MANIFEST = "manifest.json"
_SHARED = ("tool", "schema_version", "lang")
_INPUT = ("source", "options")


def finding(path: str, why: str, sent: Any, found: Any) -> Finding:
    """A claim on how the report was made, or of a ticket's manifest, that cannot be true."""
    return Finding(
        group="analysis" if path.startswith("input.") else "files",
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
    names = [item["name"] for item in _items(manifest, "files") if isinstance(item.get("name"), str)]
    listed = {item["name"]: item for item in _items(manifest, "files") if isinstance(item.get("name"), str)}
    twice = [name for name in listed if names.count(name) > 1]
    found += [finding(f"{MANIFEST}:{name[:80]}", "listed_twice", None, None) for name in twice[:20]]
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
    for key, other in _agreed(report):
        if manifest.get(key) != other:
            found.append(finding(f"{MANIFEST}:{key}", "other_than_report", manifest.get(key), other))
        else:
            good += 1
    logs = [item for item in _items(manifest, "logs") if item.get("reported") is True]
    told = [item.get("text_sha256") for item in logs]
    if told != [text_sha256]:
        found.append(finding(f"{MANIFEST}:logs", "other_log", told[0] if told else None, text_sha256))
    elif logs[0].get("text_bytes") != report["input"].get("bytes"):
        size = report["input"].get("bytes")
        found.append(finding(f"{MANIFEST}:logs", "other_than_report", logs[0].get("text_bytes"), size))
    else:
        return found, good + 1, ["same_log"]
    return found, good, []


def _agreed(report: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What the manifest says of the report, and the report itself: key and value."""
    held = report["input"]
    options = held.get("options")
    for key in _SHARED:
        yield key, report.get(key)
    for key in _INPUT:
        if key in held:
            yield key, held[key]
    if isinstance(options, dict):
        yield "redacted", options.get("redacted")
    cited = {
        item["pattern"]: item.get("pattern_version")
        for item in _items(report["failure"], "evidence")
        if isinstance(item.get("pattern"), str) and item.get("pattern_version") is not None
    }
    yield "patterns", [{"id": name, "version": cited[name]} for name in sorted(cited)]


def _items(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    items = value.get(key)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
