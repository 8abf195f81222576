"""Text → events, each with its line number and byte offset: `scan` is the room's door."""

from postmortem.scan.lexicon import Lexicon
from postmortem.scan.scanner import scan

__all__ = ["Lexicon", "scan"]
