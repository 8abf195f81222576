"""A ticket's own promises: its files have the checksums of its manifest, and the log is the one it was made of."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from postmortem.bundle.manifest import MANIFEST_VERSION, CitedPattern, FileItem, LogItem, Manifest
from postmortem.report.document import quoted
from postmortem.text import LogText
from postmortem.verify.compare import Labels
from postmortem.verify.document import Finding
from postmortem.verify.sent import BadReport, parse

MANIFEST = "manifest.json"
_SHARED = ("tool", "schema_version", "lang")
_INPUT = ("source", "options")
_LISTS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("files", FileItem),
    ("logs", LogItem),
    ("patterns", CitedPattern),
)
MAX_LOGS = 200
"""Logs of a manifest that are looked for; no folder that is read has as many."""


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


class Checked(msgspec.Struct, frozen=True):
    """What is wrong with a ticket, what of it cannot be checked, how many of its promises hold, what to tell."""

    wrong: list[Finding]
    left: list[Finding]
    good: int
    hints: list[str]


def check(files: Mapping[str, bytes], report: Mapping[str, Any], logs: Sequence[LogItem], reported: str) -> Checked:
    """The promises of a ticket's manifest; `logs` are those that were given, `reported` the text that the report is
    about, by its checksum."""
    try:
        manifest = parse(files[MANIFEST])
    except BadReport:
        return Checked([finding(MANIFEST, "no_manifest", None, None)], [], 0, [])
    found = Checked([], [], 0, [])
    good = _files(manifest, files, found.wrong)
    for key, other in _agreed(report):
        if manifest.get(key) != other:
            found.wrong.append(finding(f"{MANIFEST}:{key}", "other_than_report", manifest.get(key), other))
        else:
            good += 1
    ours = manifest.get("manifest_version") == MANIFEST_VERSION
    if not ours:
        version = manifest.get("manifest_version")
        found.left.append(finding(f"{MANIFEST}:manifest_version", "other_version", version, MANIFEST_VERSION))
    unknown = [finding(f"{MANIFEST}:{key}", "unknown_key", None, None) for key in list(_strange(manifest))[:20]]
    (found.wrong if ours else found.left).extend(unknown)
    told = [item.get("text_sha256") for item in _items(manifest, "logs") if item.get("reported") is True]
    if told != [reported]:
        found.wrong.append(finding(f"{MANIFEST}:logs", "other_log", told[0] if told else None, reported))
        return Checked(found.wrong, found.left, good, [])
    good += _logs(manifest, report["input"].get("bytes"), logs, found)
    return Checked(found.wrong, found.left, good, ["same_log"])


def _files(manifest: Mapping[str, Any], files: Mapping[str, bytes], wrong: list[Finding]) -> int:
    names = [item["name"] for item in _items(manifest, "files") if isinstance(item.get("name"), str)]
    listed = {item["name"]: item for item in _items(manifest, "files") if isinstance(item.get("name"), str)}
    good = 0
    twice = [name for name, times in Counter(names).items() if times > 1]
    wrong += [finding(f"{MANIFEST}:{name[:80]}", "listed_twice", None, None) for name in twice[:20]]
    for name, content in sorted(files.items()):
        if name == MANIFEST:
            continue
        item = listed.pop(name, None)
        real = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        if item is None:
            wrong.append(finding(f"{MANIFEST}:{name}", "not_listed", None, None))
        elif any(item.get(key) != value for key, value in real.items()):
            wrong.append(finding(f"{MANIFEST}:{name}", "file_changed", item.get("sha256"), real["sha256"]))
        else:
            good += 1
    wrong += [finding(f"{MANIFEST}:{name[:80]}", "file_missing", None, None) for name in list(listed)[:20]]
    return good


def _logs(manifest: Mapping[str, Any], size: Any, logs: Sequence[LogItem], found: Checked) -> int:
    """Each log of the manifest is one of `logs`, by its text; what its file was, where that can be known."""
    given = list(logs)
    good = 0
    for at, item in enumerate(_items(manifest, "logs")[:MAX_LOGS]):
        place = f"{MANIFEST}:logs[{at}]"
        one = next((log for log in given if _is(item, log)), None)
        if one is None:
            found.left.append(finding(place, "log_not_given", item.get("name"), None))
            continue
        given.remove(one)
        if item.get("text_bytes") != one.text_bytes:
            found.wrong.append(finding(f"{place}.text_bytes", "other_value", item.get("text_bytes"), one.text_bytes))
        elif item.get("reported") is True and item["text_bytes"] != size:
            found.wrong.append(finding(f"{place}.text_bytes", "other_than_report", item["text_bytes"], size))
        else:
            good += 1
        file = (item.get("file_bytes"), item.get("file_sha256"))
        # a stream has no file; a file of the log's plain text is known by that, whatever was given here
        known = ((None, None), (one.file_bytes, one.file_sha256), (one.text_bytes, one.text_sha256))
        if file not in known:
            found.left.append(finding(f"{place}.file_sha256", "other_file", file[1], one.file_sha256))
    if len(_items(manifest, "logs")) > MAX_LOGS:
        found.left.append(finding(f"{MANIFEST}:logs", "log_not_given", None, None))
    return good


def _is(item: Mapping[str, Any], log: LogItem) -> bool:
    """What the log that a report is about is called is no claim; of the others it is, where no label stands there."""
    if item.get("text_sha256") != log.text_sha256 or item.get("reported") is not log.reported:
        return False
    name = item.get("name")
    return log.reported or (isinstance(name, str) and Labels().same(name, log.name.reveal()))


def _strange(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Keys that no manifest has, and lists that hold something else than it does."""
    yield from (key[:80] for key in manifest if key not in Manifest.__struct_fields__)
    for key, kind in _LISTS:
        items = manifest.get(key)
        for at, item in enumerate(items if isinstance(items, list) else [None]):
            if not isinstance(item, dict):
                yield f"{key}[{at}]"
            else:
                yield from (f"{key}[{at}].{name[:80]}" for name in item if name not in kind.__struct_fields__)


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
