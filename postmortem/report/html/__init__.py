"""The report as one web page that needs nothing else: no network, no script to be read. `render` is the door."""

from postmortem.report.html.render import render

__all__ = ["render"]
