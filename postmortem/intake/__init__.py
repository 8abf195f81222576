"""A path, a URL or a stream → text plus what lies beside it; `open_input`, `open_path`, `open_stream` are the doors."""

from postmortem.intake.errors import IntakeError, Unreachable
from postmortem.intake.sources import Intake, LogFile, is_url, open_input, open_path, open_stream

__all__ = ["Intake", "IntakeError", "LogFile", "Unreachable", "is_url", "open_input", "open_path", "open_stream"]
