"""What several commands share: options, and loading the knowledge base."""

from __future__ import annotations

import enum
from pathlib import Path

import typer

from postmortem.cli import output
from postmortem.cli.errors import USAGE, Failure
from postmortem.jobconfig import ConfigText as ConfigText
from postmortem.knowledge.load import KnowledgeError, load
from postmortem.knowledge.schema import Knowledge
from postmortem.text import printable

FALLBACK = "en"


class Format(str, enum.Enum):
    """How to print a report."""

    terminal = "terminal"
    markdown = "markdown"
    html = "html"
    json = "json"


class Flavor(str, enum.Enum):
    """The markup of a Markdown report: a tracker's own, or none."""

    github = "github"
    discord = "discord"
    jira = "jira"
    plain = "plain"


FLAVOR = typer.Option(
    None, "--flavor", help="For whom Markdown is: github (also GitLab), discord, jira (wiki markup), plain (mail)."
)
MAX_CHARS = typer.Option(
    None,
    "--max-chars",
    metavar="N",
    help="Longest Markdown report; the least important goes first. 0: no limit. Default: what the tracker takes.",
)


def check_ticket(markdown: bool, flavor: Flavor | None, max_chars: int | None) -> None:
    """Raises Failure where the options of a ticket do not go with the format or with each other."""
    if not markdown:
        for name, value in (("--flavor", flavor), ("--max-chars", max_chars)):
            if value is not None:
                raise Failure(f"{name} goes with --format markdown only", USAGE)
    if max_chars is not None and max_chars != 0:
        from postmortem.report.ticket import FLOOR

        if max_chars < FLOOR:
            raise Failure(f"--max-chars {max_chars}: a report needs {FLOOR} characters at least (0: no limit)", USAGE)


def knowledge(pack: Path | None = None) -> Knowledge:
    """The knowledge base, with the user's pack added. Raises Failure."""
    try:
        return load(pack)
    except KnowledgeError as error:
        raise Failure(printable(str(error)), USAGE if pack else 3) from None
    except OSError as error:
        raise Failure(f"patterns: {(error.strerror or type(error).__name__).lower()}") from None


LANG = typer.Option("en", "--lang", metavar="LANGUAGE", help="Language of all that people read: en, ko, or a pack's.")


def language(base: Knowledge, lang: str, encoding: str = "utf-8") -> str:
    """`lang`, or English where what is printed goes out in an `encoding` without its letters; that is said.

    Raises Failure where the knowledge base has no texts in it.
    """
    if lang not in base.texts:
        raise Failure(f"--lang {printable(lang)}: no such language; have {', '.join(sorted(base.texts))}", USAGE)
    if lang != FALLBACK and encoding.lower().replace("-", "") != "utf8":
        from postmortem.report.glyphs import can_show

        if not can_show("".join(base.texts[lang].values()), encoding):
            output.tell(
                f"--lang {printable(lang)}: {encoding} has not its letters, so this is in English; "
                "PYTHONIOENCODING=utf-8 or -o FILE keeps the language"
            )
            return FALLBACK
    return lang


def language_of(base: Knowledge, lang: str, out: Path | None, *, json: bool = False) -> str:
    """`language` of a report that goes to `out` or stdout; a file is UTF-8, and JSON has escapes."""
    return language(base, lang, "utf-8" if out is not None or json else output.encoding())


def since(text: str | None) -> float | None:
    """A point in time as a user names it, in seconds. Raises Failure."""
    if text is None:
        return None
    import re
    import time
    from datetime import datetime

    units = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
    found = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if found:
        return time.time() - int(found[1]) * units[found[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise Failure(f"--since {printable(text)}: give a date such as 2026-11-30, or 7d, 12h, 30m", USAGE) from None
