"""What is said in one line on stderr, in the language that was asked for.

A failure is worded in English where it happens, deep in rooms that know no language. The texts under `told` are the
same wordings with places for what is filled in: which one a line is tells how it reads in another language. One that
no text knows stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from postmortem.knowledge.schema import Knowledge
from postmortem.report.texts import Texts
from postmortem.text import LogText

ENGLISH = "en"
FAMILY = "told."
PROBLEM = "problem"
"""A place for what the system says of a file, which has words of its own."""
MAX_LINE = 4000
_PLACE = re.compile(r"\{(\w+)\}")


def asked(arguments: Sequence[str]) -> str:
    """The language that a command line asks for, before it was looked at: it may be the one that is wrong."""
    lang = ENGLISH
    for at, word in enumerate(arguments):
        if word == "--":
            break
        if word == "--lang":
            lang = arguments[at + 1] if at + 1 < len(arguments) else lang
        elif word.startswith("--lang="):
            lang = word.removeprefix("--lang=")
    return lang


def translated(line: str, base: Knowledge, lang: str) -> str:
    """`line`, a failure's, in the language `lang`."""
    english = base.texts.get(ENGLISH, {})
    if lang == ENGLISH or lang not in base.texts or len(line) > MAX_LINE:
        return line
    texts = Texts(base, lang)
    found = [
        (len(_PLACE.sub("", template)), key, values)
        for key, template in english.items()
        if key.startswith(FAMILY) and (values := fill(template, line)) is not None
    ]
    if not found:
        subject, colon, why = line.rpartition(": ")
        return subject + colon + _said(texts, why)
    _, key, values = max(found, key=lambda one: one[:2])
    # in a sentence's order, whatever is in them: no value is looked at for places of its own
    return "".join(_filled(base.texts[lang].get(key) or english[key], values, texts))


def fill(template: str, line: str) -> dict[str, str] | None:
    """What stands in the places of `template` where `line` is it; None where it is not. From the end on, as what
    comes first in a line may be a name with any words in it."""
    pieces = _PLACE.split(template)
    words, names = pieces[::2], pieces[1::2]
    if not line.endswith(words[-1]) or not line.startswith(words[0]):
        return None
    values: dict[str, str] = {}
    end = len(line) - len(words[-1])
    for name, before in zip(reversed(names[1:]), reversed(words[1:-1])):
        at = line.rfind(before, len(words[0]), end)
        if at == -1:
            return None
        values[name] = line[at + len(before) : end]
        end = at
    if names:
        if end < len(words[0]):
            return None
        values[names[0]] = line[len(words[0]) : end]
    elif line != template:
        return None
    return values


def _filled(template: str, values: dict[str, str], texts: Texts) -> list[str]:
    pieces = _PLACE.split(template)
    return [
        piece if at % 2 == 0 else _said(texts, values[piece]) if piece == PROBLEM else values[piece]
        for at, piece in enumerate(pieces)
    ]


def _said(texts: Texts, why: str) -> str:
    told = texts.problem(why)
    return why if isinstance(told, LogText) else told
