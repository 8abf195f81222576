"""YAML, JSON, log dump → effective settings, each with its source and line: `effective`, `each`."""

from postmortem.jobconfig.effective import ConfigText, each, effective

__all__ = ["ConfigText", "each", "effective"]
