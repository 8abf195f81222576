"""What the run itself says is private, found again wherever it stands as a whole word, in one pass over a text.

A text is read as words and what stands between them. A value is a row of these in a tree, so that the longest one that
starts at a word is found by walking down; of prose, any three words in a row are known. Both are linear in the text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from postmortem.report.redact.labels import Hidden, same
from postmortem.report.redact.shapes import Span

_NO_SPACES = "\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
"""Scripts whose words run on into each other: each character is a word of its own."""
_WORD = re.compile(rf"[^\W_{_NO_SPACES}]+|[{_NO_SPACES}]")
_TOKEN = re.compile(rf"[^\W_{_NO_SPACES}]+|[\\/]+|\s+|.", re.DOTALL)
_LEAD = re.compile(r"(?:(?<![A-Za-z0-9])[A-Za-z]:|[.~]{0,2})[\\/]+$")
_EDGE = " \t\r\n\\/\"'"
_ENCODED_BLANK = re.compile(r"^(?:25){0,3}(?:20|0a|0d|09|2c)")
_ENTITY = re.compile(r"0{0,6}(?:9|10|13|32|160)|x0{0,6}(?:9|a|d|20|a0)|nbsp|amp|quot|apos|tab|newline")
_ESCAPED_BLANK = re.compile(r"^(?:u00|x)(?:20|0a|0d|09|a0)")
_JOINTS = "_-"
"""What programs put between the words of a name in place of a blank, and of each other."""
MAX_TOKENS = 120
MAX_GAP = 12
"""Characters between two words of one piece of prose, at most: escapes, quotes and line breaks."""
MAX_WORDS = 20_000
"""Words of prose that are learnt, at most."""
RANK = -1
"""What the run says goes before how things look."""


class Learnt:
    """The private values of a run."""

    def __init__(self) -> None:
        self._tree: dict[str, Any] = {}
        self._first: set[str] = set()
        self._runs: dict[tuple[str, ...], Hidden] = {}
        self._run_starts: set[str] = set()
        self._rows: dict[tuple[str, ...], Hidden] = {}
        self._whole: dict[str, Hidden] = {}
        self._words = 0

    def __len__(self) -> int:
        return len(self._whole)

    def known(self, text: str) -> Hidden | None:
        """What `text` as a whole stands for, if it was learnt."""
        return self._whole.get(same(text.strip()))

    def claim(self, value: str, thing: Hidden) -> Hidden:
        """Note that `value` as a whole is `thing`, and what it was first called."""
        return self._whole.setdefault(same(value.strip()), thing)

    def add(self, value: str, thing: Hidden) -> None:
        """Hide `value` wherever it stands as whole words."""
        for form in _forms(value):
            tokens = [_folded(token) for token in _TOKEN.findall(form.strip(_EDGE))][: MAX_TOKENS + 1]
            if tokens and _WORD.match(tokens[0]) is None:  # a value starts at a word; signs before it stay
                first = next((at for at, token in enumerate(tokens) if _WORD.match(token)), None)
                tokens = tokens[first:] if first is not None else []
            if not tokens or len(tokens) > MAX_TOKENS:
                continue
            node = self._tree
            for token in tokens:
                node = node.setdefault(token, {})
            node.setdefault("", thing)
            self._first.add(tokens[0])

    def add_prose(self, value: str, thing: Hidden, common: Any) -> None:
        """Hide any three words in a row of `value`, and two that are not `common`; what is shorter, as a whole."""
        for form in dict.fromkeys((value, json.dumps(value)[1:-1])):
            words = [_plain(word) for word in _WORD.findall(unicodedata.normalize("NFC", form))]
            self._rows.setdefault(tuple(words), thing)
            self._words += len(words)
            if self._words > MAX_WORDS:
                return
            for size in (3, 2):
                for at in range(len(words) - size + 1):
                    run = tuple(words[at : at + size])
                    rare = [word for word in run if len(word) > 2 and not common(word)]
                    if len(rare) == 2 if size == 2 else not common(" ".join(run)):
                        self._runs.setdefault(run, thing)
                        self._run_starts.add(run[0])

    def spans(self, text: str) -> Iterator[Span]:
        """Where learnt values stand in `text`."""
        if not self._first and not self._runs:
            return
        words = list(_WORD.finditer(text))
        folded = [_plain(word[0]) for word in words]
        if self._first:
            yield from self._values(text, words, folded)
        if self._runs:
            # a blank or a line break may stand there escaped, its sign in front of the word: `%20of`, `\\nof`
            parted = [(word, _parted(text, word, known)) for word, known in zip(words, folded)]
            kept = [(word, known) for word, known in parted if known]
            yield from self._prose([word for word, _ in kept], [known for _, known in kept])

    def _values(self, text: str, words: list[re.Match[str]], folded: list[str]) -> Iterator[Span]:
        past = 0
        for word, known in zip(words, folded):
            start = word.start()
            if start < past:
                continue
            found = self._walk(text, start) if known in self._first else None
            if found is None and known[0] in "nrt" and start and text[start - 1] == "\\" and known[1:] in self._first:
                start += 1  # an escaped line break in front
                found = self._walk(text, start)
            if found is None:
                continue
            end, thing = found
            if "/" in thing.original or "\\" in thing.original:
                lead = _LEAD.search(text, max(0, start - 8), start)
                start = lead.start() if lead is not None and thing.original.strip()[:1] in "\\/.~" else start
            yield start, end, RANK, thing
            past = end

    def _walk(self, text: str, start: int) -> tuple[int, Hidden] | None:
        """The longest value that starts at `start`, and where it ends."""
        node: dict[str, Any] = self._tree
        at = start
        best: tuple[int, Hidden] | None = None
        while True:
            token = _TOKEN.match(text, at)
            below = node.get(_folded(token[0])) if token is not None else None
            if below is None or token is None:
                return best
            node = below
            at = token.end()
            if "" in node:
                best = (at, node[""])

    def _prose(self, words: list[re.Match[str]], folded: list[str]) -> Iterator[Span]:
        first, last, what = 0, -1, None  # the row of words that is open: none yet
        for at, word in enumerate(folded):
            if word not in self._run_starts:
                continue
            size = next((n for n in (3, 2) if at + n <= len(folded) and tuple(folded[at : at + n]) in self._runs), 0)
            if not size or not _near(words, at, at + size - 1):
                continue
            thing = self._runs[tuple(folded[at : at + size])]
            goes_on = what is not None and (at <= last or (at == last + 1 and thing == what))
            if what is not None and goes_on and _near(words, last, max(at, last)):
                last = max(last, at + size - 1)
                continue
            if what is not None:
                yield self._row(words, folded, first, last, what)
            first, last, what = at, at + size - 1, thing
        if what is not None:
            yield self._row(words, folded, first, last, what)

    def _row(self, words: list[re.Match[str]], folded: list[str], first: int, last: int, what: Hidden) -> Span:
        """A row of words, called by the prose that it is the whole of, if there is one."""
        whole = self._rows.get(tuple(folded[first : last + 1]), what)
        return words[first].start(), words[last].end(), RANK, whole


def _plain(word: str) -> str:
    return word.lower() if word.isascii() else unicodedata.normalize("NFC", word).casefold()


def _parted(text: str, word: re.Match[str], folded: str) -> str:
    """A word without what is left of an escaped blank or line break in front of it."""
    before = text[word.start() - 1] if word.start() else ""
    if before == "%":
        return _ENCODED_BLANK.sub("", folded)
    if before in "&#" and before and text[word.end() : word.end() + 1] == ";":
        entity = before == "&" or text[word.start() - 2 : word.start()] in ("&#", ";#")  # `&amp;#32;`
        return "" if entity and _ENTITY.fullmatch(folded) else folded
    if before == "\\" and folded[0] in "ux":
        return _ESCAPED_BLANK.sub("", folded)
    return folded[1:] if before == "\\" and folded[0] in "nrt" else folded


def _near(words: list[re.Match[str]], first: int, last: int) -> bool:
    return all(words[at + 1].start() - words[at].end() <= MAX_GAP for at in range(first, last))


def _folded(token: str) -> str:
    """A word without case, any row of slashes as one, any space as one, and as what stands in its place in names."""
    if token[0] in "\\/":
        return "/"
    return " " if token.isspace() or token in _JOINTS else token.casefold()


def _forms(value: str) -> dict[str, None]:
    """The spellings in which a value comes back: as it is, escaped in JSON and Python, in a URL, composed otherwise."""
    plain = (value, unicodedata.normalize("NFC", value), unicodedata.normalize("NFD", value))
    encoded = quote(value, safe="", errors="surrogatepass")  # a config in JSON can hold half a character
    whole = quote(value, errors="surrogatepass")
    escaped = (json.dumps(value)[1:-1], repr(value)[1:-1], encoded, quote(encoded), whole)
    blanks = (value.replace(" ", "+"), value.replace(" ", "\\ "))
    joints = (value.replace("_", "\\_"), value.replace("_", "%5F"))
    return dict.fromkeys((*plain, *(form for form in (*escaped, *blanks, *joints) if form)))
