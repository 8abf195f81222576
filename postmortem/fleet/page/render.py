"""The page, rendered: Jinja escapes what it prints and refuses what is not there; script and style have hashes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.resources import files
from math import fsum
from typing import Any
from urllib.parse import quote

import msgspec
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from postmortem import __version__
from postmortem.fleet import words
from postmortem.fleet.facts import MIN_OTHERS, MIN_RUNS
from postmortem.fleet.groups import FixTotal, Group, Rank
from postmortem.fleet.page import pictures, table
from postmortem.fleet.row import MEMORY, Row
from postmortem.report import shell
from postmortem.report.texts import Texts
from postmortem.text import printable

MAX_GROUPS = 40
MAX_ERRORS = 200
TEMPLATES = ("page.html.j2", "parts.html.j2", "table.html.j2")


class Page(msgspec.Struct, frozen=True):
    """What the page is made of: the rows that it shows (`every` are all), groups and fixes in their order, the file
    names of the reports by the index of their rows, relative to the page, and whether names stand as labels."""

    rows: Sequence[Row]
    every: Sequence[Row]
    groups: Sequence[Group]
    fixes: Sequence[FixTotal]
    reports: dict[int, str]
    patterns: str
    by: Rank = "runs"
    redacted: bool = True


def render(page: Page, texts: Texts) -> str:
    """The page as HTML."""
    style, script = shell.styled(_text("style.css")), _text("table.js")
    context = {
        "page": page,
        "view": _view(page, texts),
        "t": _say(texts),
        "words": words,
        "texts": texts,
        "lang": texts.lang,
        "columns": table.COLUMNS,
        "numbers": table.NUMBERS,
        "version": __version__,
        # ours, and not of any log: they are the files beside this one
        "style": Markup(style),  # noqa: S704
        "script": Markup(script),  # noqa: S704
        "policy": shell.policy(style, script),
    }
    return _environment().get_template("page.html.j2").render(context)


def _view(page: Page, texts: Texts) -> dict[str, Any]:
    """What the template shows, worked out."""
    rows = list(page.rows)
    once = [row for row in rows if row.status == "analysed" and row.duplicate_of is None]
    number = {group.fingerprint: index for index, group in enumerate(page.groups, 1)}
    examples = {(row.fingerprint, row.run): page.reports.get(index) for index, row in enumerate(rows)}
    failed = sum(row.fingerprint is not None for row in once)
    lost = [row.hours_lost for row in once if row.hours_lost is not None]
    chunks = table.chunks(rows, number, lambda index: _link(page.reports.get(index)), texts)
    return {
        "once": len(once),
        "failed": failed,
        "memory": sum(row.kind in MEMORY for row in once),
        "other": sum(row.kind == "not_memory" for row in once),
        "unclear": sum(row.kind == "unknown" for row in once),
        "fine": sum(row.kind == "none" for row in once),
        "hours": words.amount(fsum(lost)) if lost else None,
        "lost": fsum(lost),
        "timed": len(lost),
        # against all runs, also where only some are shown
        "compared": sum(row.kind == "none" and row.duplicate_of is None for row in page.every) >= MIN_OTHERS,
        "fewest": MIN_RUNS,
        "groups": list(page.groups[:MAX_GROUPS]),
        "more_groups": max(0, len(page.groups) - MAX_GROUPS),
        "examples": {
            group.fingerprint: _link(examples.get((group.fingerprint, group.example))) for group in page.groups
        },
        "by_failure": pictures.by_failure(once, texts),
        "by_family": pictures.by_family(once, texts),
        "by_card": pictures.by_card(once, texts),
        "cardless": sum(pictures.failed(row) and row.card_gib is None for row in once),
        "tried": any(fix.tried for fix in page.fixes),
        "steps": pictures.steps(once, texts),
        "chunks": chunks,
        "lines": sum(len(chunk.lines) for chunk in chunks),
        "copies": sum(row.duplicate_of is not None for row in rows),
        "errors": [row for row in rows if row.status == "error"],
        "max_errors": MAX_ERRORS,
        "verdicts": sorted({words.verdict(row, texts) for row in rows if row.status == "analysed"}),
        "families": sorted({row.family for row in rows if row.family}),
        "cards": sorted({row.card_gib for row in rows if row.card_gib}),
    }


def _say(texts: Texts) -> Callable[..., str]:
    """A text of the page, by its key."""

    def say(key: str, **values: Any) -> str:
        return printable(texts(key, values))

    return say


def _link(name: str | None) -> str | None:
    return quote(name) if name is not None else None


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=DictLoader({name: _text(name) for name in TEMPLATES}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
    )


def _harmless(value: Any) -> Any:
    """What a template prints, before it is escaped: no control, bidi or invisible characters, whoever wrote it."""
    return value if isinstance(value, (Markup, int, float)) else printable(str(value))
