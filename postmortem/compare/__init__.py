"""Two or more analyses → what changed, how far each got, and what that proves: `build` is the room's door."""

from postmortem.compare.build import build
from postmortem.compare.document import Comparison

__all__ = ["Comparison", "build"]
