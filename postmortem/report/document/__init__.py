"""The report as a typed document: what the JSON holds, and what every renderer prints.

Field names are the contract with scripts and tickets. Sizes are MiB. Text out of a log keeps its own type
until a renderer's encoder makes it harmless for its sink.
"""

from __future__ import annotations

from typing import Any

import msgspec

from postmortem.report.document.findings import (
    CaptureItem,
    ChangeItem,
    EvidenceItem,
    FactorItem,
    Failure,
    ForecastItem,
    ForecastPart,
    Guide,
    LedgerPart,
    Memory,
    MissingItem,
    OomEvent,
    RegressionItem,
    RemedyItem,
    RungItem,
    SkipsPart,
    Span,
    SuspectItem,
    UselessItem,
)
from postmortem.report.document.run import (
    BesidePart,
    BucketItem,
    ChangeOfPace,
    ClueItem,
    ConfigPart,
    DatedPart,
    Input,
    OptionsPart,
    PacePart,
    PhaseTime,
    Run,
    SettingItem,
    SettingRow,
    StepsPart,
    StretchItem,
    TimelineItem,
    TimePart,
    TorchPart,
)
from postmortem.text import LogText, Words, printable

__all__ = [
    "SCHEMA_VERSION",
    "BesidePart",
    "BucketItem",
    "CaptureItem",
    "ChangeItem",
    "ChangeOfPace",
    "ClueItem",
    "ConfigPart",
    "DatedPart",
    "EvidenceItem",
    "FactorItem",
    "Failure",
    "ForecastItem",
    "ForecastPart",
    "Guide",
    "Input",
    "LedgerPart",
    "Memory",
    "MissingItem",
    "OomEvent",
    "OptionsPart",
    "PacePart",
    "PhaseTime",
    "RedactedPart",
    "RegressionItem",
    "RemedyItem",
    "Report",
    "Run",
    "RungItem",
    "SettingItem",
    "SettingRow",
    "SkipsPart",
    "Span",
    "StepsPart",
    "StretchItem",
    "SuspectItem",
    "TimePart",
    "TimelineItem",
    "Tool",
    "TorchPart",
    "UselessItem",
    "WarningItem",
    "quoted",
]

SCHEMA_VERSION = "1.0"


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """The program that made the report."""

    name: str
    version: str
    patterns: str


class WarningItem(msgspec.Struct, frozen=True, kw_only=True):
    """Something the reader should know about the input."""

    id: str
    text: Words
    line: int | None


class RedactedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The document was redacted: what is private in it are labels such as ``<user-1>``; `says` tells people."""

    says: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything, in the order of the contract. `redacted` is null where nothing was replaced by labels."""

    schema_version: str
    tool: Tool
    input: Input
    run: Run
    failure: Failure
    memory: Memory
    oom_events: list[OomEvent]
    buckets: list[BucketItem]
    config: ConfigPart
    remedies: list[RemedyItem]
    timeline: list[TimelineItem]
    ledger: LedgerPart
    forecast: ForecastItem | None
    forecast_missing: MissingItem | None
    ladder: list[RungItem]
    card_needed_gib: int | None
    warnings: list[WarningItem]
    will_not_help: list[UselessItem]
    suspects: list[SuspectItem]
    suspects_fit: bool | None
    skips: SkipsPart | None
    pace: PacePart
    steps: StepsPart
    settings: list[SettingRow]
    capture: list[CaptureItem]
    regressions: list[RegressionItem]
    lang: str
    redacted: RedactedPart | None = None


def quoted(value: Any) -> Any:
    """A value out of a config as a document holds it: its text keeps the type of log text."""
    if isinstance(value, str):
        return LogText(value)
    if isinstance(value, list):
        return [quoted(item) for item in value]
    if isinstance(value, dict):
        return {printable(str(key))[:200]: quoted(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, LogText)):
        return value
    return LogText(repr(value)[:200])
