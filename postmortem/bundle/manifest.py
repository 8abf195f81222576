"""What a bundle says of itself: its files with checksums, the log it is about, the tool and the patterns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from postmortem.report.document import OptionsPart, Report, Tool
from postmortem.report.encode import json_hook
from postmortem.text import LogText

MANIFEST_VERSION = "1.0"


class FileItem(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the bundle."""

    name: str
    bytes: int
    sha256: str


class LogItem(msgspec.Struct, frozen=True, kw_only=True):
    """One log of the input. The text is what byte spans count in; the file is what lay on disk, null for a stream."""

    name: LogText
    reported: bool
    text_bytes: int
    text_sha256: str
    file_bytes: int | None
    file_sha256: str | None


class CitedPattern(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the knowledge base that evidence cites, and the hash of what it claimed."""

    id: str
    version: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The bundle's own description."""

    manifest_version: str
    tool: Tool
    schema_version: str
    lang: str
    redacted: bool
    source: LogText
    options: OptionsPart
    logs: list[LogItem]
    patterns: list[CitedPattern]
    files: list[FileItem]


def describe(report: Report, logs: Sequence[LogItem], files: Mapping[str, bytes]) -> Manifest:
    """The manifest of a bundle that holds `files` besides it."""
    cited = {
        item.pattern: item.pattern_version
        for item in report.failure.evidence
        if item.pattern is not None and item.pattern_version is not None
    }
    return Manifest(
        manifest_version=MANIFEST_VERSION,
        tool=report.tool,
        schema_version=report.schema_version,
        lang=report.lang,
        redacted=report.input.options.redacted,
        source=report.input.source,
        options=report.input.options,
        logs=list(logs),
        patterns=[CitedPattern(id=name, version=cited[name]) for name in sorted(cited)],
        files=[
            FileItem(name=name, bytes=len(files[name]), sha256=hashlib.sha256(files[name]).hexdigest())
            for name in sorted(files)
        ],
    )


def render(manifest: Manifest) -> str:
    """The manifest as JSON."""
    return msgspec.json.format(msgspec.json.encode(manifest, enc_hook=json_hook), indent=2).decode() + "\n"
