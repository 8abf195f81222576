"""The fleet as one offline page: pictures, groups, fixes, and a table of all runs."""

from postmortem.fleet.page.render import Page, render

__all__ = ["Page", "render"]
