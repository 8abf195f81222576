"""Texts in which something may be hidden: what a label can stand for, judged by the text as the log has it.

Which names a redacting run hides depends on all that it saw, the path of its input too, which nobody else knows. So a
label that this run would not have set is no lie where the log's own text shows one thing in its place throughout.
"""

from __future__ import annotations

import json
import re
from typing import Any

from postmortem.text import LogText, Words, printable

_LABEL = re.compile(r"<[a-z][a-z0-9-]{0,30}-\d{1,9}>")
_FIGURE = re.compile(r"[-+]?[\d,]+(?:\.\d+)?(?:%|[KMGT]i?B)?")
"""A number: no run hides one that stands by itself, and none may be hidden to make a false claim pass."""
_MARK = "\x02"
MAX_TEXT = 4000
MAX_LABELS = 40
MAX_HIDDEN = 120
"""Characters that one label hides at most where this run would have shown them."""


def is_figure(text: str) -> bool:
    """Whether `text` is a number and nothing else."""
    return _FIGURE.fullmatch(text.strip()) is not None


class Hideable(str):
    """A text of the report as this run would hide it; `original` is the log's."""

    original: str = ""


def with_originals(shown: Any, marked: Any) -> Any:
    """`shown` (a redacted report's values), its log texts with what `marked` (`encode_marked`) has in their place."""
    if isinstance(shown, dict) and isinstance(marked, dict) and len(shown) == len(marked):
        return {
            key: with_originals(one, other) for (key, one), other in zip(shown.items(), marked.values(), strict=True)
        }
    if isinstance(shown, list) and isinstance(marked, list) and len(shown) == len(marked):
        return [with_originals(one, other) for one, other in zip(shown, marked, strict=True)]
    if isinstance(shown, str) and isinstance(marked, str) and marked.startswith(_MARK):
        text = Hideable(shown)
        text.original = marked[1:]
        return text
    return shown


def encode_marked(document: Any) -> Any:
    """The values of a document as JSON has them, each text out of a log with a mark in front."""
    import msgspec

    def hook(value: Any) -> Any:
        if isinstance(value, (LogText, Words)):
            return _MARK + printable(value.reveal())
        raise TypeError(type(value).__name__)

    return json.loads(msgspec.json.encode(document, enc_hook=hook))


def fits(sent: str, original: str, known: dict[str, str]) -> bool:
    """Whether `sent` is `original` with labels in place of single words or paths, each of one thing throughout.

    `known` is what each label was found to stand for so far.
    """
    labels = _LABEL.findall(sent)
    if not labels or len(labels) > MAX_LABELS or max(len(sent), len(original)) > MAX_TEXT:
        return False
    pieces = _LABEL.split(sent)
    if not original.startswith(pieces[0]):
        return False
    at = len(pieces[0])
    found: dict[str, str] = {}
    for index, (label, after) in enumerate(zip(labels, pieces[1:], strict=True)):
        held = known.get(label) or found.get(label)
        if held is not None:
            end = at + len(held) if original[at : at + len(held)].casefold() == held.casefold() else -1
        elif index == len(labels) - 1:
            end = len(original) - len(after)
        else:
            end = original.find(after, at + 1) if after else -1
        hidden = original[at:end] if end > at else ""
        if not hidden or len(hidden) > MAX_HIDDEN or any(sign.isspace() for sign in hidden) or is_figure(hidden):
            return False
        if not original.startswith(after, end):
            return False
        found[label] = hidden
        at = end + len(after)
    if at != len(original):
        return False
    known.update(found)
    return True
