"""`postmortem patterns test`: the knowledge base, checked against its own examples."""

from postmortem.selftest.checks import problems

__all__ = ["problems"]
