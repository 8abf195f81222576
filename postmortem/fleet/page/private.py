"""Rows without what is a user's own: the page is made to leave the machine."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.fleet.row import Row
from postmortem.knowledge.schema import Knowledge
from postmortem.report.redact import Redactor

_FREE = ("arch", "optimizer", "quantization", "exception", "place", "torch")
"""Columns whose text may be a user's own words: checked for secrets."""


def private(rows: Sequence[Row], knowledge: Knowledge) -> list[Row]:
    """`rows` with labels in place of run and job names, without paths, and without secrets in what else is text."""
    redactor = Redactor(knowledge)
    runs = _Labels("run")
    jobs = _Labels("job")
    names = [runs(row.run) for row in rows]
    kept: list[Row] = []
    for row, name in zip(rows, names, strict=True):
        free = {one: redactor.text(given) for one in _FREE if (given := getattr(row, one)) is not None}
        error = redactor.text(row.error.replace(row.run, name).replace(row.path, name)) if row.error else None
        kept.append(
            msgspec.structs.replace(
                row,
                run=name,
                path="",
                job=jobs(row.job) if row.job is not None else None,
                duplicate_of=runs(row.duplicate_of) if row.duplicate_of is not None else None,
                error=error,
                **free,
            )
        )
    return kept


class _Labels:
    """The same name always gets the same label."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._known: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        return self._known.setdefault(name, f"<{self._kind}-{len(self._known) + 1}>")
