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
    html = "html"
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
