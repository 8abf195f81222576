"""Events → attempts, phases, steps, what was going on when: `build` is the room's door."""

from postmortem.timeline.attempts import build
from postmortem.timeline.results import kept
from postmortem.timeline.witness import confirm

__all__ = ["build", "confirm", "kept"]
