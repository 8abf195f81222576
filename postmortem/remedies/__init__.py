"""Diagnosis + config → ranked fixes, and what will not help: `plan` is the room's door."""

from postmortem.remedies.plan import plan

__all__ = ["plan"]
