"""A job config → what it needs on the card, what is risky in it, whether checkpointing off may be tried: `build`."""

from postmortem.check.build import build
from postmortem.check.document import Check

__all__ = ["Check", "build"]
