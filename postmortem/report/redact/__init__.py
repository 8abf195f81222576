"""Hide what is personal or secret in a document that leaves the machine: `Redactor`, `redact`, `settings_of`."""

from postmortem.report.redact.private import Unknown, settings_of
from postmortem.report.redact.redactor import Redactor, redact

__all__ = ["Redactor", "Unknown", "redact", "settings_of"]
