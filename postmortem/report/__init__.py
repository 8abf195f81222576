"""Analysis → report → terminal, Markdown, JSON: `build` makes the document, a renderer per format prints it."""

from postmortem.report.build import build
from postmortem.report.document import Report

__all__ = ["Report", "build"]
