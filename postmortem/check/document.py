"""The check as a typed document. Field names are what scripts rely on (docs/check.md); sizes are MiB."""

from __future__ import annotations

import msgspec

from postmortem.report.document import (
    ChangeItem,
    ForecastItem,
    MissingItem,
    RedactedPart,
    RungItem,
    Span,
    Tool,
    WarningItem,
)
from postmortem.text import LogText, Words

SCHEMA_VERSION = "1.0"


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    pass


class CheckInput(_Part, frozen=True, kw_only=True):
    """What was read: the config, the log of a stable run if one was given, how many processes the job has."""

    config: LogText
    log: LogText | None
    processes: int


class CardPart(_Part, frozen=True, kw_only=True):
    """The card: its capacity, and where that is known from (`option`, `log`, null)."""

    capacity: float | None
    source: str | None


class FixItem(_Part, frozen=True, kw_only=True):
    """One setting that would lower the peak of a phase, in the guide's order; null where no figure is known."""

    rank: int
    id: str
    title: str
    changes: list[ChangeItem]
    saving: Span | None
    peak: Span | None
    need: Span | None
    fits: str | None
    cost: str
    ui: str
    guide: str | None


class PhaseItem(_Part, frozen=True, kw_only=True):
    """One phase that the job will go through, with its forecast, or why there is none.

    `card_gib` is the smallest card class that surely holds it as it is; `card_needed_gib` the one that surely holds
    it after the whole ladder, null where a rung fits.
    """

    phase: str
    forecast: ForecastItem | None
    forecast_missing: MissingItem | None
    card_gib: int | None
    fixes: list[FixItem]
    ladder: list[RungItem]
    card_needed_gib: int | None


class RiskItem(_Part, frozen=True, kw_only=True):
    """One risky combination of settings: `severity` is high or medium."""

    id: str
    severity: str
    text: Words
    guide: str | None
    source: str


class AdviceItem(_Part, frozen=True, kw_only=True):
    """The guide's safe first try for this family."""

    id: str
    text: str


class ConditionItem(_Part, frozen=True, kw_only=True):
    """One of the guide's conditions for trying checkpointing off: `holds` is null where it cannot be said."""

    id: str
    holds: bool | None
    reason: str
    title: str
    text: Words


class TrialPart(_Part, frozen=True, kw_only=True):
    """Whether trying gradient checkpointing off is reasonable: `yes`, `no`, `open` (cannot be said), `proven`.

    `on` is the config's value, `changes` what to change for the trial, `watch` what must not occur.
    """

    on: bool
    verdict: str
    text: str
    conditions: list[ConditionItem]
    changes: list[ChangeItem]
    watch: list[str]


class JobItem(_Part, frozen=True, kw_only=True):
    """One process of the job; `phases`, the worst first. `fits` is the worst verdict, `unknown` where a part of the
    job has no forecast and the rest fits."""

    process: int
    name: LogText | None
    arch: LogText | None
    family: str | None
    fits: str
    headline: Words
    card_gib: int | None
    phases: list[PhaseItem]
    previews: bool
    risks: list[RiskItem]
    first_try: AdviceItem | None
    trial: TrialPart
    warnings: list[WarningItem]


class Check(_Part, frozen=True, kw_only=True):
    """Everything, in the order of docs/check.md."""

    schema_version: str
    tool: Tool
    input: CheckInput
    card: CardPart
    jobs: list[JobItem]
    lang: str
    redacted: RedactedPart | None = None
