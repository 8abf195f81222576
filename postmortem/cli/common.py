"""What several commands share: options, and loading the knowledge base."""

from __future__ import annotations

import enum
from pathlib import Path

from postmortem.cli.errors import USAGE, Failure
from postmortem.jobconfig import ConfigText as ConfigText
from postmortem.knowledge.load import KnowledgeError, load
from postmortem.knowledge.schema import Knowledge
from postmortem.text import printable


class Format(str, enum.Enum):
    """How to print a report."""

    terminal = "terminal"
    markdown = "markdown"
    json = "json"


def knowledge(pack: Path | None = None) -> Knowledge:
    """The knowledge base, with the user's pack added. Raises Failure."""
    try:
        return load(pack)
    except KnowledgeError as error:
        raise Failure(printable(str(error)), USAGE if pack else 3) from None
    except OSError as error:
        raise Failure(f"patterns: {(error.strerror or type(error).__name__).lower()}") from None


def check_language(base: Knowledge, lang: str) -> str:
    """`lang` if the knowledge base has texts in it. Raises Failure."""
    if lang not in base.texts:
        raise Failure(f"--lang {printable(lang)}: no such language; have {', '.join(sorted(base.texts))}", USAGE)
    return lang


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
