"""Find out why an AI Toolkit training run died of memory, and what to change first."""

__version__ = "0.1.0"
