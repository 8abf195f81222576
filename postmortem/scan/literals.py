"""Where the words of a list stand in a text: the search that every byte of a log's text goes through.

Asking `bytes.find` for one word after another is the fastest for little text and the slowest for much. Hyperscan (the
extra `fast`) finds all words in one pass, some hundred times faster, once it is loaded and its automaton is built;
without it numpy can look up four bytes at a time. So each is taken up when as much text has come as pays for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

Engine = Literal["best", "hyperscan", "numpy", "plain"]
"""How to search; `best` takes what is installed, and when it pays. The others are for tests and measurements."""
Hit = tuple[int, int]
"""Where a word starts, and its index in the list."""
Search = Callable[[bytes], list[Hit]]
Build = Callable[[Sequence[bytes]], Search]

HYPERSCAN_PAYS = 32 * 1024
"""Bytes of text whose plain search costs as much as loading Hyperscan and building its automaton: 10 ms."""
NUMPY_PAYS = 512 * 1024
"""The same for numpy: a tenth of a second."""
GRAM = 4
_SLOT_BITS = 16
_SPREAD = 0x9E3779B1


class Literals:
    """A list of words to search for, by the best of the ways to do so."""

    def __init__(self, words: Sequence[bytes], engine: Engine = "best") -> None:
        self._words = tuple(words)
        self._optional = engine == "best"
        self._searched = 0
        self._search = plain(self._words)
        better: dict[Engine, tuple[tuple[int, Build], ...]] = {
            "best": ((HYPERSCAN_PAYS, by_automaton), (NUMPY_PAYS, by_grams)),
            "hyperscan": ((0, by_automaton),),
            "numpy": ((0, by_grams),),
            "plain": (),
        }
        self._better = better[engine]

    def find(self, joined: bytes) -> list[Hit]:
        """Where the words stand in `joined`: in any order, and for each line (cut at LF) each word in it at least once.

        Raises ImportError if the engine was asked for by name and is not there.
        """
        self._searched += len(joined)
        while self._better and self._searched >= self._better[0][0]:
            self._take_up(self._better[0][1])
        return self._search(joined)

    def _take_up(self, build: Build) -> None:
        """Go over to another search, if it is there."""
        try:
            self._search = build(self._words)
            self._better = ()
        except ImportError:
            if not self._optional:
                raise
            self._better = self._better[1:]


def plain(words: Sequence[bytes], only: Sequence[int] | None = None) -> Search:
    """One search per word, of all words or of those with the indices `only`."""
    asked = [(index, words[index]) for index in (range(len(words)) if only is None else only)]

    def search(joined: bytes) -> list[Hit]:
        hits: list[Hit] = []
        find = joined.find
        for index, word in asked:
            at = find(word)
            while at != -1:
                hits.append((at, index))
                line_end = find(b"\n", at)
                if line_end == -1:
                    break
                at = find(word, line_end + 1)
        return hits

    return search


def by_automaton(words: Sequence[bytes]) -> Search:
    """One pass of Hyperscan for all words. Raises ImportError where it is not installed or not for this processor."""
    import hyperscan

    # for its interface, a NUL ends a word
    odd = [index for index, word in enumerate(words) if not word or b"\0" in word]
    usual = sorted({*range(len(words))} - {*odd})
    aside = plain(words, odd)
    if not usual:
        return aside
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    try:
        database.compile(
            expressions=[words[index] for index in usual], ids=usual, elements=len(usual), flags=0, literal=True
        )
    except hyperscan.error as problem:
        raise ImportError(str(problem)) from None
    sizes = [len(word) for word in words]

    def search(joined: bytes) -> list[Hit]:
        hits = aside(joined)
        add = hits.append
        find = joined.find
        latest = [-1] * len(sizes)

        def found(index: int, _start: int, end: int, _flags: int, _context: object) -> None:
            # once a line is enough: what follows costs more for each place than this
            before = latest[index]
            latest[index] = end
            if before < 0 or find(b"\n", before, end) != -1:
                add((end - sizes[index], index))

        database.scan(joined, match_event_handler=found)
        return hits

    return search


def by_grams(words: Sequence[bytes]) -> Search:
    """Look up each four bytes of the text in a table of those that a word has at one place, then four more, then all.

    Raises ImportError where numpy is not installed.
    """
    import numpy as np

    tiny = [index for index, word in enumerate(words) if len(word) < GRAM]
    aside = plain(words, tiny)
    owners: dict[int, list[tuple[int, int]]] = {}
    pairs = Counter(word[at : at + 2] for word in words for at in range(len(word) - 1))
    for index, word in enumerate(words):
        if len(word) >= GRAM:
            size = 2 * GRAM if len(word) >= 2 * GRAM else GRAM
            at = _rarest(word, size, pairs)
            owners.setdefault(int.from_bytes(word[at : at + size], "little"), []).append((index, at))
    known = np.array(sorted(owners), dtype=np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(8 * GRAM)
    spread, shift = np.uint32(_SPREAD), np.uint32(32 - _SLOT_BITS)
    table = np.zeros(1 << _SLOT_BITS, dtype=bool)
    table[((known & low).astype(np.uint32) * spread) >> shift] = True

    def search(joined: bytes) -> list[Hit]:
        hits = aside(joined)
        padded = joined + bytes(2 * GRAM)
        for lane in range(GRAM):
            codes = np.frombuffer(padded, "<u4", len(padded) // GRAM - 1, lane)
            maybe = np.flatnonzero(table[(codes[:-1] * spread) >> shift])
            short = codes[maybe].astype(np.uint64)
            for values in (short, short | (codes[maybe + 1].astype(np.uint64) << half)):
                sure = known[np.searchsorted(known, values).clip(max=len(known) - 1)] == values
                for code, place in zip(values[sure].tolist(), maybe[sure].tolist(), strict=True):
                    for index, before in owners[code]:
                        start = place * GRAM + lane - before
                        if start >= 0 and joined.startswith(words[index], start):
                            hits.append((start, index))
        return hits

    return search if owners else aside


def _rarest(word: bytes, size: int, pairs: Counter[bytes]) -> int:
    """Where in `word` the `size` bytes start of which the first four look rarest, by the `pairs` that words have."""

    def commonness(at: int) -> int:
        return pairs[word[at : at + 2]] * pairs[word[at + 1 : at + 3]] * pairs[word[at + 2 : at + 4]]

    return min(range(len(word) - size + 1), key=commonness)
