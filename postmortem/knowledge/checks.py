"""Whether the expressions of an entry can be used: they compile, fill the groups that are read, and are fast."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any

from postmortem.knowledge import safety
from postmortem.knowledge.log_schema import KeptWords, Pattern, Redaction
from postmortem.knowledge.schema import Exclusion
from postmortem.text import seen

MAX_EXPRESSION = 20_000
"""Characters."""
_Groups = Mapping[str, "tuple[str, int] | None"]
"""Groups by name: what may be in one, and how much at most; None where that does not matter."""
_DIGITS = "0123456789\u0663"  # and one for those of other scripts, which `\\d` takes too
_CLOCK = _DIGITS + ":"
_FRAME: _Groups = {"path": None, "line": (_DIGITS, 9), "function": None}
_GROUPS: dict[str, _Groups] = {
    "bar_syntax": {
        "n": (_DIGITS, 18),
        "total": (_DIGITS, 18),
        "elapsed": (_CLOCK, 24),
        "postfix": None,
        "remaining": None,
        "rate": None,
    },
    "frame": _FRAME,
    "frame_boxed": _FRAME,
    "frame_unnumbered": {"path": None, "function": None},
    "code_boxed": {"code": None},
}
"""By event the groups that an expression must always fill."""
_BY_ID = {"syntax.frame_boxed": "frame_boxed", "syntax.code_boxed": "code_boxed"}
"""The entries that are read in the same way and set no event."""
_FIELD_GROUPS: dict[str, _Groups] = {
    "other_process": {"value": None, "unit": None},
    "device": {"value": (_DIGITS, 1 << 20)},
}
"""The same by the name of a field; of all others it is `value`."""


class Unfit(ValueError):
    """An entry cannot be used; the message names the field and what is wrong with it."""


def usable(entry: Any) -> None:
    """Each expression of an entry must compile, so that none fails in the middle of a log. Raises Unfit."""
    sources = _sources(entry)
    anchors = entry.anchors if isinstance(entry, Pattern) else ()
    for name, text in (*sources.items(), ("anchors", "".join(anchors))):
        if seen(text) != text:
            raise Unfit(f"{name}: a character that shows nothing; lines are searched without those")
    if "" in anchors:
        raise Unfit("anchors: an empty one is in every line; leave it out")
    # these become parts of others
    part = isinstance(entry, KeptWords) or (isinstance(entry, Pattern) and entry.role in ("prefix", "bar"))
    fields = entry.fields if isinstance(entry, Pattern) else {}
    for name, source in sources.items():
        try:
            compiled: Any = _compiled(source, part=part)
        except ValueError as error:
            raise Unfit(f"{name} is not an expression: {error}") from None
        if name in fields and "value" not in compiled.groupindex:
            raise Unfit(f"{name} has no group named value")
        if isinstance(entry, Redaction) and name == "regex" and "secret" not in compiled.groupindex:
            raise Unfit(f"{name} has no group named secret")
        if name == "regex":
            _check_groups(name, source, _GROUPS.get(_BY_ID.get(entry.id) or _event(entry) or "", {}))
        elif name in fields:
            _check_groups(name, source, _FIELD_GROUPS.get(name, {"value": None}))


def fast(entry: Any) -> None:
    """A stranger's expression must be fast on every line, wherever it is put. Raises Unfit."""
    if isinstance(entry, Pattern):
        uses, longest = [*safety.uses(entry)], safety.longest(entry)
    elif isinstance(entry, Redaction | KeptWords):
        # what may stay must match the whole
        anywhere = isinstance(entry, Redaction)
        uses = [(name, text, anywhere) for name, text in _sources(entry).items()]
        longest = safety.LONGEST_SHOWN
    else:
        return
    for name, source, anywhere in uses:
        told = safety.problem(source, anywhere=anywhere, longest=longest)
        if told is not None:
            raise Unfit(f"{name} {told}")


def _sources(entry: Any) -> dict[str, str]:
    """The expressions of an entry by the name under which a problem of theirs is told."""
    if isinstance(entry, Pattern):
        return {"regex": entry.regex, **entry.fields}
    if isinstance(entry, Redaction):
        more = {"parts": entry.parts, "tail": entry.tail}
        return {"regex": entry.regex, **{name: text for name, text in more.items() if text}}
    if isinstance(entry, KeptWords):
        return {f"word {index + 1}": text for index, text in enumerate(entry.words)}
    if isinstance(entry, Exclusion):
        return {f"expression {index + 1}": text for index, text in enumerate((*entry.strings, *entry.unless))}
    return {}


def _event(entry: Any) -> str | None:
    """The event that an entry sets, if it is one that sets any."""
    return entry.sets.event if isinstance(entry, Pattern) else None


def _compiled(source: str, *, part: bool) -> Any:
    """The expression, which must compile as a `part` of another one too, if it becomes one. Raises ValueError."""
    if len(source) > MAX_EXPRESSION:
        raise ValueError(f"longer than {MAX_EXPRESSION} characters")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", FutureWarning)
        # flags in the middle, for which Python 3.10 only warns, and later ones refuse
        warnings.simplefilter("error", DeprecationWarning)
        try:
            made = re.compile(source)
        except FutureWarning as warning:
            raise ValueError(f"{str(warning).lower()}; write \\[ for the character") from None
        except (re.error, DeprecationWarning, OverflowError, RecursionError):
            return _by_regex(source, part=part)
        try:
            re.compile(f"(?:{source})" if part else "")
        except (re.error, DeprecationWarning) as error:
            raise ValueError(str(error)) from None
        return made


def _by_regex(source: str, *, part: bool) -> Any:
    import regex

    try:
        regex.compile(f"(?:{source})" if part else "")
        return regex.compile(source)
    except (regex.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None


def _check_groups(field: str, source: str, needed: _Groups) -> None:
    """What the scan reads out of a match must be in each match, and a number must be one."""
    for name, may in needed.items():
        allowed, widest = may if may is not None else ("", 0)
        try:
            found = safety.group(source, name, allowed)
        except safety.Unjudged as error:
            raise Unfit(f"{field} cannot be read ({error}); use the syntax of Python's own re") from None
        if found is None or not found.always:
            raise Unfit(f"{field} needs the groups {', '.join(needed)}, each filled in every match")
        if may is not None and (not found.only or found.widest > widest):
            raise Unfit(f"{field}: group {name} may hold digits only, and no more than {widest}")
