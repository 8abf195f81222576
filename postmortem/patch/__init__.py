"""Config text + changes → the text with only those values changed, or a typed refusal: `apply` is the room's door."""

from postmortem.patch.apply import Patched, apply
from postmortem.patch.job import choose_process, from_dump, load, processes
from postmortem.patch.refusal import Refused

__all__ = ["Patched", "Refused", "apply", "choose_process", "from_dump", "load", "processes"]
