"""What the sender called things: which of a redacted report's labels stand for what, where only the sender can know.

Which names a run hides depends on the path of its input too: who it names is hidden in all of the log, and numbered
first. That path is not known here, but the labels left of it are, and the log shows what stands in their place.
With these names the report is made again, so that a label stands where a redactor sets it, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LABEL = re.compile(r"<([a-z][a-z0-9-]{0,30})-\d{1,9}>")
_FIGURE = re.compile(r"[-+]?[\d,]+(?:\.\d+)?(?:%|[KMGT]i?B)?")
"""A number: no run hides one that stands by itself, and none may be hidden to make a false claim pass."""
MAX_TEXT = 4000
MAX_NAMES = 12
"""Labels that the name of an input holds at most."""
MAX_HIDDEN = 120
"""Characters of a name at most."""
MAX_WORDS = 3
MAX_SHOWN = 3
"""Names that show here and were hidden there: a path names a person and a machine, no more."""


def labels_in(source: object) -> list[str]:
    """The labels in what a redacted report calls its input, each once."""
    found = LABEL.finditer(source[:MAX_TEXT]) if isinstance(source, str) else ()
    return list(dict.fromkeys(one[0] for one in found))[:MAX_NAMES]


def names(texts: Iterable[tuple[str, str]], labels: Collection[str]) -> dict[str, str]:
    """What each of `labels` stands for, by texts as they were sent and as they are here: a label of ours, or a name."""
    found: dict[str, str] = {}
    for sent, made in texts:
        if any(label in sent for label in labels if label not in found):
            found = {**_one(sent, made, labels), **found}
            if len(found) == len(labels):
                break
    return found


def _one(sent: str, made: str, labels: Collection[str]) -> dict[str, str]:
    if max(len(sent), len(made)) > MAX_TEXT:
        return {}
    marks = list(LABEL.finditer(sent))
    at, past = 0, 0
    found: dict[str, str] = {}
    for index, mark in enumerate(marks):
        if not made.startswith(sent[past : mark.start()], at):
            return {}
        at += mark.start() - past
        past = mark.end()
        last = index == len(marks) - 1
        after = sent[past : len(sent) if last else marks[index + 1].start()]
        ours = LABEL.match(made, at)
        ours = ours if ours is not None and ours[1] == mark[1] else None
        if ours is not None:
            end = ours.end()
        elif mark[0] not in labels:
            return {}
        else:
            end = len(made) - len(after) if last else made.find(after, at + 1) if after else -1
        stands = made[at:end] if end > at else ""
        if ours is None and not _is_name(stands):
            return {}
        if mark[0] in labels and found.setdefault(mark[0], stands) != stands:
            return {}
        at = end
    return found if made[at:] == sent[past:] else {}


def _is_name(text: str) -> bool:
    words = text.split(" ")
    plain = "\n" not in text and "<" not in text and all(words) and len(words) <= MAX_WORDS
    return plain and 0 < len(text) <= MAX_HIDDEN and _FIGURE.fullmatch(text) is None
