"""Text that came out of a log, a config or a file name, and how it is made harmless.

`LogText` deliberately is no `str`: it cannot be formatted, joined or printed by accident. Only the
encoder of a sink (``postmortem/report/encode.py``) asks for its characters, through `reveal`, and each
encoder makes them harmless for its own sink.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NoReturn

_ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC strings
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[@-Z\\-_a-z0-9=>()#%*+]?"
)
_INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's controls, format characters that show nothing, fillers, and all that it calls ignorable."""
_MARK = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILE = f"({_MARK}{{4}}){_MARK}+"
"""More marks on one letter than any language has; they would cover the lines above and below."""


@cache
def _of(expression: str) -> re.Pattern[str]:
    """The expression, compiled where it is first needed: a start of the program mostly needs none."""
    return re.compile(expression)


def strip_escapes(raw: str) -> str:
    """Remove terminal escape sequences (colour, cursor movement, titles, links); keep everything else."""
    return _of(_ESCAPES).sub("", raw) if "\x1b" in raw or "\x9b" in raw else raw


def printable(raw: str) -> str:
    """`raw` on one line without escape sequences, control characters, bidi controls and zero-width characters."""
    if raw.isascii() and raw.isprintable():
        return raw  # nearly every line of a log
    shown = _of(_INVISIBLE).sub("", strip_escapes(raw).replace("\t", " ").replace("\n", " ").replace("\r", " "))
    return shown if shown.isascii() else _of(_PILE).sub(r"\1", shown)


_LIKE_WORDS = r"[:;] |['\"`]|\A\s|\s\Z"
"""In a name what could pass for the end of it and for words of ours."""


def named(raw: str, longest: int = 300) -> str:
    """A file's name as a message shows it: one harmless line, in quotation marks where it reads like a message."""
    shown = printable(raw)
    if len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return '"' + shown.replace('"', '\\"') + '"' if _of(_LIKE_WORDS).search(shown) else shown


def seen(raw: str) -> str:
    """`raw`, one line of a log, without what shows nothing: what is left is what its reader sees.

    A form feed and a vertical tab are seen as blanks.
    """
    if raw.isascii() and raw.isprintable():
        return raw
    return _of(_INVISIBLE).sub("", strip_escapes(raw).replace("\x0b", " ").replace("\x0c", " "))


def harmless(raw: str) -> str:
    """`raw` with its lines, and otherwise as `printable`: for texts of a knowledge base, which may be a stranger's."""
    return raw if raw.isprintable() else _of(_INVISIBLE).sub("", strip_escapes(raw))


class LogText:
    """Characters from an untrusted source. See the module's docstring for why this is no `str`.

    A plain class on purpose: a dataclass would be encoded by msgspec field by field, past the encoder.
    """

    __slots__ = ("_raw",)
    _raw: str

    def __init__(self, raw: str) -> None:
        object.__setattr__(self, "_raw", raw)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("log text cannot be changed")

    def reveal(self) -> str:
        """The characters on one line, without control or invisible ones. For sink encoders, and for comparing."""
        raw = self._raw
        return raw if raw.isascii() and raw.isprintable() else printable(raw)

    def __bool__(self) -> bool:
        return bool(self._raw)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogText) and other._raw == self._raw

    def __hash__(self) -> int:
        return hash(self._raw)

    def __repr__(self) -> str:
        return f"LogText({self.reveal()!r})"

    def __str__(self) -> NoReturn:
        raise TypeError("log text must go through a sink's encoder")

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError("log text must go through a sink's encoder")


class Words:
    """A sentence of ours with values in it that came from a log or a config: `parts` in order, each of its own kind."""

    __slots__ = ("parts",)
    parts: tuple[str | LogText, ...]

    def __init__(self, *parts: str | LogText) -> None:
        self.parts = parts

    def reveal(self) -> str:
        """The sentence as plain characters. For sink encoders."""
        return "".join(part.reveal() if isinstance(part, LogText) else part for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and other.parts == self.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"Words({self.reveal()!r})"

    def __str__(self) -> NoReturn:
        raise TypeError("words with log text in them must go through a sink's encoder")

    def __format__(self, spec: str) -> NoReturn:
        raise TypeError("words with log text in them must go through a sink's encoder")
