"""Re-derive every claim of a report from the log it is about, and say what differs."""

from postmortem.verify.build import Given, build
from postmortem.verify.sent import BadReport, Claims, read

__all__ = ["BadReport", "Claims", "Given", "build", "read"]
