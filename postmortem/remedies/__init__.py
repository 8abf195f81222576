"""Diagnosis + config → ranked fixes, and what will not help: `plan` is the room's door."""

from postmortem.remedies.plan import Plan, plan

__all__ = ["Plan", "plan"]
