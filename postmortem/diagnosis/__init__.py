"""Run + config → one diagnosis with evidence and confidence: `diagnose` is the room's door."""

from postmortem.diagnosis.verdict import diagnose

__all__ = ["diagnose"]
