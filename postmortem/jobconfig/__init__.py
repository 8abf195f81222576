"""YAML, JSON, log dump → effective settings, each with its source and line: `effective` is the room's door."""

from postmortem.jobconfig.effective import ConfigText, effective

__all__ = ["ConfigText", "effective"]
