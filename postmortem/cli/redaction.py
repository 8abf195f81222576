"""What the commands share about redaction: when it is on, and the local key to the labels."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from postmortem.cli import output
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import LogText, printable

if TYPE_CHECKING:
    from postmortem.knowledge.schema import Knowledge
    from postmortem.pipeline import Analysis
    from postmortem.report.redact import Redactor

HELP = "Replace names, paths, prompts, addresses and keys by labels (on by default where a report is made to leave)."
KEY_HELP = "Write what each label stands for there, for yourself only (JSON). Needs redaction."


def wanted(redact: bool | None, leaves: bool, key: Path | None, out: Path | None) -> bool:
    """Whether to redact: as the user says, else where the form is made to leave the machine.

    `key` is where its key is to be written: never over the report (`guard` sees to the inputs). Raises Failure.
    """
    on = leaves if redact is None else redact
    if key is None:
        return on
    if not on:
        raise Failure("--redaction-map: nothing is redacted; add --redact", USAGE)
    shown = printable(str(key))
    if out is not None and out.resolve() == key.resolve():
        raise Failure(f"--redaction-map {shown}: is the report's own file; give another name", USAGE)
    return on


def redactor(base: Knowledge, documents: Iterable[object], analyses: Iterable[Analysis]) -> Redactor:
    """A redactor that has learnt what is private in these runs and documents. Raises Failure where it cannot be."""
    from postmortem.report.redact import Redactor, Unknown, settings_of

    found = Redactor(base)
    try:
        for one in analyses:
            found.learn(None, settings_of(one))
    except Unknown as problem:
        raise Failure(
            f"not redacted: what is private in the job's settings is not known (fault {problem}); please report it. "
            "--no-redact gives the report with all names in it"
        ) from None
    for document in documents:
        found.learn(document)
    return found


def tell(base: Knowledge, lang: str, key: Path | None) -> None:
    """Say on stderr that the report was redacted: once it is written, so that one line is all that is said of one that
    cannot be."""
    from postmortem.report.texts import Texts

    texts = Texts(base, lang)
    if key is not None:
        output.tell(texts("redacted.key_written", {"file": LogText(str(key))}))
    else:
        output.tell(texts("redacted.told"))


def write_key(found: Redactor, key: Path | None) -> None:
    """Write what each label stands for, if that is wanted: before the report, which means little without it and goes
    to stdout. Raises Failure."""
    if key is not None:
        output.write(key_of(found), key, private=True)


def key_of(found: Redactor) -> str:
    """What each label stands for, as JSON: for the user's own eyes."""
    return json.dumps({"labels": found.mapping()}, indent=2, ensure_ascii=False) + "\n"
