"""Find out why an AI Toolkit training run died of memory, and what to change first."""

__version__ = "0.1.0"

COLLECT_EVERY = 50_000
"""Objects made between two searches for cyclic garbage. What a start makes stays until the end, and the interpreter's
700 would have it looked through a hundred times over."""
