"""What a report claims to be, made again of its log: its values, and the files of the ticket that it came in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from postmortem.cli import redaction, ticket
from postmortem.text import LogText

if TYPE_CHECKING:
    from postmortem.intake import Intake
    from postmortem.knowledge.schema import Knowledge
    from postmortem.pipeline import Analysis
    from postmortem.report import Report
    from postmortem.report.redact import Redactor
    from postmortem.report.redact.labels import Hidden
    from postmortem.verify import Claims

_EXCERPT = "log-excerpt.txt"


class Remade(msgspec.Struct, frozen=True):
    """The report's values, the texts of the ticket's other files by name, and what hides a text as in these."""

    values: dict[str, Any]
    files: dict[str, str]
    hide: Callable[[str], str]
    redactor: Redactor | None


def make(
    claims: Claims,
    files: Mapping[str, bytes],
    bare: Report,
    opened: Intake,
    analysis: Analysis,
    base: Knowledge,
) -> Remade:
    """The report and, where a ticket's `files` are given, these, redacted as they were; `bare` is not redacted.

    What the input is called is no claim, so it is called as it was sent, and what is private goes by the log alone. A
    label that the sender's path left in that name is then looked for in the rest, and all is made again with it.
    """
    from postmortem.verify import hidden

    # what a ticket's excerpts show is private in its report too
    shown = ticket.excerpts(bare, opened, analysis, base) if bare.input.options.ticket or files else None
    source = claims.value["input"].get("source", "")
    told = _called(bare, str(source))
    redacted = bare.input.options.redacted

    def made(names: Mapping[str, Hidden | str | None]) -> Remade:
        learnt = [_called(bare, ""), *(shown or ())]
        redactor = redaction.redactor(base, learnt, [analysis]) if redacted else None
        if redactor is not None:
            redactor.number_as(names)
        return _made(told, shown if files else None, analysis, base, redactor)

    labels = hidden.labels_in(source) if redacted else []
    once = made(dict.fromkeys(labels))
    if once.redactor is None or not labels:
        return once
    found = hidden.names(_texts(claims.value, files, once), labels)
    things: dict[str, Hidden | str | None] = dict.fromkeys(labels)
    shown_here = 0
    for label, stands in found.items():
        if hidden.LABEL.fullmatch(stands):
            things[label] = once.redactor.thing(stands)
        elif shown_here < hidden.MAX_SHOWN:
            things[label] = stands
            shown_here += 1
    return made(things) if found else once


def _made(
    report: Report, shown: ticket.Excerpts | None, analysis: Analysis, base: Knowledge, redactor: Redactor | None
) -> Remade:
    from postmortem.report import json_

    files: dict[str, str] = {}
    if shown is not None:
        _, files = ticket.texts_of(report, shown, analysis, base, redactor)
        text = files.pop("report.json")  # compared value by value
    else:
        text = json_.render(redactor.document(report) if redactor is not None else report)
    return Remade(json.loads(text), files, redactor.text if redactor is not None else str, redactor)


def _texts(sent: dict[str, Any], files: Mapping[str, bytes], made: Remade) -> Iterator[tuple[str, str]]:
    """The texts that are otherwise than they were sent: first the report's, then the lines of the excerpt."""
    from postmortem.verify import needs
    from postmortem.verify.compare import Labels, pairs

    for pair in pairs(sent, made.values, "", Labels()):
        claim = not needs.under(pair.path, needs.NO_CLAIMS)
        if claim and isinstance(pair.sent, str) and isinstance(pair.found, str) and pair.sent != pair.found:
            yield pair.sent, pair.found
    if _EXCERPT in files and _EXCERPT in made.files:
        ones = files[_EXCERPT].decode("utf-8", "replace").split("\n")
        yield from (
            (one, other) for one, other in zip(ones, made.files[_EXCERPT].split("\n"), strict=False) if one != other
        )


def _called(report: Report, source: str) -> Report:
    return msgspec.structs.replace(report, input=msgspec.structs.replace(report.input, source=LogText(source)))
